/* Exact sums of products of float32 numbers on the CPU: the same limbs as tally/exact.py, some ten times as fast.
 *
 * A product of two float32 numbers has 48 bits and is exact in a double. A block of doubles is summed in windows: adding
 * and subtracting a large constant rounds every number to a multiple of a quantum so coarse that the block's sum fits the
 * 53 bits of a double. Such sums are exact in any order, so they vectorise. What the first window leaves is exact as
 * well and goes to a second one. A block whose numbers spread over more bits than two windows hold is added number by
 * number. (Pre-rounding to a common quantum: Demmel and Nguyen, "Fast Reproducible Floating-Point Summation", 2013.)
 *
 * Rounding to nearest and gradual underflow are set for the duration of a call, whatever the process has set.
 */
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "limbs.h"

#define BLOCK 1024 /* 2 ** 10 numbers */
#define LANES 8
#define INFINITE INT64_C(0x7ff0000000000000)
#define ALIGNED __attribute__((aligned(64)))

typedef double doubles __attribute__((vector_size(8 * LANES), may_alias));
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

/* The sum of a block whose sum is exact. */
VECTORISED static double plain_sum(const double *block, int64_t rows)
{
    doubles sum = {0};
    for (int64_t i = 0; i < rows; i += LANES)
        sum += *(const doubles *)(block + i);
    double total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += sum[lane];
    return total;
}

/* The sums of two windows; `coarse` rounds to the quantum of the first. What it leaves is summed exactly, too. */
VECTORISED static void window_sums(const double *block, int64_t rows, double coarse, double *first, double *second)
{
    doubles sum = {0}, rest = {0};
    for (int64_t i = 0; i < rows; i += LANES) {
        doubles numbers = *(const doubles *)(block + i);
        doubles rounded = (numbers + coarse) - coarse;
        sum += rounded;
        rest += numbers - rounded;
    }
    *first = *second = 0;
    for (int lane = 0; lane < LANES; lane++)
        *first += sum[lane], *second += rest[lane];
}

static void take_out_strange(double *block, int64_t rows)
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

/* Add a block of doubles of at most `digits` significant bits, but for what is not finite. */
static void add_block(int64_t *limbs, int64_t origin, double *block, int64_t rows, int digits)
{
    int64_t largest, smallest;
    double first, second;
    extent(block, rows, &largest, &smallest);
    if (largest >= INFINITE) {
        take_out_strange(block, rows);
        extent(block, rows, &largest, &smallest);
    }
    if (largest == 0)
        return;
    int last_bit = exponent_of(smallest) - digits + 1;
    int quantum = exponent_of(largest) + 1 + 10 - 53; /* 2 ** 10 numbers in the 53 bits of a double */
    if (last_bit >= quantum) {
        add_number(limbs, origin, plain_sum(block, rows));
    } else if (last_bit >= quantum - 1 + 10 - 53) { /* the first window leaves at most half a quantum of each */
        window_sums(block, rows, ldexp(1.5, 52 + quantum), &first, &second);
        add_number(limbs, origin, first);
        add_number(limbs, origin, second);
    } else {
        for (int64_t i = 0; i < rows; i++)
            add_number(limbs, origin, block[i]);
    }
}

VECTORISED static void load(double *block, const float *x, int64_t stride, int64_t rows)
{
    if (stride == 1)
        for (int64_t i = 0; i < rows; i++)
            block[i] = x[i];
    else
        for (int64_t i = 0; i < rows; i++)
            block[i] = x[i * stride];
    for (int64_t i = rows; i % LANES; i++)
        block[i] = 0;
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


static void add_column(int64_t *limbs, int64_t origin, int64_t factors, int64_t rows, const float *const *columns,
                       const int64_t *strides)
{
    double block[BLOCK] ALIGNED, factor[BLOCK] ALIGNED, low[BLOCK] ALIGNED;
    for (int64_t start = 0; start < rows; start += BLOCK) {
        int64_t taken = rows - start < BLOCK ? rows - start : BLOCK;
        int64_t whole = (taken + LANES - 1) / LANES * LANES; /* with zeros that `load` puts after the last row */
        for (int64_t k = 0; k < factors; k++) {
            load(k ? factor : block, columns[k] + start * strides[k], strides[k], taken);
            if (k == 2) { /* a product of three has 72 bits: the first two are split, so that each part is exact */
                split(block, low, whole);
                multiply(low, factor, whole);
                add_block(limbs, origin, low, whole, 48);
            }
            if (k)
                multiply(block, factor, whole);
        }
        add_block(limbs, origin, block, whole, factors == 1 ? 24 : 48);
    }
}

/* For each output, add the sum over rows of the product of `factors` columns (1 to 3) to its `words` limbs; products that
 * are not finite are left out. Factor `k` of row `i` and output `j` is
 * `columns[k][i * row_strides[k] + j * output_strides[k]]`. */
void assay_add_products(int64_t *limbs, int64_t words, int64_t origin, int64_t factors, int64_t rows, int64_t outputs,
                        const float *const *columns, const int64_t *row_strides, const int64_t *output_strides)
{
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    for (int64_t j = 0; j < outputs; j++) {
        const float *own[3] = {0};
        for (int64_t k = 0; k < factors; k++)
            own[k] = columns[k] + j * output_strides[k];
        add_column(limbs + j * words, origin, factors, rows, own, row_strides);
        carry(limbs + j * words, words);
    }
    fesetenv(&before);
}

VECTORISED static int64_t count_strange(const float *x, int64_t stride, int64_t rows)
{
    int32_t strange = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t bits;
        memcpy(&bits, x + i * stride, sizeof bits);
        strange += (bits & 0x7f800000) == 0x7f800000;
    }
    return strange;
}

/* For each output, count the values of a column that are +inf, -inf and NaN, in three cells. */
void assay_count_special(int64_t *special, int64_t rows, int64_t outputs, const float *column, int64_t row_stride,
                         int64_t output_stride)
{
    for (int64_t j = 0; j < outputs; j++)
        for (int64_t start = 0; start < rows; start += BLOCK) {
            const float *x = column + j * output_stride + start * row_stride;
            int64_t taken = rows - start < BLOCK ? rows - start : BLOCK;
            if (row_stride == 1 ? !count_strange(x, 1, taken) : !count_strange(x, row_stride, taken))
                continue;
            for (int64_t i = 0; i < taken; i++) {
                float value = x[i * row_stride];
                if (!isfinite(value))
                    special[3 * j + (isnan(value) ? 2 : value > 0 ? 0 : 1)]++;
            }
        }
}
