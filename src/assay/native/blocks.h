/* Blocks of columns with bounds of their numbers: columns of the caller, and columns that are computed from others.
 *
 * tally/sums/terms.py and tally/scores/losses.py compute the same columns by torch.
 */
#include "limbs.h"
#include "windows.h"

/* Python gives these as arrays of int64. */
_Static_assert(sizeof(void *) == sizeof(int64_t), "addresses have 64 bits");

/* What a column is, as `Kind` in sums.py has it. */
enum kind {
    FLOATS,   /* float32 */
    DOUBLES,  /* float64 */
    SCORES,   /* float32 in [0, 1]; others are counted as invalid */
    TARGETS,  /* 1 where an int64 is 1, 0 where it is 0; others are counted as invalid */
    LARGER,   /* the larger of two columns where they are unequal, elsewhere 0 */
    SMALLER,  /* the smaller one with the other sign */
    SIGN,     /* -1, 0 or 1: that of a column */
    /* Terms of two columns that float_terms.py computes by torch, in float32 or float64, with the same bits: */
    PERCENTAGE, /* PercentageError */
    SYMMETRIC,  /* SymmetricPercentageError */
    POWER,      /* AbsolutePower of a whole exponent, which is the row stride */
};

struct column {
    const void *start;
    int64_t row_stride, output_stride;
    int64_t *special, *nonfinite; /* of the first output: three counts, and one (of what is invalid); or none */
    int64_t outputs_apart;        /* from these counts of a cell of rows to those of the next one */
    int64_t kind;
    int64_t of[2]; /* the columns that a column is computed from */
};

/* A block of one column, and bounds of its values other than 0, all in powers of two. */
struct block {
    double values[BLOCK] ALIGNED; /* float32 as doubles, or a copy as `near` is */
    float near[BLOCK];   /* a copy of floats that do not lie side by side, or that fill no whole step */
    const float *narrow; /* float32, with zeros up to a whole step; none where they were float64 */
    const double *large; /* the same as doubles; none where they were float32 and nobody asked yet */
    int64_t above;       /* all magnitudes are below 2 ** above */
    int64_t last_bit;    /* all values are multiples of 2 ** last_bit */
    int64_t empty;       /* whether all values are 0 */
    int64_t nonfinite;   /* whether one is not finite */
    int64_t wide;        /* whether they were float64 */
    int64_t pending;     /* whether they are computed when they are needed */
    int64_t summed;      /* whether the sum of float32 is formed with the bounds */
    double sum;          /* exact where all are multiples of a quantum that the bounds allow */
};

_Static_assert(sizeof(struct block) == 12 * 1024 + 128, "sums.py makes room for so many bytes");

INLINE int64_t whole(int64_t rows)
{
    return (rows + STEP - 1) / STEP * STEP;
}

/* The bits of the largest magnitude, and of the smallest other than 0, which one less is above all. */
VECTORISED static void extent_of_floats(const float *x, int64_t rows, uint32_t *largest, uint32_t *smallest)
{
    const bits *numbers = (const bits *)x;
    uint32_t high = 0, low = UINT32_MAX;
    for (int64_t i = 0; i < rows; i++) {
        uint32_t magnitude = numbers[i] & INT32_MAX, less = magnitude - 1;
        high = magnitude > high ? magnitude : high;
        low = less < low ? less : low;
    }
    *largest = high, *smallest = low + 1;
}

/* The same, and the sum, in one loop: a block that comes from memory is read once. */
VECTORISED static double sum_and_extent(const float *x, int64_t rows, uint32_t *largest, uint32_t *smallest)
{
    const bits *numbers = (const bits *)x;
    uint32_t high[STEP] = {0}, low[STEP], least = UINT32_MAX;
    doubles sum[SUMS] = {{0}};
    for (int k = 0; k < STEP; k++)
        low[k] = UINT32_MAX;
    for (int64_t i = 0; i < rows; i += STEP) {
        ON_ITS_WAY(x + i); /* which also keeps compilers from making two loops of this one */
        ON_ITS_WAY(x + i + STEP / 2);
        for (int k = 0; k < SUMS; k++)
            sum[k] += widened(x + i + k * LANES);
        for (int k = 0; k < STEP; k++) {
            uint32_t magnitude = numbers[i + k] & INT32_MAX, less = magnitude - 1;
            high[k] = magnitude > high[k] ? magnitude : high[k];
            low[k] = less < low[k] ? less : low[k];
        }
    }
    *largest = 0;
    for (int k = 0; k < STEP; k++) {
        *largest = high[k] > *largest ? high[k] : *largest;
        least = low[k] < least ? low[k] : least;
    }
    *smallest = least + 1;
    return total_of(sum);
}

VECTORISED static void widen(double *restrict values, const float *x, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        values[i] = x[i];
}

