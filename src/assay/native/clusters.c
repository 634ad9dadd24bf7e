/* Exact sums of the points of each cluster on the CPU, as tally/points/cluster_sums.py has them, and distances of points to
 * the centroids of their clusters.
 *
 * Points are read a block of rows at a time. The numbers of a block are integers times a power of two, as its bounds tell;
 * they are added in int64, to which integers are added exactly, and these sums to limbs when they might not hold more. A
 * block of numbers that spread over more bits is added number by number.
 */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "clones.h"
#include "limbs.h"

#define BLOCK_BITS 14
#define NUMBERS (1 << BLOCK_BITS) /* of a block: they stay in a core's cache */
#define SUM_BITS 62
#define MOST_BITS 20       /* of the number of rows for which sums have room, where numbers allow it */
#define LEAST_UNIT (-1022) /* one in the power of two that it is of is a double */
#define NONE INT64_MAX

/* What all numbers of a block are: below 2 ** above, and multiples of 2 ** last_bit, which is NONE if all are 0. */
struct bounds {
    int64_t above, last_bit, finite;
};

/* Sums of a matrix in units of 2 ** unit, and for how many rows of numbers below 2 ** above they have room. */
struct sums {
    int64_t *numbers, unit, above, rows, room;
};

INLINE uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The largest magnitude, and the smallest other than 0, one of which less is above all; and all digits in one. */
#define BOUNDS(type, word, digits, bias, infinite)                                                                      \
    VECTORISED static struct bounds bounds_of_##type(const type *x, int64_t count)                                      \
    {                                                                                                                   \
        word high = 0, low = ~(word)0, any = 0, mask = ~(word)0 >> 1;                                                   \
        for (int64_t i = 0; i < count; i++) {                                                                           \
            word magnitude = bits_of_##type(x[i]) & mask, less = magnitude - 1;                                         \
            high = magnitude > high ? magnitude : high;                                                                 \
            low = less < low ? less : low;                                                                              \
            any |= magnitude;                                                                                           \
        }                                                                                                               \
        if (!high)                                                                                                      \
            return (struct bounds){0, NONE, 1};                                                                         \
        word fraction = any & (((word)1 << digits) - 1);                                                                \
        int64_t zeros = fraction ? __builtin_ctzll(fraction) : digits;                                                  \
        int64_t least = (int64_t)((low + 1) >> digits), most = (int64_t)(high >> digits);                               \
        int64_t last_bit = (least ? least : 1) - bias - digits + zeros;                                                 \
        return (struct bounds){(most ? most : 1) - bias + 1, last_bit, high < infinite};                                \
    }

BOUNDS(float, uint32_t, 23, 127, UINT32_C(0x7f800000))
BOUNDS(double, uint64_t, 52, 1023, UINT64_C(0x7ff0000000000000))

/* Add each row of points to the sums of its cluster. */
#define ADD_ROWS(type)                                                                                                  \
    VECTORISED static void add_rows_of_##type(int64_t *restrict sums, const type *points, const int64_t *cluster,       \
                                              int64_t rows, int64_t features, double scale)                             \
    {                                                                                                                   \
        for (int64_t i = 0; i < rows; i++) {                                                                            \
            int64_t *restrict own = sums + cluster[i] * features;                                                       \
            for (int64_t j = 0; j < features; j++)                                                                      \
                own[j] += (int64_t)(points[i * features + j] * scale);                                                  \
        }                                                                                                               \
    }

ADD_ROWS(float)
ADD_ROWS(double)

static void empty(struct sums *sums, int64_t count, int64_t *limbs, int64_t words, int64_t origin)
{
    for (int64_t k = 0; k < count; k++) {
        int64_t sum = sums->numbers[k];
        if (sum)
            add_wide_number(limbs + k * words, sums->unit - origin, sum < 0 ? -(uint64_t)sum : (uint64_t)sum, sum < 0);
        sums->numbers[k] = 0;
    }
    sums->rows = sums->room = 0;
}

