/* Exact sums of products of float32 numbers on the CPU: the same limbs as tally/sums/exact.py, some twenty times as fast.
 *
 * The columns are read once, a block of rows at a time, and all products are formed from that block. A product of two
 * float32 numbers has 48 bits and is exact in a double. A block of doubles is summed in windows: adding and subtracting a
 * large constant rounds every number to a multiple of a quantum so coarse that the block's sum fits the 53 bits of a
 * double. Such sums are exact in any order, so they vectorise. What the first window leaves is exact as well and goes to
 * a second one. Whether two windows hold a product, the bounds of its columns tell, and where they do not, those of the
 * product itself; a block that spreads over more bits is added number by number. (Pre-rounding to a common quantum:
 * Demmel and Nguyen, "Fast Reproducible Floating-Point Summation", 2013.)
 *
 * Rounding to nearest and gradual underflow are set for the duration of a call.
 */
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "limbs.h"

#define BLOCK 1024 /* 2 ** 10 numbers */
#define LANES 8
#define SUMS 4 /* formed side by side, so that no addition waits for the one before */
#define STEP (SUMS * LANES)
#define MOST_QUANTUM (1024 - 54) /* of a window whose sums are no infinity */
#define INFINITE INT64_C(0x7ff0000000000000)
#define LEAST_BIT (-1074) /* of any double */
#define ALIGNED __attribute__((aligned(64)))

typedef double doubles __attribute__((vector_size(8 * LANES), may_alias));
typedef uint32_t bits __attribute__((may_alias));
typedef int64_t integers __attribute__((vector_size(8 * LANES), may_alias));

/* The bits of the largest magnitude in a block, and of the smallest other than zero. Bits of magnitudes order as they do. */
VECTORISED static void extent(const double *block, int64_t rows, int64_t *largest, int64_t *smallest)
{
    integers high = {0}, low = high + INFINITE;
    for (int64_t i = 0; i < rows; i += LANES) {
        integers magnitude = *(const integers *)(block + i) & INT64_MAX;
        integers counted = magnitude | ((magnitude == 0) & INFINITE);
        integers above = magnitude > high, below = counted < low;
        high = (magnitude & above) | (high & ~above);
        low = (counted & below) | (low & ~below);
    }
    *largest = 0, *smallest = INFINITE;
    for (int lane = 0; lane < LANES; lane++) {
        *largest = high[lane] > *largest ? high[lane] : *largest;
        *smallest = low[lane] < *smallest ? low[lane] : *smallest;
    }
}

/* Add up what two windows have in all lanes. */
static inline void add_lanes(const doubles *sum, const doubles *rest, doubles start, double *first, double *second)
{
    doubles high = {0}, low = {0};
    for (int k = 0; k < SUMS; k++)
        high += sum[k] - start, low += rest[k];
    *first = *second = 0;
    for (int lane = 0; lane < LANES; lane++)
        *first += high[lane], *second += low[lane];
}