/* The values as doubles. */
static const double *doubles_of(struct block *b, int64_t rows)
{
    if (!b->large)
        widen(b->values, b->narrow, whole(rows)), b->large = b->values;
    return b->large;
}

static int64_t exponent_of_float(uint32_t number)
{
    return number >> 23 ? number >> 23 : 1;
}

static int exponent_of(int64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return ilogb(number);
}

static void bound_floats(struct block *b, const float *x, int64_t rows)
{
    uint32_t largest, smallest;
    b->narrow = x, b->large = NULL, b->wide = 0;
    if (b->summed)
        b->sum = sum_and_extent(x, whole(rows), &largest, &smallest);
    else
        extent_of_floats(x, whole(rows), &largest, &smallest);
    b->above = exponent_of_float(largest) - 126;
    b->last_bit = exponent_of_float(smallest) - 150;
    b->empty = largest == 0;
    b->nonfinite = largest >= 0x7f800000;
}

static void bound_doubles(struct block *b, const double *x, int64_t rows)
{
    int64_t largest, smallest;
    b->narrow = NULL, b->large = x, b->wide = 1;
    extent(x, whole(rows), &largest, &smallest);
    b->empty = largest == 0;
    b->nonfinite = largest >= INFINITE;
    if (!b->empty && !b->nonfinite) {
        b->above = exponent_of(largest) + 1;
        b->last_bit = exponent_of(smallest) - 52;
    }
}

/* The numbers of a column where they lie, or a copy in `own` of those that do not lie side by side or fill no whole step. */
#define NUMBERS(type)                                                                                                   \
    static const type *numbers_of_##type(type *own, const type *x, int64_t stride, const int64_t *order, int64_t rows)  \
    {                                                                                                                   \
        if (!order && stride == 1 && rows % STEP == 0)                                                                  \
            return x;                                                                                                   \
        for (int64_t i = 0; i < rows; i++)                                                                              \
            own[i] = x[(order ? order[i] : i) * stride];                                                                \
        for (int64_t i = rows; i % STEP; i++)                                                                           \
            own[i] = 0;                                                                                                 \
        return own;                                                                                                     \
    }

NUMBERS(float)
NUMBERS(double)

VECTORISED static int64_t count_outside(const float *scores, int64_t rows)
{
    int32_t outside = 0;
    for (int64_t i = 0; i < rows; i++)
        outside += !(scores[i] >= 0 && scores[i] <= 1); /* NaN is neither */
    return outside;
}

/* 1 for each positive target, and how many are no target. */
VECTORISED static int64_t mark_targets(float *restrict marks, const int64_t *target, int64_t rows)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows; i++) {
        marks[i] = target[i] == 1 ? 1 : 0;
        wrong += (uint64_t)target[i] > 1;
    }
    return wrong;
}

static void load_targets(struct block *into, const int64_t *target, int64_t stride, const int64_t *order, int64_t rows,
                         int64_t *invalid)
{
    if (order || stride != 1) {
        int64_t *own = (int64_t *)into->values;
        for (int64_t i = 0; i < rows; i++)
            own[i] = target[(order ? order[i] : i) * stride];
        target = own;
    }
    have_ready(target + BLOCK, BLOCK * sizeof *target);
    *invalid += mark_targets(into->near, target, rows);
    for (int64_t i = rows; i % STEP; i++)
        into->near[i] = 0;
    bound_floats(into, into->near, rows);
}

/* Load the rows of a column from `first` on, or those that `order` lists; what is computed is computed later. */
static void load(struct block *into, const struct column *c, int64_t first, const int64_t *order, int64_t rows,
                 int64_t *invalid)
{
    into->pending = c->kind >= LARGER;
    if (c->kind == DOUBLES)
        bound_doubles(into, numbers_of_double(into->values, (const double *)c->start + first, c->row_stride, order, rows), rows);
    else if (c->kind == TARGETS)
        load_targets(into, (const int64_t *)c->start + first, c->row_stride, order, rows, invalid);
    else if (!into->pending)
        bound_floats(into, numbers_of_float(into->near, (const float *)c->start + first, c->row_stride, order, rows), rows);
    if (c->kind == SCORES)
        *invalid += count_outside(into->narrow, rows);
}

/* One number of a column that is computed from others. */
#define LARGER_OF(x, y) ((x) > (y) ? (x) : (x) < (y) ? (y) : 0)
#define SMALLER_OF(x, y) (-((x) > (y) ? (y) : (x) < (y) ? (x) : 0))
#define SIGN_OF(x, y) (((x) > 0) - ((x) < 0))
#define SMALLEST_TARGET 1.17e-06 /* as float_terms.py has it */

