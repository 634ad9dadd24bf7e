/* Exact sums of products of float32 and float64 numbers on the CPU: the same limbs as tally/sums/exact.py, some twenty times
 * as fast.
 *
 * The columns are read once, a block of rows at a time, and all products are formed from that block, as are columns that are
 * computed from others (blocks.h). A product of two float32 numbers has 48 bits and is exact in a double. Blocks of doubles
 * are summed in windows (windows.h). Whether two windows hold a product, the bounds of its columns tell, and where they do
 * not, those of the product itself; a block that spreads over more bits is added number by number.
 *
 * Rounding to nearest and gradual underflow are set for the duration of a call.
 */
#include <fenv.h>

#include "blocks.h"

#define MOST_QUANTUM (1024 - 54) /* of a window whose sums are no infinity */
#define LEAST_BIT (-1074) /* of any double */

static void zero_nonfinite(double *block, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        if (!isfinite(block[i]))
            block[i] = 0;
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
        add_number(limbs, origin, plain_sum_of_doubles(block, rows));
    } else if (last_bit >= quantum - 1 + 10 - 53 && quantum <= MOST_QUANTUM) { /* the first window leaves at most half a quantum of each */
        window_sums_of_doubles(block, rows, ldexp(1.5, 52 + quantum), &first, &second);
        add_number(limbs, origin, first);
        add_number(limbs, origin, second);
    } else {
        for (int64_t i = 0; i < rows; i++)
            add_number(limbs, origin, block[i]);
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
    if (last_bit >= quantum) {
        add_number(limbs, origin, y ? plain_sum_of_products(x->narrow, y->narrow, rows)
                                  : x->wide ? plain_sum_of_doubles(x->large, rows) : x->sum);
        return 1;
    }
    double coarse = ldexp(1.5, (int)(52 + quantum));
    if (y)
        window_sums_of_products(x->narrow, y->narrow, rows, coarse, &first, &second);
    else if (x->wide)
        window_sums_of_doubles(x->large, rows, coarse, &first, &second);
    else
        window_sums_of_floats(x->narrow, rows, coarse, &first, &second);
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
    const double *factor[3] = {0};
    for (int64_t k = 0; k < factors; k++)
        factor[k] = doubles_of(columns[k], rows);
    for (int64_t i = 0; i < rows; i++) {
        struct number x = number_of(factor[0][i]), y = number_of(factor[1][i]);
        struct number z = factors == 3 ? number_of(factor[2][i]) : (struct number){0, 0, 0, 1};
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

/* Count what is not finite in a column. */
static void count_of(const struct column *c, const struct segment *at, struct block *b)
{
    int64_t counts = at->cell * c->outputs_apart + at->output;
    if (c->special && b->nonfinite)
        count_special(c->special + 3 * counts, c->nonfinite ? c->nonfinite + counts : NULL, doubles_of(b, at->rows), at->rows);
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

/* Whether two products are the larger and the smaller one of the same two columns. */
static int are_differences(const struct product *p, const struct column *column)
{
    const struct column *larger = column + p[0].columns[0], *smaller = column + p[1].columns[0];
    return p[0].factors == 1 && p[1].factors == 1 && larger->kind == LARGER && smaller->kind == SMALLER &&
           larger->of[0] == smaller->of[0] && larger->of[1] == smaller->of[1] && p[0].limbs == p[1].limbs;
}

/* Add the absolute differences of two columns where all of them are exact in a double; else say that they are not. */
static int add_differences(int64_t *limbs, int64_t origin, const struct block *x, const struct block *y, int64_t rows)
{
    double first, second;
    if (x->wide || y->wide || x->nonfinite || y->nonfinite)
        return 0;
    int64_t above = 1 + (x->above > y->above ? x->above : y->above);
    int64_t last_bit = y->empty || (!x->empty && x->last_bit < y->last_bit) ? x->last_bit : y->last_bit;
    int64_t quantum = above + 10 - 53; /* 2 ** 10 numbers in the 53 bits of a double */
    if (above - last_bit > 53)
        return 0;
    if (last_bit >= quantum) {
        add_number(limbs, origin, plain_sum_of_differences(x->narrow, y->narrow, rows));
        return 1;
    }
    window_sums_of_differences(x->narrow, y->narrow, rows, ldexp(1.5, (int)(52 + quantum)), &first, &second);
    add_number(limbs, origin, first);
    add_number(limbs, origin, second);
    return 1;
}

static void load_columns(const struct segment *at, int64_t columns, const struct column *column, struct block *blocks)
{
    for (int64_t k = 0; k < columns; k++) {
        const struct column *c = column + k;
        int64_t counts = at->cell * c->outputs_apart + at->output;
        int64_t *nonfinite = c->nonfinite ? c->nonfinite + counts : NULL;
        load(blocks + k, c, at->start * c->row_stride + at->output * c->output_stride, at->order, at->rows, nonfinite);
        if (!blocks[k].pending)
            count_of(c, at, blocks + k);
    }
}

/* Add one product of one to three columns. */
static void add_product(const struct product *p, const struct segment *at, const struct column *column, struct block *blocks)
{
    struct block *own[3] = {0};
    int64_t *limbs = limbs_of(p, at), rows = at->rows, empty = 0, wide = 0;
    for (int64_t j = 0; j < p->factors; j++) {
        int64_t is_new = blocks[p->columns[j]].pending;
        own[j] = computed(blocks, column, p->columns[j], rows);
        if (is_new)
            count_of(column + p->columns[j], at, own[j]);
        empty |= own[j]->empty;
        wide |= p->factors > 1 && own[j]->wide;
    }
    if (empty)
        return;
    if (wide && (p->factors == 3 || !add_wide_pair(limbs, p->origin, own[0], own[1], whole(rows))))
        add_wide(limbs, p->origin, p->factors, own, rows);
    else if (!wide && (p->factors == 3 || !add_bounded(limbs, p->origin, own[0], own[1], whole(rows))))
        add_any(limbs, p->origin, p->factors, own, whole(rows));
}

static void add_rows(const struct segment *at, int64_t columns, const struct column *column, int64_t products,
                     const struct product *product, struct block *blocks)
{
    load_columns(at, columns, column, blocks);
    for (int64_t k = 0; k < products; k++) {
        const struct product *p = product + k;
        const int64_t *of = column[p->columns[0]].of;
        if (k + 2 < products && are_moments(p) && add_moments(p, at, blocks, whole(at->rows)))
            k += 2;
        else if (k + 1 < products && are_differences(p, column) &&
                 add_differences(limbs_of(p, at), p->origin, blocks + of[0], blocks + of[1], whole(at->rows)))
            k += 1;
        else
            add_product(p, at, column, blocks);
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

/* Mark the columns that are summed alone. */
static void mark_summed(int64_t columns, int64_t products, const struct product *product, struct block *blocks)
{
    for (int64_t k = 0; k < columns; k++)
        blocks[k].summed = 0;
    for (int64_t k = 0; k < products; k++)
        blocks[product[k].columns[0]].summed |= product[k].factors == 1;
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
    mark_summed(columns, products, product, blocks);
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
    mark_summed(columns, products, product, blocks);
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