/* Floats as doubles; written so that compilers make one instruction of it. */
INLINE doubles widened(const float *x)
{
    return (doubles){x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
}

/* Numbers of a block, which has either floats or doubles. */
INLINE doubles numbers(const double *block, const float *narrow, int64_t i)
{
    return narrow ? widened(narrow + i) : *(const doubles *)(block + i);
}

INLINE double plain_sum_of(const double *block, const float *narrow, int64_t rows)
{
    doubles sum[SUMS] = {{0}};
    for (int64_t i = 0; i < rows; i += STEP)
        for (int k = 0; k < SUMS; k++)
            sum[k] += numbers(block, narrow, i + k * LANES);
    doubles all = sum[0] + sum[1] + (sum[2] + sum[3]);
    double total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += all[lane];
    return total;
}

/* The sum of a block whose sum is exact. */
VECTORISED static double plain_sum(const double *block, const float *narrow, int64_t rows)
{
    return narrow ? plain_sum_of(NULL, narrow, rows) : plain_sum_of(block, NULL, rows);
}

INLINE void window_sums_of(const double *block, const float *narrow, int64_t rows, double coarse, double *first,
                                  double *second)
{
    doubles sum[SUMS], rest[SUMS], start = {0};
    start += coarse;
    for (int k = 0; k < SUMS; k++)
        sum[k] = start, rest[k] = start - start;
    for (int64_t i = 0; i < rows; i += STEP)
        for (int k = 0; k < SUMS; k++) {
            doubles number = numbers(block, narrow, i + k * LANES);
            doubles next = sum[k] + number;
            rest[k] += number - (next - sum[k]);
            sum[k] = next;
        }
    add_lanes(sum, rest, start, first, second);
}

/* The sums of two windows: a sum that starts from `coarse` rounds what is added to the quantum of the first, and what
 * that leaves is summed exactly, too. */
VECTORISED static void window_sums(const double *block, const float *narrow, int64_t rows, double coarse, double *first,
                                   double *second)
{
    if (narrow)
        window_sums_of(NULL, narrow, rows, coarse, first, second);
    else
        window_sums_of(block, NULL, rows, coarse, first, second);
}

/* The same for the exact products of two columns. To fuse multiplications with additions changes nothing then. */
FUSED static void product_sums(const float *x, const float *y, int64_t rows, double coarse, double *first,
                               double *second)
{
    doubles sum[SUMS], rest[SUMS], start = {0};
    start += coarse;
    for (int k = 0; k < SUMS; k++)
        sum[k] = start, rest[k] = start - start;
    for (int64_t i = 0; i < rows; i += STEP)
        for (int k = 0; k < SUMS; k++) {
            doubles a = widened(x + i + k * LANES), b = widened(y + i + k * LANES);
            doubles next = sum[k] + a * b;
            rest[k] += a * b - (next - sum[k]);
            sum[k] = next;
        }
    add_lanes(sum, rest, start, first, second);
}

/* The same for the squares of two columns and their product: xx, xy and yy, for which the columns are read once. */
FUSED static void moment_sums(const float *x, const float *y, int64_t rows, const double *coarse, double *first,
                              double *second)
{
    doubles xx[2], xy[2], yy[2], rest_xx[2] = {{0}}, rest_xy[2] = {{0}}, rest_yy[2] = {{0}}, zero = {0};
    for (int k = 0; k < 2; k++) /* side by side */
        xx[k] = zero + coarse[0], xy[k] = zero + coarse[1], yy[k] = zero + coarse[2];
    for (int64_t i = 0; i < rows; i += 2 * LANES)
        for (int k = 0; k < 2; k++) {
            doubles a = widened(x + i + k * LANES), b = widened(y + i + k * LANES);
            doubles next_xx = xx[k] + a * a, next_xy = xy[k] + a * b, next_yy = yy[k] + b * b;
            rest_xx[k] += a * a - (next_xx - xx[k]);
            rest_xy[k] += a * b - (next_xy - xy[k]);
            rest_yy[k] += b * b - (next_yy - yy[k]);
            xx[k] = next_xx, xy[k] = next_xy, yy[k] = next_yy;
        }
    doubles sums[3] = {xx[0] - coarse[0] + (xx[1] - coarse[0]), xy[0] - coarse[1] + (xy[1] - coarse[1]),
                       yy[0] - coarse[2] + (yy[1] - coarse[2])};
    doubles rests[3] = {rest_xx[0] + rest_xx[1], rest_xy[0] + rest_xy[1], rest_yy[0] + rest_yy[1]};
    for (int k = 0; k < 3; k++) {
        first[k] = second[k] = 0;
        for (int lane = 0; lane < LANES; lane++)
            first[k] += sums[k][lane], second[k] += rests[k][lane];
    }
}

static void zero_nonfinite(double *block, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        if (!isfinite(block[i]))
            block[i] = 0;
}

static int exponent_of(int64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return ilogb(number);
}

/* Add a block of doubles of at most `digits` significant bits, all multiples of 2 ** least_bit, but for what is not finite. */
static void add_block(int64_t *limbs, int64_t origin, double *block, int64_t rows, int digits, int64_t least_bit)
{
    int64_t largest, smallest;
    double first, second;
    extent(block, rows, &largest, &smallest);
    if (largest >= INFINITE) {
        zero_nonfinite(block, rows);
        extent(block, rows, &largest, &smallest);
    }
    if (largest == 0)
        return;
    int64_t last_bit = exponent_of(smallest) - digits + 1;
    last_bit = last_bit > least_bit ? last_bit : least_bit;
    int quantum = exponent_of(largest) + 1 + 10 - 53; /* 2 ** 10 numbers in the 53 bits of a double */
    if (last_bit >= quantum && quantum <= MOST_QUANTUM) {
        add_number(limbs, origin, plain_sum(block, NULL, rows));
    } else if (last_bit >= quantum - 1 + 10 - 53 && quantum <= MOST_QUANTUM) { /* the first window leaves at most half a quantum of each */
        window_sums(block, NULL, rows, ldexp(1.5, 52 + quantum), &first, &second);
        add_number(limbs, origin, first);
        add_number(limbs, origin, second);
    } else {
        for (int64_t i = 0; i < rows; i++)
            add_number(limbs, origin, block[i]);
    }
}

/* A block of one column, and bounds of its values other than 0, all in powers of two. */
struct block {
    double values[BLOCK] ALIGNED;
    float near[BLOCK];   /* a copy of floats that do not lie side by side, or that fill no whole step */
    const float *narrow; /* float32, with zeros up to a whole step; none where they were float64 */
    int64_t above;       /* all magnitudes are below 2 ** above */
    int64_t last_bit;    /* all values are multiples of 2 ** last_bit */
    int64_t empty;       /* whether all values are 0 */
    int64_t nonfinite;   /* whether one is not finite */
    int64_t wide;        /* whether they were float64 */
    int64_t widened;     /* whether float32 are in `values`, too */
    int64_t unused;      /* a whole cache line */
};

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

VECTORISED static void widen(double *restrict values, const float *x, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        values[i] = x[i];
}

/* The values as doubles. */
static const double *doubles_of(struct block *b, int64_t rows)
{
    if (!b->wide && !b->widened)
        widen(b->values, b->narrow, (rows + STEP - 1) / STEP * STEP), b->widened = 1;
    return b->values;
}

static int64_t exponent_of_float(uint32_t number)
{
    return number >> 23 ? number >> 23 : 1;
}

static void load_floats(struct block *into, const float *x, int64_t stride, const int64_t *order, int64_t rows)
{
    uint32_t largest, smallest;
    into->narrow = x;
    if (order || stride != 1 || rows % STEP) {
        for (int64_t i = 0; i < rows; i++)
            into->near[i] = x[(order ? order[i] : i) * stride];
        for (int64_t i = rows; i % STEP; i++)
            into->near[i] = 0;
        into->narrow = into->near;
    }
    extent_of_floats(into->narrow, (rows + STEP - 1) / STEP * STEP, &largest, &smallest);
    into->widened = 0;
    into->above = exponent_of_float(largest) - 126;
    into->last_bit = exponent_of_float(smallest) - 150;
    into->empty = largest == 0;
    into->nonfinite = largest >= 0x7f800000;
}

static void load_doubles(struct block *into, const double *x, int64_t stride, const int64_t *order, int64_t rows)
{
    int64_t largest, smallest;
    into->narrow = NULL;
    for (int64_t i = 0; i < rows; i++)
        into->values[i] = x[(order ? order[i] : i) * stride];
    for (int64_t i = rows; i % STEP; i++)
        into->values[i] = 0;
    extent(into->values, (rows + LANES - 1) / LANES * LANES, &largest, &smallest);
    into->empty = largest == 0;
    into->nonfinite = largest >= INFINITE;
    if (!into->empty && !into->nonfinite) {
        into->above = exponent_of(largest) + 1;
        into->last_bit = exponent_of(smallest) - 52;
    }
}

VECTORISED static void multiply(double *block, const double *by, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        block[i] *= by[i];
}

/* Split numbers of 48 bits into two of 24 bits, exactly (Dekker 1971, with Veltkamp's constant). What is not finite
 * stays whole. */
VECTORISED static void split(double *block, double *low, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        double scaled = block[i] * 536870913.0; /* 2 ** 29 + 1 */
        double high = scaled - (scaled - block[i]);
        low[i] = high - high == 0 ? block[i] - high : 0;
        block[i] = high - high == 0 ? high : block[i];
    }
}


