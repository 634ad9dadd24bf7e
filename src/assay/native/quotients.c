/* Quotients of polynomials in exact sums, for values: integers of many words, then two doubles and a bound of the error. */
#include <math.h>

#include "limbs.h"

#define MOST_WORDS 64
#define MOST_STEPS 32
#define DIGIT 64
#define NONE (-1)

enum operation { LOAD, ADD, SUBTRACT, MULTIPLY };
enum root { PLAIN, ROOT, OVER_ROOT };

/* (-1) ** negative * sum(words[k] * 2 ** (64 * (at + k))); `count` is 0 for zero, and NONE for what does not fit. The
 * first and the last word are not 0. */
struct wide {
    int64_t at, count;
    int negative;
    uint64_t words[MOST_WORDS];
};

static void trim(struct wide *x)
{
    int64_t zeros = 0;
    while (x->count > 0 && !x->words[x->count - 1])
        x->count--;
    while (zeros < x->count && !x->words[zeros])
        zeros++;
    if (zeros) {
        memmove(x->words, x->words + zeros, 8 * (size_t)(x->count - zeros));
        x->at += zeros;
        x->count -= zeros;
    }
}

/* The integer that limbs in any form stand for. */
static void load(struct wide *x, const int64_t *limbs, int64_t words)
{
    int64_t over = 0, first = 0, last = words, k;
    while (first < words && !limbs[first])
        first++;
    while (last > first && !limbs[last - 1])
        last--;
    first &= ~INT64_C(1);
    x->at = first / 2;
    x->count = x->negative = 0;
    for (k = first; k < last || (over != 0 && over != -1); k++) {
        int64_t total = (k < last ? limbs[k] : 0) + over, place = (k - first) / 2;
        if (place >= MOST_WORDS) {
            x->count = NONE;
            return;
        }
        over = total >> WORD;
        uint64_t digit = (uint64_t)total & UINT32_MAX;
        x->words[place] = k % 2 ? x->words[place] | digit << WORD : digit;
        x->count = place + 1;
    }
    if (over) { /* -1: two's complement */
        uint64_t carried = 1;
        x->negative = 1;
        if (k % 2)
            x->words[x->count - 1] |= (uint64_t)UINT32_MAX << WORD;
        for (int64_t place = 0; place < x->count; place++) {
            x->words[place] = ~x->words[place] + carried;
            carried = carried && !x->words[place];
        }
        if (carried && x->count == MOST_WORDS) {
            x->count = NONE;
            return;
        }
        if (carried) /* -2 ** 64, -2 ** 128, ... */
            x->words[x->count++] = 1;
    }
    trim(x);
}

static inline uint64_t word_at(const struct wide *x, int64_t place)
{
    return place >= x->at && place < x->at + x->count ? x->words[place - x->at] : 0;
}

static int magnitude_is_less(const struct wide *a, const struct wide *b)
{
    int64_t above = a->at + a->count, top = b->at + b->count;
    if (above != top)
        return above < top;
    for (int64_t k = top - 1; k >= a->at || k >= b->at; k--)
        if (word_at(a, k) != word_at(b, k))
            return word_at(a, k) < word_at(b, k);
    return 0;
}

static void add(struct wide *sum, const struct wide *a, const struct wide *b, int subtract)
{
    int sign = b->negative ^ subtract;
    if (a->count <= 0 || b->count <= 0) {
        *sum = a->count == NONE || b->count != 0 ? *b : *a;
        if (a->count == NONE)
            sum->count = NONE;
        else if (b->count != 0)
            sum->negative = sign;
        return;
    }
    int opposite = a->negative != sign;
    const struct wide *big = a, *small = b;
    sum->negative = a->negative;
    if (opposite && magnitude_is_less(a, b))
        big = b, small = a, sum->negative = sign;
    int64_t at = a->at < b->at ? a->at : b->at, ends = a->at + a->count, other = b->at + b->count;
    int64_t count = (ends > other ? ends : other) - at + 1;
    if (count > MOST_WORDS) {
        sum->count = NONE;
        return;
    }
    uint64_t over = 0;
    for (int64_t k = 0; k < count; k++) {
        uint64_t x = word_at(big, at + k), y = word_at(small, at + k), total;
        if (opposite) {
            total = x - y - over;
            over = x < y || (x == y && over);
        } else {
            total = x + y + over;
            over = total < x || (total == x && over);
        }
        sum->words[k] = total;
    }
    sum->at = at;
    sum->count = count;
    trim(sum);
}

