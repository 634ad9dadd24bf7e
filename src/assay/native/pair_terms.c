/* The arithmetic of terms of two columns between the logarithms and sums that torch computes.
 *
 * Each step rounds as the operators of torch do that it stands for, in tally/sums/float_terms.py and tally/rows.
 */
#include <math.h>
#include <stdint.h>

#include "clones.h"

/* One function for both widths: `wide` says whether the numbers are float64. */
#define BOTH(returned, name, declared, ...)                                                                             \
    returned assay_##name declared                                                                                      \
    {                                                                                                                   \
        return wide ? name##_double(__VA_ARGS__) : name##_float(__VA_ARGS__);                                           \
    }

#define STEPS(type, absolute, smallest_normal, large)                                                                    \
    /* |x - y| / (min(x, y) + 1); returns whether a number is not above -1, or a quotient not finite. */                \
    VECTORISED static int64_t growths_##type(int64_t count, const type *x, const type *y, type *growth)                 \
    {                                                                                                                   \
        int64_t outside = 0;                                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                                           \
            type smaller = x[i] < y[i] ? x[i] : y[i];                                                                   \
            growth[i] = absolute(x[i] - y[i]) / (smaller + 1);                                                          \
            outside |= !((x[i] > -1) & (y[i] > -1) & (growth[i] < (type)INFINITY));                                     \
        }                                                                                                               \
        return outside;                                                                                                 \
    }                                                                                                                   \
                                                                                                                        \
    /* Half of min(|x - y|, 1), and -2 |x - y|; returns whether an error is not below 1. */                             \
    VECTORISED static int64_t half_errors_##type(int64_t count, const type *x, const type *y, type *half, type *tail)   \
    {                                                                                                                   \
        int64_t far = 0;                                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                                           \
            type error = absolute(x[i] - y[i]);                                                                         \
            half[i] = (error > 1 ? 1 : error) * (type)0.5;                                                              \
            tail[i] = error * -2;                                                                                       \
            far |= !(error < 1);                                                                                        \
        }                                                                                                               \
        return far;                                                                                                     \
    }                                                                                                                   \
                                                                                                                        \
    /* 2 sinh(h) ** 2 of expm1(h). */                                                                                   \
    VECTORISED static int64_t sines_##type(int64_t count, type *grown)                                                  \
    {                                                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                                           \
            type sine = (grown[i] + grown[i] / (grown[i] + 1)) * (type)0.5;                                             \
            grown[i] = sine * sine * 2;                                                                                 \
        }                                                                                                               \
        return 0;                                                                                                       \
    }                                                                                                                   \
                                                                                                                        \
    /* The log-cosh of errors of 1 and more, from log1p(exp(-2 |x - y|)), in the place of that of the others. */        \
    VECTORISED static int64_t far_errors_##type(int64_t count, const type *x, const type *y, const type *tail, type *near) \
    {                                                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                                           \
            type error = absolute(x[i] - y[i]), far = tail[i] + (error - (type)0.6931471805599453);                     \
            near[i] = error < 1 ? near[i] : far;                                                                        \
        }                                                                                                               \
        return 0;                                                                                                       \
    }                                                                                                                   \
                                                                                                                        \
    /* Whether a number of rows is not positive, or their sums or shares may leave the range of normal numbers. */      \
    VECTORISED static int64_t has_odd_shares_##type(int64_t count, int64_t width, const type *x)                        \
    {                                                                                                                   \
        type low = (type)INFINITY, high = 0;                                                                            \
        int64_t odd = 0;                                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                                           \
            odd |= !(x[i] > 0);                                                                                         \
            low = x[i] < low ? x[i] : low;                                                                              \
            high = x[i] > high ? x[i] : high;                                                                           \
        }                                                                                                               \
        return odd || high > large || (double)low / ((double)high * (double)width) < 2 * smallest_normal;               \
    }                                                                                                                   \

STEPS(float, fabsf, 0x1p-126, 0x1p64f)
STEPS(double, fabs, 0x1p-1022, 0x1p512)

BOTH(int64_t, growths, (int64_t wide, int64_t count, const void *x, const void *y, void *growth), count, x, y, growth)
BOTH(int64_t, half_errors, (int64_t wide, int64_t count, const void *x, const void *y, void *half, void *tail), count, x, y,
     half, tail)
BOTH(int64_t, sines, (int64_t wide, int64_t count, void *grown), count, grown)
BOTH(int64_t, far_errors, (int64_t wide, int64_t count, const void *x, const void *y, const void *tail, void *near), count, x,
     y, tail, near)
BOTH(int64_t, has_odd_shares, (int64_t wide, int64_t count, int64_t width, const void *x), count, width, x)
