/* The arithmetic of terms of two columns between the logarithms and sums that torch computes.
 *
 * Each step rounds as the operators of torch do that it stands for, in tally/sums/float_terms.py and tally/rows.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

/* One function for both widths: `wide` says whether the numbers are float64. */
#define BOTH(returned, name, declared, ...)                                                                             \
    returned assay_##name declared                                                                                      \
    {                                                                                                                   \
        return wide ? name##_double(__VA_ARGS__) : name##_float(__VA_ARGS__);                                           \
    }

#define real float
#define BITS uint32_t
#define OF_WIDTH(name) name##_float
#define ABSOLUTE fabsf
#define SMALLEST_NORMAL 0x1p-126f
#define LARGE 0x1p64f
#include "pair_steps.h"
#undef real
#undef BITS
#undef OF_WIDTH
#undef ABSOLUTE
#undef SMALLEST_NORMAL
#undef LARGE

#define real double
#define BITS uint64_t
#define OF_WIDTH(name) name##_double
#define ABSOLUTE fabs
#define SMALLEST_NORMAL 0x1p-1022
#define LARGE 0x1p512
#include "pair_steps.h"

BOTH(int64_t, growths, (int64_t wide, int64_t count, const void *x, const void *y, void *growth), count, x, y, growth)
BOTH(int64_t, half_errors, (int64_t wide, int64_t count, const void *x, const void *y, void *half, void *tail), count, x, y,
     half, tail)
BOTH(int64_t, sines, (int64_t wide, int64_t count, void *grown), count, grown)
BOTH(int64_t, far_errors, (int64_t wide, int64_t count, const void *x, const void *y, const void *tail, void *near), count, x,
     y, tail, near)
BOTH(int64_t, scaled_products, (int64_t wide, int64_t rows, int64_t width, const void *x, const void *y, void *products), rows,
     width, x, y, products)
BOTH(int64_t, cosines, (int64_t wide, int64_t rows, const void *sums, void *values), rows, sums, values)
BOTH(int64_t, copied_shares, (int64_t wide, int64_t count, int64_t width, const void *x, const void *y, void *both), count,
     width, x, y, both)
BOTH(int64_t, share_ratios, (int64_t wide, int64_t rows, int64_t width, const void *sums, void *both, void *ratios), rows,
     width, sums, both, ratios)
BOTH(int64_t, share_differences,
     (int64_t wide, int64_t rows, int64_t width, const void *sums, void *both, void *differences), rows, width, sums, both,
     differences)
BOTH(int64_t, doubled_shares, (int64_t wide, int64_t count, const void *both, void *doubled), count, both, doubled)
BOTH(int64_t, mean_divergences,
     (int64_t wide, int64_t count, const void *both, const void *logs, const void *far, void *terms), count, both, logs, far,
     terms)