static void multiply(struct wide *product, const struct wide *a, const struct wide *b)
{
    int64_t count = a->count + b->count;
    product->count = a->count == NONE || b->count == NONE || count > MOST_WORDS ? NONE : count;
    if (!a->count || !b->count)
        product->count = a->count == NONE || b->count == NONE ? NONE : 0;
    if (product->count <= 0)
        return;
    product->at = a->at + b->at;
    product->negative = a->negative ^ b->negative;
    memset(product->words, 0, 8 * (size_t)count);
    for (int64_t i = 0; i < a->count; i++) {
        uint64_t over = 0;
        for (int64_t j = 0; j < b->count; j++) {
            uint128 total = (uint128)a->words[i] * b->words[j] + product->words[i + j] + over;
            product->words[i + j] = (uint64_t)total;
            over = (uint64_t)(total >> DIGIT);
        }
        product->words[i + b->count] = over;
    }
    trim(product);
}

/* (high + low) * 2 ** position, with |low| at most half a unit in the last place of high. */
struct twice {
    double high, low;
    int64_t position;
};

static inline void normalise(struct twice *x)
{
    double sum = x->high + x->low;
    x->low -= sum - x->high;
    x->high = sum;
}

/* The leading 106 bits of a positive integer: a relative error below 2 ** -104. `high` lies in [2 ** 52, 2 ** 53]. */
static struct twice leading(const struct wide *x)
{
    int64_t top = x->at + x->count - 1;
    uint128 bits = (uint128)word_at(x, top) << DIGIT | word_at(x, top - 1);
    int zeros = __builtin_clzll(word_at(x, top));
    if (zeros)
        bits = bits << zeros | word_at(x, top - 2) >> (DIGIT - zeros);
    double high = (double)(uint64_t)(bits >> 75), low = (double)((uint64_t)(bits >> 22) & ((UINT64_C(1) << 53) - 1));
    struct twice result = {high, low * 0x1p-53, (top + 1) * DIGIT - zeros - 53};
    normalise(&result);
    return result;
}

/* The part of a * b that is lost when it is rounded, for numbers far from the limits of their range. */
static inline double lost(double a, double b, double product)
{
    double wide_a = a * 0x1.0000002p27, wide_b = b * 0x1.0000002p27;
    double ah = wide_a - (wide_a - a), bh = wide_b - (wide_b - b), al = a - ah, bl = b - bh;
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
}

static struct twice divided(struct twice a, struct twice b)
{
    double first = a.high / b.high, product = first * b.high;
    double rest = ((a.high - product) - lost(first, b.high, product)) + (a.low - first * b.low);
    struct twice result = {first, rest / b.high, a.position - b.position};
    normalise(&result);
    return result;
}

static struct twice rooted(struct twice x)
{
    if (x.position & 1)
        x = (struct twice){2 * x.high, 2 * x.low, x.position - 1};
    double first = sqrt(x.high), product = first * first;
    double rest = ((x.high - product) - lost(first, first, product)) + x.low;
    struct twice result = {first, rest / (2 * first), x.position / 2};
    normalise(&result);
    return result;
}

/* Whether all numbers within 2 ** -97 of the sum of both are rounded to the first. */
static inline int is_certain(double high, double low)
{
    double error = fabs(high) * 0x1p-97;
    return high + (low + error) == high && high + (low - error) == high;
}

/* x * factor * 2 ** shift, for a factor that is not 0. */
static void scale(struct wide *scaled, const struct wide *x, uint64_t factor, int64_t shift)
{
    struct wide by = {.count = 1, .words = {factor}}, moved;
    multiply(&moved, x, &by);
    by = (struct wide){.at = shift >> 6, .count = 1, .words = {UINT64_C(1) << (shift & 63)}};
    multiply(scaled, &moved, &by);
}

/* Which way to round a positive quotient that lies half way between high and the next float, or too close to that to
 * see: 1 away from high, 0 to high; -1 where integers of more words would have to decide. */
static int decided(const struct wide *above, const struct wide *below, struct twice result)
{
    struct wide middle, left, difference, positive = *above;
    int exponent;
    uint64_t digits = (uint64_t)(frexp(result.high, &exponent) * 0x1p53), factor;
    int narrow = result.low < 0 && digits == UINT64_C(1) << 52; /* floats lie closer below a power of two */
    factor = (result.low < 0 ? 2 * digits - !narrow : 2 * digits + 1) * (narrow ? 2 : 1) - narrow;
    int64_t position = result.position + exponent - 54 - narrow;
    positive.negative = 0;
    scale(&middle, below, factor, position < 0 ? 0 : position);
    scale(&left, &positive, 1, position < 0 ? -position : 0);
    add(&difference, &left, &middle, 1);
    if (difference.count == NONE)
        return -1;
    if (!difference.count)
        return !narrow && digits % 2; /* to even */
    return difference.negative == (result.low < 0);
}