/* Add the product of one column or of two whose bounds say that two windows hold it; else say that they do not. */
static int add_bounded(int64_t *limbs, int64_t origin, const struct block *x, const struct block *y, int64_t rows)
{
    int64_t above = x->above + (y ? y->above : 0), last_bit = x->last_bit + (y ? y->last_bit : 0);
    int64_t quantum = above + 10 - 53; /* 2 ** 10 numbers in the 53 bits of a double */
    double first, second;
    if (x->nonfinite || (y && y->nonfinite) || last_bit < quantum - 1 + 10 - 53 || quantum > MOST_QUANTUM)
        return 0;
    if (!y && last_bit >= quantum) {
        add_number(limbs, origin, plain_sum(x->values, x->narrow, rows));
        return 1;
    }
    double coarse = ldexp(1.5, (int)(52 + quantum));
    if (y)
        product_sums(x->narrow, y->narrow, rows, coarse, &first, &second);
    else
        window_sums(x->values, x->narrow, rows, coarse, &first, &second);
    add_number(limbs, origin, first);
    add_number(limbs, origin, second);
    return 1;
}

/* Whether two windows hold the product of two columns, as their bounds say; and the constant of the first window. */
static int window_of(const struct block *x, const struct block *y, double *coarse)
{
    int64_t quantum = x->above + y->above + 10 - 53, last_bit = x->last_bit + y->last_bit;
    if (x->nonfinite || y->nonfinite || last_bit < quantum - 1 + 10 - 53 || quantum > MOST_QUANTUM)
        return 0;
    *coarse = ldexp(1.5, (int)(52 + quantum));
    return 1;
}

