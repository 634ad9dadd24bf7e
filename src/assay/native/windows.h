/* Sums of a block of numbers that are exact, of each expression in columns by the same loop.
 *
 * A block of doubles is summed in windows: adding and subtracting a large constant rounds every number to a multiple of a
 * quantum so coarse that the block's sum fits the 53 bits of a double. Such sums are exact in any order, so they vectorise.
 * What the first window leaves is exact as well and goes to a second one. (Pre-rounding to a common quantum: Demmel and
 * Nguyen, "Fast Reproducible Floating-Point Summation", 2013.)
 *
 * A block that comes from memory is read twice, for its bounds and for its sums; without the hint to have the next one on
 * its way, processors would begin to read it only when the sums are formed.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

#define BLOCK 1024 /* 2 ** 10 numbers */
#define LANES 8
#define SUMS 4 /* formed side by side, so that no addition waits for the one before */
#define STEP (SUMS * LANES)
#define INFINITE INT64_C(0x7ff0000000000000)
#define ALIGNED __attribute__((aligned(64)))
#define ON_ITS_WAY(x) __builtin_prefetch((x) + BLOCK)

typedef double doubles __attribute__((vector_size(8 * LANES), may_alias, aligned(8)));
typedef uint32_t bits __attribute__((may_alias));
typedef int64_t integers __attribute__((vector_size(8 * LANES), may_alias, aligned(8)));

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

INLINE double total_of(const doubles *sum)
{
    doubles all = sum[0] + sum[1] + (sum[2] + sum[3]);
    double total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += all[lane];
    return total;
}

/* Floats as doubles; written so that compilers make one instruction of it. */
INLINE doubles widened(const float *x)
{
    return (doubles){x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
}

/* Two functions for an expression in columns: `plain_sum_of_<name>` of a block whose sum is exact, and
 * `window_sums_of_<name>`, the sums of two windows. There a sum that starts from `coarse` rounds what is added to the quantum
 * of the first window, and what that leaves is summed exactly, too. Each expression is a double without rounding, so that to
 * fuse a multiplication with an addition changes nothing. */
#define SUMS_OF(name, expression, ...)                                                                                  \
    PLAIN_SUM_OF(name, expression, __VA_ARGS__)                                                                         \
    WINDOW_SUMS_OF(name, expression, __VA_ARGS__)

#define PLAIN_SUM_OF(name, expression, ...)                                                                             \
    FUSED static double plain_sum_of_##name(__VA_ARGS__, int64_t rows)                                                  \
    {                                                                                                                   \
        doubles sum[SUMS] = {{0}};                                                                                      \
        for (int64_t i = 0; i < rows; i += STEP)                                                                        \
            for (int k = 0; k < SUMS; k++) {                                                                            \
                int64_t at = i + k * LANES;                                                                             \
                sum[k] += expression;                                                                                   \
            }                                                                                                           \
        return total_of(sum);                                                                                           \
    }

#define WINDOW_SUMS_OF(name, expression, ...)                                                                           \
    FUSED static void window_sums_of_##name(__VA_ARGS__, int64_t rows, double coarse, double *first, double *second)    \
    {                                                                                                                   \
        doubles sum[SUMS], rest[SUMS], start = {0};                                                                     \
        start += coarse;                                                                                                \
        for (int k = 0; k < SUMS; k++)                                                                                  \
            sum[k] = start, rest[k] = start - start;                                                                    \
        for (int64_t i = 0; i < rows; i += STEP)                                                                        \
            for (int k = 0; k < SUMS; k++) {                                                                            \
                int64_t at = i + k * LANES;                                                                             \
                doubles number = expression, next = sum[k] + number;                                                    \
                rest[k] += number - (next - sum[k]);                                                                    \
                sum[k] = next;                                                                                          \
            }                                                                                                           \
        add_lanes(sum, rest, start, first, second);                                                                     \
    }

/* Numbers of columns, and of the block behind them a hint. */
INLINE doubles of_doubles(const double *x)
{
    ON_ITS_WAY(x);
    return *(const doubles *)x;
}

INLINE doubles of_floats(const float *x)
{
    ON_ITS_WAY(x);
    return widened(x);
}

INLINE doubles magnitude(doubles x)
{
    return (doubles)((integers)x & INT64_MAX);
}

SUMS_OF(doubles, of_doubles(x + at), const double *x)
WINDOW_SUMS_OF(floats, of_floats(x + at), const float *x)
SUMS_OF(products, of_floats(x + at) * of_floats(y + at), const float *x, const float *y)
SUMS_OF(differences, magnitude(of_floats(x + at) - of_floats(y + at)), const float *x, const float *y)

/* The same for xx, xy and yy of two columns, which are read once. */
FUSED static void moment_sums(const float *x, const float *y, int64_t rows, const double *coarse, double *first,
                              double *second)
{
    doubles xx[2], xy[2], yy[2], rest_xx[2] = {{0}}, rest_xy[2] = {{0}}, rest_yy[2] = {{0}}, zero = {0};
    for (int k = 0; k < 2; k++) /* side by side */
        xx[k] = zero + coarse[0], xy[k] = zero + coarse[1], yy[k] = zero + coarse[2];
    for (int64_t i = 0; i < rows; i += 2 * LANES) {
        ON_ITS_WAY(x + i);
        ON_ITS_WAY(y + i);
        for (int k = 0; k < 2; k++) {
            doubles a = widened(x + i + k * LANES), b = widened(y + i + k * LANES);
            doubles next_xx = xx[k] + a * a, next_xy = xy[k] + a * b, next_yy = yy[k] + b * b;
            rest_xx[k] += a * a - (next_xx - xx[k]);
            rest_xy[k] += a * b - (next_xy - xy[k]);
            rest_yy[k] += b * b - (next_yy - yy[k]);
            xx[k] = next_xx, xy[k] = next_xy, yy[k] = next_yy;
        }
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