/* One quotient; 0 where it is no finite number, or too large or small, 1 where its rounding is in doubt, else 2. */
static int quotient(const struct wide *above, const struct wide *below, enum root root, int64_t unit, double *value,
                    double *rest)
{
    *value = *rest = 0;
    if (above->count == NONE || below->count <= 0 || below->negative || (root == ROOT && above->negative))
        return 0;
    if (!above->count)
        return 2;
    struct twice divisor = leading(below);
    if (root == OVER_ROOT)
        divisor = rooted(divisor);
    struct twice result = divided(leading(above), divisor);
    result.position += unit;
    if (root == ROOT)
        result = rooted(result);
    if (result.position < -900 || result.position > 900)
        return 0;
    int sign = above->negative ? -1 : 1, known = is_certain(result.high, result.low) ? 0 : -1;
    struct twice exact = result;
    exact.position -= unit;
    if (known < 0 && root == PLAIN && result.low != 0)
        known = decided(above, below, exact);
    if (known > 0) {
        double next = nextafter(result.high, result.low < 0 ? 0 : 4);
        result = (struct twice){next, result.low - (next - result.high), result.position};
    }
    *value = ldexp(sign * result.high, (int)result.position);
    *rest = ldexp(sign * result.low, (int)result.position);
    return known < 0 ? 1 : 2;
}

/* The results of all steps, for one output; each goes to the next register. */
static void compute_steps(struct wide *registers, const int64_t *steps, int64_t count, const int64_t *inputs,
                          int64_t output)
{
    for (int64_t k = 0; k < count; k++) {
        const int64_t *step = steps + 3 * k;
        if (step[0] == LOAD) {
            const int64_t *input = inputs + 2 * step[1];
            load(registers + k, (const int64_t *)(intptr_t)input[0] + output * input[1], input[1]);
        } else if (step[0] == MULTIPLY) {
            multiply(registers + k, registers + step[1], registers + step[2]);
        } else {
            add(registers + k, registers + step[1], registers + step[2], step[0] == SUBTRACT);
        }
    }
}

/* Quotients of two polynomials in sums, for each output; returns how many of them are not certain.
 *
 * `inputs` has for each sum the address of the limbs of the first output, and their number; one limb is an integer.
 * `steps` are triples: an operation, and the registers (or the input) that it takes; each result goes to the next
 * register. The polynomials are in the registers `above` and `below`; the quotient of these integers weighs 2 ** unit
 * before the root of it is taken. The quotient of an output is the sum of its `values` and `rests`, and `status` is what
 * `quotient` returns; both may be NULL. */
int64_t assay_quotients(int64_t outputs, const int64_t *inputs, const int64_t *steps, int64_t count, int64_t above,
                        int64_t below, int64_t root, int64_t unit, double *values, double *rests, uint8_t *status)
{
    struct wide registers[MOST_STEPS];
    int64_t doubtful = 0;
    for (int64_t output = 0; output < outputs; output++) {
        compute_steps(registers, steps, count, inputs, output);
        double rest;
        int known = quotient(registers + above, registers + below, root, unit, values + output, &rest);
        doubtful += known != 2;
        if (status) {
            rests[output] = rest;
            status[output] = (uint8_t)known;
        }
    }
    return doubtful;
}

/* The quotient of one output, of a state by the addresses of its `fields`; NaN where it is not certain or has a flaw.
 *
 * `reading` has the numbers of flaws, inputs and steps, and `above`, `below`, `root` and `unit` as `assay_quotients` has
 * them. Then follow the flaws, each a field and how many numbers of it must be 0; the inputs, each a field, at which
 * number of it the limbs start, and how many there are; and the steps. */
double assay_quotient_of_state(const int64_t *fields, const int64_t *reading)
{
    int64_t flaws = reading[0], count = reading[1], inputs[2 * MOST_STEPS];
    double value;
    const int64_t *next = reading + 7;
    for (int64_t k = 0; k < flaws; k++, next += 2)
        for (int64_t j = 0; j < next[1]; j++)
            if (((const int64_t *)(intptr_t)fields[next[0]])[j])
                return NAN;
    for (int64_t k = 0; k < count; k++, next += 3) {
        inputs[2 * k] = fields[next[0]] + 8 * next[1];
        inputs[2 * k + 1] = next[2];
    }
    int64_t doubtful = assay_quotients(1, inputs, next, reading[2], reading[3], reading[4], reading[5], reading[6],
                                       &value, NULL, NULL);
    return doubtful ? NAN : value;
}