/* Add the product of one to three columns of float32, or of one of float64. */
static void add_any(int64_t *limbs, int64_t origin, int64_t factors, struct block *const *columns, int64_t rows)
{
    double block[BLOCK] ALIGNED, low[BLOCK] ALIGNED;
    memcpy(block, doubles_of(columns[0], rows), sizeof *block * (size_t)rows);
    for (int64_t k = 1; k < factors; k++) {
        if (k == 2) { /* a product of three has 72 bits: the first two are split, so that each part is exact */
            split(block, low, rows);
            multiply(low, doubles_of(columns[k], rows), rows);
            add_block(limbs, origin, low, rows, 48, LEAST_BIT);
        }
        multiply(block, doubles_of(columns[k], rows), rows);
    }
    add_block(limbs, origin, block, rows, factors > 1 ? 48 : columns[0]->wide ? 53 : 24, LEAST_BIT);
}

/* The products of two columns, rounded, and what rounding left, which is exact unless it is too small for a double. */
VECTORISED static void two_products(const double *x, const double *y, double *product, double *rest, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        product[i] = x[i] * y[i];
        rest[i] = __builtin_fma(x[i], y[i], -product[i]);
    }
}

/* Add the product of two columns of which one is float64 in two such parts; else say that they would not be exact. */
static int add_wide_pair(int64_t *limbs, int64_t origin, struct block *x, struct block *y, int64_t rows)
{
    double product[BLOCK] ALIGNED, rest[BLOCK] ALIGNED;
    if (x->nonfinite || y->nonfinite || x->above + y->above > MOST_QUANTUM || x->last_bit + y->last_bit < LEAST_BIT)
        return 0;
    two_products(doubles_of(x, rows), doubles_of(y, rows), product, rest, rows);
    add_block(limbs, origin, product, rows, 53, x->last_bit + y->last_bit);
    add_block(limbs, origin, rest, rows, 53, x->last_bit + y->last_bit);
    return 1;
}

/* Add the product of two or three columns of which one is float64. */
static void add_wide(int64_t *limbs, int64_t origin, int64_t factors, struct block *const *columns, int64_t rows)
{
    for (int64_t k = 0; k < factors; k++)
        doubles_of(columns[k], rows);
    for (int64_t i = 0; i < rows; i++) {
        struct number x = number_of(columns[0]->values[i]), y = number_of(columns[1]->values[i]);
        struct number z = factors == 3 ? number_of(columns[2]->values[i]) : (struct number){0, 0, 0, 1};
        int64_t position = x.position + y.position + z.position - origin;
        uint128 product = (uint128)x.significand * y.significand;
        int negative = x.negative ^ y.negative ^ z.negative;
        if (!x.finite || !y.finite || !z.finite)
            continue;
        if (factors == 2) {
            add_wide_number(limbs, position, product, negative);
        } else {
            add_wide_number(limbs, position, (uint128)(uint64_t)product * z.significand, negative);
            add_wide_number(limbs, position + 64, (product >> 64) * z.significand, negative);
        }
    }
}

