/* Ratios of the energies of signals and errors on the CPU, as tally/rows/audio_terms.py defines them: the same operations in the
 * same order, a signal at a time, so that what they give in between stays in the cache.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

#define MOST_SOURCES 16
#define RAISED_BITS 30
#define HALF_OF_BITS INT32_C(-4096) /* the upper half of a significand */

/* A signal, and the signal without its mean if that is to be subtracted; both near 1. */
struct signal {
    const float *raw;
    float *scaled, *centred;
    float largest, energy;
    int32_t finite, silent;
};

struct shape {
    int64_t channels, size, length; /* length = channels * size */
    int64_t zero_mean;
};

static float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The power of two that brings a number into [1, 2), and its exponent. */
static float unit(float number, int64_t *exponent)
{
    int32_t field;
    memcpy(&field, &number, sizeof field);
    field = (field >> 23) & 255;
    field = field < 1 ? 1 : field > 253 ? 253 : field;
    *exponent = field - 127;
    return float_of((254 - field) << 23);
}

/* The smallest and the largest value, and whether all are finite: of integers that order as floats do. */
VECTORISED static int32_t extent(const float *x, int64_t size, float *low, float *high)
{
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (int64_t i = 0; i < size; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits ^= (bits >> 31) & INT32_MAX;
        least = bits < least ? bits : least;
        most = bits > most ? bits : most;
    }
    *low = float_of(least ^ ((least >> 31) & INT32_MAX)), *high = float_of(most ^ ((most >> 31) & INT32_MAX));
    return least > INT32_C(-0x7f800001) && most < INT32_C(0x7f800000);
}

VECTORISED static void add(float *restrict x, const float *restrict y, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        x[i] += y[i];
}

/* The second half is added to the first, until one number is left. */
static float sum_in_place(float *x, int64_t size)
{
    while (size > 1) {
        int64_t half = (size + 1) / 2;
        add(x, x + half, size - half);
        size = half;
    }
    return x[0];
}

VECTORISED static void halve(const float *x, float *restrict room, int64_t half, int64_t rest)
{
    for (int64_t i = 0; i < rest; i++)
        room[i] = x[i] + x[half + i];
}

static float sum(const float *x, int64_t size, float *room)
{
    int64_t half = (size + 1) / 2, rest = size - half;
    halve(x, room, half, rest);
    if (rest < half)
        room[rest] = x[rest];
    return sum_in_place(room, half);
}

VECTORISED static void halve_products(const float *x, const float *y, float *restrict room, int64_t half, int64_t rest)
{
    for (int64_t i = 0; i < rest; i++)
        room[i] = x[i] * y[i] + x[half + i] * y[half + i];
}

static float sum_of_products(const float *x, const float *y, int64_t size, float *room)
{
    int64_t half = (size + 1) / 2, rest = size - half;
    halve_products(x, y, room, half, rest);
    if (rest < half)
        room[rest] = x[rest] * y[rest];
    return sum_in_place(room, half);
}

VECTORISED static void scale_and_shift(float *restrict into, const float *x, float scale, float shift, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        into[i] = x[i] * scale - shift;
}

VECTORISED static void subtract(float *restrict into, const float *x, float mean, float factor, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        into[i] = (x[i] - mean) * factor;
}

VECTORISED static void scaled_difference(float *restrict into, const float *x, const float *y, float scale, float factor,
                                         int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        into[i] = (x[i] * scale - y[i] * scale) * factor;
}

VECTORISED static void subtract_multiple(float *restrict x, const float *y, float factor, float raised, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        x[i] = (x[i] - factor * y[i]) * raised;
}

/* `x - factor * y`: the products of halves of significands are exact. */
VECTORISED static void subtract_precisely(float *restrict into, const float *x, const float *y, float factor, int64_t size)
{
    int32_t bits;
    memcpy(&bits, &factor, sizeof bits);
    float upper, factor_high = float_of(bits & HALF_OF_BITS), factor_low = factor - factor_high;
    for (int64_t i = 0; i < size; i++) {
        memcpy(&bits, y + i, sizeof bits);
        bits &= HALF_OF_BITS;
        memcpy(&upper, &bits, sizeof upper);
        into[i] = x[i] - factor_high * upper - factor_high * (y[i] - upper) - factor_low * y[i];
    }
}

/* Without the mean of each channel, times a power of two. */
static void centre(float *into, const float *x, const struct shape *s, float factor, float *room)
{
    for (int64_t c = 0; c < s->length; c += s->size)
        subtract(into + c, x + c, sum(x + c, s->size, room) / (float)s->size, factor, s->size);
}

/* An error without the mean of each channel, times a power of two. */
static void centre_error(float *error, const struct shape *s, float factor, float *room)
{
    for (int64_t c = 0; c < s->length; c += s->size)
        subtract(error + c, error + c, error[c], 1, s->size);
    centre(error, error, s, factor, room);
}