/* Make room for a block; else say that its numbers spread over too many bits. */
static int make_room(struct sums *sums, struct bounds of, int64_t rows, int64_t count, int64_t *limbs, int64_t words,
                     int64_t origin)
{
    if (sums->rows + rows <= sums->room && of.above <= sums->above && of.last_bit >= sums->unit)
        return 1;
    empty(sums, count, limbs, words, origin);
    int64_t least = of.above + MOST_BITS - SUM_BITS;
    int64_t unit = least >= LEAST_UNIT && least < of.last_bit ? least : of.last_bit;
    if (unit < LEAST_UNIT || of.above - unit > SUM_BITS - BLOCK_BITS)
        return 0;
    sums->unit = unit, sums->above = of.above, sums->room = INT64_C(1) << (SUM_BITS - (of.above - unit));
    return 1;
}

/* Add points `(rows, features)` to the limbs of their clusters, and count them. Where a label is out of range or a number is
 * not finite, or without memory, nothing is done, and `done` stays 0. */
#define SUM_CLUSTERS(type)                                                                                              \
    void assay_sum_clusters_of_##type(int64_t rows, int64_t features, int64_t clusters, const type *points,             \
                                      const int64_t *cluster, int64_t words, int64_t origin, int64_t *limbs,            \
                                      int64_t *counts, int64_t *done)                                                   \
    {                                                                                                                   \
        int64_t outside = 0, count = clusters * features, step = features < NUMBERS ? NUMBERS / features : 1;           \
        for (int64_t i = 0; i < rows; i++)                                                                              \
            outside += (uint64_t)cluster[i] >= (uint64_t)clusters;                                                      \
        int64_t blocks = (rows + step - 1) / step;                                                                      \
        fenv_t before;                                                                                                  \
        fegetenv(&before);                                                                                              \
        fesetenv(FE_DFL_ENV);                                                                                           \
        struct bounds *bounds = malloc((size_t)(blocks + 1) * sizeof *bounds);                                          \
        struct sums sums = {calloc((size_t)count, sizeof(int64_t)), 0, 0, 0, 0};                                        \
        int64_t valid = !outside && bounds && sums.numbers;                                                             \
        for (int64_t k = 0; valid && k < blocks; k++) {                                                                 \
            int64_t first = k * step, some = rows - first < step ? rows - first : step;                                 \
            bounds[k] = bounds_of_##type(points + first * features, some * features);                                   \
            valid = bounds[k].finite;                                                                                   \
        }                                                                                                               \
        for (int64_t k = 0; valid && k < blocks; k++) {                                                                 \
            int64_t first = k * step, some = rows - first < step ? rows - first : step;                                 \
            const type *of_block = points + first * features;                                                           \
            if (bounds[k].last_bit == NONE)                                                                             \
                continue;                                                                                               \
            if (make_room(&sums, bounds[k], some, count, limbs, words, origin)) {                                       \
                add_rows_of_##type(sums.numbers, of_block, cluster + first, some, features, ldexp(1, (int)-sums.unit)); \
                sums.rows += some;                                                                                      \
                continue;                                                                                               \
            }                                                                                                           \
            for (int64_t i = 0; i < some * features; i++)                                                               \
                add_number(limbs + (cluster[first + i / features] * features + i % features) * words, origin,           \
                           of_block[i]);                                                                                \
        }                                                                                                               \
        if (valid) {                                                                                                    \
            empty(&sums, count, limbs, words, origin);                                                                  \
            for (int64_t k = 0; k < count; k++)                                                                         \
                carry(limbs + k * words, words);                                                                        \
            for (int64_t i = 0; i < rows; i++)                                                                          \
                counts[cluster[i]]++;                                                                                   \
        }                                                                                                               \
        *done = valid;                                                                                                  \
        fesetenv(&before);                                                                                              \
        free(bounds);                                                                                                   \
        free(sums.numbers);                                                                                             \
    }

SUM_CLUSTERS(float)
SUM_CLUSTERS(double)