/* Python gives these as arrays of int64. */
_Static_assert(sizeof(void *) == sizeof(int64_t), "addresses have 64 bits");

struct column {
    const void *start;
    int64_t row_stride, output_stride;
    int64_t *special, *nonfinite; /* of the first output: three counts, and one; or none */
    int64_t outputs_apart;        /* from these counts of a cell of rows to those of the next one */
    int64_t wide;                 /* float64, otherwise float32 */
};

struct product {
    int64_t *limbs; /* of the first output; those of the others follow */
    int64_t words, origin;
    int64_t words_apart; /* from the limbs of a cell of rows to those of the next one */
    int64_t factors, columns[3];
};

/* Count the values of a block that are +inf, -inf and NaN. */
static void count_special(int64_t *special, int64_t *nonfinite, const double *values, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        if (!isfinite(values[i])) {
            special[isnan(values[i]) ? 2 : values[i] > 0 ? 0 : 1]++;
            if (nonfinite)
                (*nonfinite)++;
        }
}

/* Which rows are added, and where: `rows` from `start`, or those that `order` lists, into the limbs of a cell. */
struct segment {
    int64_t start, rows;
    const int64_t *order;
    int64_t cell, output;
};

static int64_t *limbs_of(const struct product *p, const struct segment *at)
{
    return p->limbs + at->cell * p->words_apart + at->output * p->words;
}

/* Whether three products are xx, xy and yy of two columns. */
static int are_moments(const struct product *p)
{
    int64_t x = p[0].columns[0], y = p[2].columns[0];
    return p[0].factors == 2 && p[1].factors == 2 && p[2].factors == 2 && p[0].columns[1] == x && p[2].columns[1] == y &&
           p[1].columns[0] == x && p[1].columns[1] == y;
}

/* Add such products where two windows hold each of them; else say that they do not. */
static int add_moments(const struct product *p, const struct segment *at, const struct block *blocks, int64_t rows)
{
    const struct block *x = blocks + p[0].columns[0], *y = blocks + p[2].columns[0];
    double coarse[3], first[3], second[3];
    if (x->wide || y->wide || x->empty || y->empty || !window_of(x, x, coarse) || !window_of(x, y, coarse + 1) ||
        !window_of(y, y, coarse + 2))
        return 0;
    moment_sums(x->narrow, y->narrow, rows, coarse, first, second);
    for (int k = 0; k < 3; k++) {
        add_number(limbs_of(p + k, at), p[k].origin, first[k]);
        add_number(limbs_of(p + k, at), p[k].origin, second[k]);
    }
    return 1;
}

static void add_rows(const struct segment *at, int64_t columns, const struct column *column, int64_t products,
                     const struct product *product, struct block *blocks)
{
    int64_t rows = at->rows, whole = (rows + STEP - 1) / STEP * STEP; /* with zeros that `load` puts after the last row */
    for (int64_t k = 0; k < columns; k++) {
        const struct column *c = column + k;
        int64_t first = at->start * c->row_stride + at->output * c->output_stride;
        int64_t counts = at->cell * c->outputs_apart + at->output;
        blocks[k].wide = c->wide;
        if (c->wide)
            load_doubles(blocks + k, (const double *)c->start + first, c->row_stride, at->order, rows);
        else
            load_floats(blocks + k, (const float *)c->start + first, c->row_stride, at->order, rows);
        if (c->special && blocks[k].nonfinite)
            count_special(c->special + 3 * counts, c->nonfinite ? c->nonfinite + counts : NULL,
                          doubles_of(blocks + k, rows), rows);
    }
    for (int64_t k = 0; k < products; k++) {
        const struct product *p = product + k;
        if (k + 2 < products && are_moments(p) && add_moments(p, at, blocks, whole)) {
            k += 2;
            continue;
        }
        struct block *own[3] = {0};
        int64_t *limbs = limbs_of(p, at), empty = 0, wide = 0;
        for (int64_t j = 0; j < p->factors; j++) {
            own[j] = blocks + p->columns[j];
            empty |= own[j]->empty;
            wide |= p->factors > 1 && own[j]->wide;
        }
        if (empty)
            continue;
        if (wide && (p->factors == 3 || !add_wide_pair(limbs, p->origin, own[0], own[1], whole)))
            add_wide(limbs, p->origin, p->factors, own, rows);
        else if (!wide && (p->factors == 3 || !add_bounded(limbs, p->origin, own[0], own[1], whole)))
            add_any(limbs, p->origin, p->factors, own, whole);
    }
}