/* Look at a signal; and scale it, with its energy, where that is `wanted`. There is room for two numbers a channel. */
static void prepare(struct signal *signal, const float *raw, const struct shape *s, float *room, int wanted)
{
    float *low = room, *high = room + s->channels;
    int64_t exponent;
    int32_t constant = 1;
    signal->raw = raw, signal->largest = 0, signal->finite = 1;
    for (int64_t c = 0; c < s->channels; c++) {
        signal->finite &= extent(raw + c * s->size, s->size, low + c, high + c);
        constant &= low[c] == high[c];
        signal->largest = fmaxf(signal->largest, fmaxf(high[c], -low[c]));
    }
    signal->silent = signal->finite && (s->zero_mean ? constant : signal->largest == 0);
    if (!wanted || !signal->finite || signal->silent)
        return;
    float scale = unit(signal->largest, &exponent);
    for (int64_t c = 0; c < s->channels; c++) {
        float least = low[c] * scale, most = high[c] * scale, middle = (least + most) * 0.5f;
        float shift = s->zero_mean && fabsf(middle) >= most - least ? middle : 0;
        scale_and_shift(signal->scaled + c * s->size, raw + c * s->size, scale, shift, s->size);
    }
    if (s->zero_mean)
        centre(signal->centred, signal->scaled, s, 1, room);
    signal->energy = sum_of_products(signal->centred, signal->centred, s->length, room);
}

/* The ratio times 2 ** exponent of the energies of the target and of the difference. */
static float plain_ratio(const struct signal *p, const struct signal *t, const struct shape *s, float *error, float *room,
                         int64_t *exponent)
{
    int64_t taken;
    float scale = unit(fmaxf(p->largest, t->largest), &taken), raised = ldexpf(1, RAISED_BITS);
    unit(t->largest, exponent);
    scaled_difference(error, p->raw, t->raw, scale, s->zero_mean ? 1 : raised, s->length);
    if (s->zero_mean)
        centre_error(error, s, raised, room);
    *exponent = 2 * (*exponent - taken + RAISED_BITS);
    return t->energy / sum_of_products(error, error, s->length, room);
}

/* The same of the projection of preds on the target and of what is left. */
static float projected_ratio(const struct signal *p, const struct signal *t, const struct shape *s, float *error,
                             float *room, int64_t *exponent)
{
    float factor = sum_of_products(p->centred, t->centred, s->length, room) / t->energy;
    subtract_precisely(error, p->scaled, t->scaled, factor, s->length);
    if (s->zero_mean)
        centre_error(error, s, 1, room);
    float rest = sum_of_products(error, t->centred, s->length, room) / t->energy;
    subtract_multiple(error, t->centred, rest, ldexpf(1, RAISED_BITS), s->length);
    factor = fabsf(factor + rest);
    factor *= unit(factor, exponent);
    *exponent = 2 * (*exponent + RAISED_BITS);
    return factor * factor * t->energy / sum_of_products(error, error, s->length, room);
}

/* For each of `rows` groups of `sources` signals the ratios of all targets to all preds: `ratio[row][target][preds]`, which
 * are to be multiplied by powers of two, and three `faults`, of which at most one is 1. `room` is for
 * `(4 * sources + 2) * channels * size` numbers. */
void assay_signal_ratios(int64_t rows, int64_t sources, int64_t channels, int64_t size, const float *preds,
                         const float *target, int64_t projected, int64_t zero_mean, float *ratio, int64_t *exponent,
                         uint8_t *faults, float *room)
{
    struct shape s = {channels, size, channels * size, zero_mean};
    struct signal own[MOST_SOURCES], true[MOST_SOURCES];
    int64_t total = rows * sources * sources, k = 0;
    for (int64_t j = 0; j < 2 * sources; j++) {
        struct signal *signal = j < sources ? own + j : true + j - sources;
        signal->scaled = signal->centred = room;
        room += s.length;
        if (zero_mean)
            signal->centred = room;
        room += s.length;
    }
    float *error = room;
    room += s.length;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t j = 0; j < sources; j++) {
            int64_t start = (row * sources + j) * s.length;
            prepare(own + j, preds + start, &s, error, projected != 0);
            prepare(true + j, target + start, &s, error, 1);
        }
        for (int64_t j = 0; j < sources; j++)
            for (int64_t i = 0; i < sources; i++, k++) {
                const struct signal *p = own + i, *t = true + j;
                int infinite = !p->finite || !t->finite, silent = t->silent && !infinite;
                int mute = projected && p->silent && !infinite && !silent;
                faults[k] = infinite, faults[total + k] = silent, faults[2 * total + k] = mute;
                ratio[k] = 1, exponent[k] = 0;
                if (!infinite && !silent && !mute)
                    ratio[k] = (projected ? projected_ratio : plain_ratio)(p, t, &s, error, room, exponent + k);
            }
    }
}