/* An integer times 2 ** unit over a count, rounded once. */
static double rounded_quotient(__int128 sum, int64_t count, int64_t unit)
{
    uint128 whole = sum < 0 ? -(uint128)sum : (uint128)sum;
    uint64_t high = (uint64_t)(whole >> 64);
    if (!whole || !count)
        return 0;
    int shift = high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)whole);
    uint128 shifted = whole << shift, quotient = shifted / (uint64_t)count; /* of more than 64 bits; the last one says */
    quotient |= shifted % (uint64_t)count != 0;                             /* whether there are more */
    return ldexp(sum < 0 ? -(double)quotient : (double)quotient, (int)unit - shift);
}

/* Add numbers in units of 2 ** unit to the sums of their clusters. */
static void add_wide_rows(__int128 *sums, const double *points, const int64_t *cluster, int64_t rows, int64_t features,
                          int64_t unit)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < features; j++) {
            struct number x = number_of(points[i * features + j]);
            int64_t shift = x.position - unit; /* below 0 only bits that are 0 are lost */
            uint64_t rest = x.significand >> (shift >= 0 ? 0 : shift < -63 ? 63 : -shift);
            __int128 units = (__int128)rest << (shift > 0 ? shift : 0);
            sums[cluster[i] * features + j] += x.negative ? -units : units;
        }
}

/* The sum of the points `(rows, features)` of each cluster, and their mean, all numbers rounded once. Where a label is out of
 * range, a number is not finite, or numbers spread over too many bits, or without memory, `done` stays 0. */
void assay_cluster_means(int64_t rows, int64_t features, int64_t clusters, const double *points, const int64_t *cluster,
                         double *totals, double *means, int64_t *done)
{
    int64_t outside = 0, count = clusters * features, bits = 64 - (rows ? __builtin_clzll((uint64_t)rows) : 64);
    for (int64_t i = 0; i < rows; i++)
        outside += (uint64_t)cluster[i] >= (uint64_t)clusters;
    struct bounds of = bounds_of_double(points, rows * features);
    int64_t unit = of.last_bit == NONE ? 0 : of.last_bit, wide = of.above + bits - unit;
    int64_t near_the_ends = unit < LEAST_UNIT + 64 || of.above + bits > 1023;
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    __int128 *sums = calloc((size_t)count, sizeof *sums);
    int64_t *narrow = calloc((size_t)count, sizeof *narrow), *counts = calloc((size_t)clusters, sizeof *counts);
    if (!outside && of.finite && wide <= 126 && !near_the_ends && sums && narrow && counts) {
        if (wide <= SUM_BITS)
            add_rows_of_double(narrow, points, cluster, rows, features, ldexp(1, (int)-unit));
        else
            add_wide_rows(sums, points, cluster, rows, features, unit);
        for (int64_t i = 0; i < rows; i++)
            counts[cluster[i]]++;
        for (int64_t k = 0; k < count; k++) {
            __int128 sum = sums[k] + narrow[k];
            totals[k] = ldexp((double)sum, (int)unit);
            means[k] = rounded_quotient(sum, counts[k / features], unit);
        }
        *done = 1;
    }
    fesetenv(&before);
    free(counts);
    free(narrow);
    free(sums);
}

/* The sum of squared differences in the order in which NumPy adds up a row: pairwise, from eight sums side by side. */
static double squared_distance(const double *x, const double *y, int64_t count)
{
    if (count < 8) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += (x[i] - y[i]) * (x[i] - y[i]);
        return sum;
    }
    if (count > 128) {
        int64_t half = count / 2 - count / 2 % 8;
        return squared_distance(x, y, half) + squared_distance(x + half, y + half, count - half);
    }
    double sums[8];
    int64_t i = 8;
    for (int k = 0; k < 8; k++)
        sums[k] = (x[k] - y[k]) * (x[k] - y[k]);
    for (; i < count - count % 8; i += 8)
        for (int k = 0; k < 8; k++)
            sums[k] += (x[i + k] - y[i + k]) * (x[i + k] - y[i + k]);
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < count; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

/* The Euclidean distance of each point to the centroid of its cluster. */
VECTORISED void assay_radii(int64_t rows, int64_t features, const double *points, const int64_t *cluster,
                            const double *centroids, double *radii)
{
    for (int64_t i = 0; i < rows; i++)
        radii[i] = sqrt(squared_distance(points + i * features, centroids + cluster[i] * features, features));
}