/* Add the sums over the rows of a cell, all of them or those that `order` lists. */
static void add_cell(struct segment at, int64_t outputs, int64_t columns, const struct column *column,
                     int64_t products, const struct product *product, struct block *blocks)
{
    for (int64_t j = 0; j < outputs; j++) {
        for (int64_t start = 0; start < at.rows; start += BLOCK) {
            int64_t rows = at.rows - start < BLOCK ? at.rows - start : BLOCK;
            struct segment part = {at.order ? 0 : start, rows, at.order ? at.order + start : NULL, at.cell, j};
            add_rows(&part, columns, column, products, product, blocks);
        }
        at.output = j;
        for (int64_t k = 0; k < products; k++)
            carry(limbs_of(product + k, &at), product[k].words);
    }
}

/* For each output, add the sums over the rows of products of columns to their limbs; products that are not finite are
 * left out. Row `i` of output `j` of a column is `start[i * row_stride + j * output_stride]`. `blocks` is room for one
 * block a column. */
void assay_sum_products(int64_t rows, int64_t outputs, int64_t columns, const struct column *column, int64_t products,
                        const struct product *product, struct block *blocks)
{
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    add_cell((struct segment){0, rows, NULL, 0, 0}, outputs, columns, column, products, product, blocks);
    fesetenv(&before);
}

/* The same for many cells: the rows of cell `k` are `order[starts[k]]` to `order[starts[k + 1] - 1]`. */
void assay_sum_cells(int64_t cells, const int64_t *starts, const int64_t *order, int64_t outputs, int64_t columns,
                     const struct column *column, int64_t products, const struct product *product,
                     struct block *blocks)
{
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    for (int64_t k = 0; k < cells; k++) {
        struct segment at = {0, starts[k + 1] - starts[k], order + starts[k], k, 0};
        if (at.rows)
            add_cell(at, outputs, columns, column, products, product, blocks);
    }
    fesetenv(&before);
}

/* List rows by the cell that each is in, those of one cell in their order. `starts` has `cells + 1` zeros; it is given
 * where the rows of each cell begin, and at its end how many there are. */
void assay_order_cells(int64_t rows, const int64_t *cell, int64_t cells, int64_t *starts, int64_t *order)
{
    for (int64_t i = 0; i < rows; i++)
        starts[cell[i]]++;
    for (int64_t k = 0, first = 0; k <= cells; k++) {
        int64_t size = starts[k];
        starts[k] = first;
        first += size;
    }
    for (int64_t i = 0; i < rows; i++)
        order[starts[cell[i]]++] = i;
    for (int64_t k = cells; k > 0; k--)
        starts[k] = starts[k - 1];
    starts[0] = 0;
}

/* The larger of two numbers, and the smaller one with the other sign; 0 where they are equal or one is NaN. */
#define LARGER_AND_SMALLER(type)                                                                                        \
    VECTORISED void assay_larger_and_smaller_##type(const type *restrict a, const type *restrict b, int64_t rows,       \
                                                    type *restrict larger, type *restrict smaller)                      \
    {                                                                                                                   \
        for (int64_t i = 0; i < rows; i++) {                                                                            \
            type x = a[i], y = b[i], above = x > y ? x : x < y ? y : 0, below = x > y ? y : x < y ? x : 0;              \
            larger[i] = above;                                                                                          \
            smaller[i] = -below;                                                                                        \
        }                                                                                                               \
    }

LARGER_AND_SMALLER(float)
LARGER_AND_SMALLER(double)