/* An error over a size, or the halves of both where one of them is too large for a float. */
#define QUOTIENT_OF(type, error, size, half_error, half_size)                                                           \
    ((error) < (type)INFINITY && (size) < (type)INFINITY ? (error) / (size) : (half_error) / (half_size))

#define RATIOS(type, absolute)                                                                                          \
    VECTORISED static void percentages_##type(type *restrict into, const type *x, const type *y, int64_t rows)          \
    {                                                                                                                   \
        const type least = (type)SMALLEST_TARGET, half = (type)0.5;                                                     \
        for (int64_t i = 0; i < rows; i++) {                                                                            \
            type error = absolute(x[i] - y[i]), size = absolute(y[i]) < least ? least : absolute(y[i]);                 \
            into[i] = QUOTIENT_OF(type, error, size, absolute(x[i] * half - y[i] * half), absolute(y[i]) * half);       \
        }                                                                                                               \
    }                                                                                                                   \
                                                                                                                        \
    VECTORISED static void symmetric_percentages_##type(type *restrict into, const type *x, const type *y, int64_t rows) \
    {                                                                                                                   \
        const type least = (type)SMALLEST_TARGET, half = (type)0.5;                                                     \
        for (int64_t i = 0; i < rows; i++) {                                                                            \
            type a = absolute(x[i]), b = absolute(y[i]), error = absolute(x[i] - y[i]);                                 \
            type size = a + b < least ? least : a + b;                                                                  \
            into[i] = 2 * QUOTIENT_OF(type, error, size, absolute(x[i] * half - y[i] * half), a * half + b * half);     \
        }                                                                                                               \
    }                                                                                                                   \
                                                                                                                        \
    /* By squares, as `power` in float_terms.py. */                                                                     \
    VECTORISED static void powers_##type(type *restrict into, const type *x, const type *y, int64_t rows, int64_t exponent) \
    {                                                                                                                   \
        type square[BLOCK];                                                                                             \
        for (int64_t i = 0; i < rows; i++)                                                                              \
            square[i] = absolute(x[i] - y[i]), into[i] = 1;                                                             \
        for (; exponent; exponent >>= 1) {                                                                              \
            if (exponent & 1)                                                                                           \
                for (int64_t i = 0; i < rows; i++)                                                                      \
                    into[i] *= square[i];                                                                               \
            if (exponent > 1)                                                                                           \
                for (int64_t i = 0; i < rows; i++)                                                                      \
                    square[i] *= square[i];                                                                             \
        }                                                                                                               \
    }

RATIOS(float, fabsf)
RATIOS(double, fabs)

#define COMPUTED(type)                                                                                                  \
    static void compute_##type(const struct column *c, type *restrict into, const type *x, const type *y, int64_t rows) \
    {                                                                                                                   \
        if (c->kind == PERCENTAGE)                                                                                      \
            percentages_##type(into, x, y, rows);                                                                       \
        else if (c->kind == SYMMETRIC)                                                                                  \
            symmetric_percentages_##type(into, x, y, rows);                                                             \
        else if (c->kind == POWER)                                                                                      \
            powers_##type(into, x, y, rows, c->row_stride);                                                             \
        else                                                                                                            \
            select_##type(c->kind, into, x, y, rows);                                                                   \
    }

#define SELECTED(type)                                                                                                  \
    VECTORISED static void select_##type(int64_t kind, type *restrict into, const type *x, const type *y, int64_t rows) \
    {                                                                                                                   \
        if (kind == LARGER)                                                                                             \
            for (int64_t i = 0; i < rows; i++)                                                                          \
                into[i] = LARGER_OF(x[i], y[i]);                                                                        \
        else if (kind == SMALLER)                                                                                       \
            for (int64_t i = 0; i < rows; i++)                                                                          \
                into[i] = SMALLER_OF(x[i], y[i]);                                                                       \
        else                                                                                                            \
            for (int64_t i = 0; i < rows; i++)                                                                          \
                into[i] = (type)SIGN_OF(x[i], y[i]);                                                                    \
    }

SELECTED(float)
SELECTED(double)
COMPUTED(float)
COMPUTED(double)

/* A column with its numbers. */
static struct block *computed(struct block *blocks, const struct column *column, int64_t place, int64_t rows)
{
    struct block *into = blocks + place;
    if (!into->pending)
        return into;
    const struct column *c = column + place;
    struct block *x = blocks + c->of[0], *y = blocks + c->of[1];
    if (x->wide || y->wide) {
        compute_double(c, into->values, doubles_of(x, rows), doubles_of(y, rows), whole(rows));
        bound_doubles(into, into->values, rows);
    } else {
        compute_float(c, into->near, x->narrow, y->narrow, whole(rows));
        bound_floats(into, into->near, rows);
    }
    into->pending = 0;
    return into;
}
