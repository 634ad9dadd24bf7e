/* Products with quantized weights on the CPU, from their canonical bytes, and their expansion to floats.
 *
 * A weight is v * scale + zero for the integers v of a group, so a row's product with x is, over its groups,
 *
 *     sum(scale * sum(v * x)) + sum(zero * sum(x))
 *
 * and the integers are turned into floats in registers, for several rows and several x at once. x was put into the order
 * in which the halves of the bytes come out, with its sums over groups. Sums are float32. Where the processor multiplies
 * pairs of bfloat16 (AVX512-BF16), integers and bfloat16 x are multiplied as such, which is exact as well.
 *
 * Integers of other than 4 and 8 bits are first spread to 8 bits, some rows at a time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define HAS_PAIRS 1
#include <immintrin.h>
#define PAIRED __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,fma")))
#else
#define HAS_PAIRS 0
#endif

#define LANES 16
#define ROWS 4    /* of the weight, at once */
#define COLUMNS 4 /* activations, at once */
#define AHEAD 2048 /* bytes that are fetched ahead; with several rows, what lies at the same place in the next ones */
#define UNROLL _Pragma("GCC unroll 8")

typedef float floats __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef int32_t words __attribute__((vector_size(4 * LANES)));
typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef uint16_t shorts __attribute__((vector_size(2 * LANES)));
typedef uint64_t eight __attribute__((vector_size(64)));
typedef int8_t few __attribute__((vector_size(8)));

/* The fields of `Weight` in weights.py. */
struct weight {
    const uint8_t *packed;
    const void *scales, *zeros; /* zeros may be null */
    int64_t rows, width, group;
    int32_t bits, wide; /* wide: scales and zeros are float32, else bfloat16 */
};

INLINE float widened(const void *numbers, int wide, int64_t at)
{
    if (wide)
        return ((const float *)numbers)[at];
    uint32_t bits = (uint32_t)((const uint16_t *)numbers)[at] << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

INLINE uint16_t narrowed(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest, halves to even */
}

INLINE int64_t row_bytes(const struct weight *w)
{
    return (w->width * w->bits + 7) / 8;
}

/* The last integers of a row, one by one. */
static void spread_rest(const uint8_t *from, int bits, int64_t count, int8_t *to)
{
    const int mask = (1 << bits) - 1, middle = 1 << (bits - 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t bit = i * bits;
        int field = from[bit / 8] >> bit % 8;
        if (bit % 8 + bits > 8)
            field |= from[bit / 8 + 1] << (8 - bit % 8);
        to[i] = (int8_t)((field & mask) - middle);
    }
}

/* The integers of a row, as int8; `bits` is known where it is inlined. Eight of them take `bits` bytes. */
INLINE void spread(const uint8_t *from, int bits, int64_t width, int8_t *to)
{
    const eight shifts = {0, (uint64_t)bits, 2 * (uint64_t)bits, 3 * (uint64_t)bits, 4 * (uint64_t)bits,
                          5 * (uint64_t)bits, 6 * (uint64_t)bits, 7 * (uint64_t)bits};
    const uint64_t mask = (1u << bits) - 1, middle = 1u << (bits - 1);
    int64_t blocks = ((width * bits + 7) / 8 - 8) / bits, whole = blocks > 0 ? blocks * 8 : 0; /* 8 bytes are read */
    for (int64_t i = 0; i < whole; i += 8, from += bits) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        eight fields = (((eight){0} + word) >> shifts & mask) - middle;
        few values = __builtin_convertvector(fields, few);
        memcpy(to + i, &values, sizeof values);
    }
    spread_rest(from, bits, width - whole, to + whole);
}

/* The same for 4 bits. */
INLINE void spread_halves(const uint8_t *from, int64_t width, int8_t *to)
{
    for (int64_t i = 0; i < width / 2; i++) {
        to[2 * i] = (int8_t)((from[i] & 15) - 8);
        to[2 * i + 1] = (int8_t)((from[i] >> 4) - 8);
    }
    spread_rest(from + width / 2, 4, width % 2, to + width / 2 * 2);
}

VECTORISED static void spread_row(const uint8_t *from, int bits, int64_t width, int8_t *to)
{
    switch (bits) {
    case 2: spread(from, 2, width, to); return;
    case 3: spread(from, 3, width, to); return;
    case 4: spread_halves(from, width, to); return;
    case 5: spread(from, 5, width, to); return;
    case 6: spread(from, 6, width, to); return;
    case 7: spread(from, 7, width, to); return;
    default: memcpy(to, from, (size_t)width);
    }
}

/* The weights of one row, multiplied and added in two roundings, as torch does it on every device. */
VECTORISED static void weights_of(const int8_t *values, const struct weight *w, int64_t row, void *out, int narrow)
{
    int64_t groups = w->width / w->group;
    for (int64_t g = 0; g < groups; g++) {
        float scale = widened(w->scales, w->wide, row * groups + g);
        float zero = w->zeros ? widened(w->zeros, w->wide, row * groups + g) : 0;
        const int8_t *v = values + g * w->group;
        uint16_t *halves = (uint16_t *)out + g * w->group;
        float *whole = (float *)out + g * w->group;
        if (narrow)
            for (int64_t k = 0; k < w->group; k++)
                halves[k] = narrowed((float)v[k] * scale + zero);
        else
            for (int64_t k = 0; k < w->group; k++)
                whole[k] = (float)v[k] * scale + zero;
    }
}

/* Expand rows of a weight to bfloat16 (`narrow`) or float32. Returns 0, or 1 where there is no memory. */
int assay_expand_weight(const struct weight *w, int64_t first, int64_t last, void *out, int32_t narrow)
{
    int8_t *values = malloc((size_t)w->width);
    if (!values)
        return 1;
    for (int64_t row = first; row < last; row++) {
        spread_row(w->packed + row * row_bytes(w), w->bits, w->width, values);
        weights_of(values, w, row, (char *)out + (row - first) * w->width * (narrow ? 2 : 4), narrow);
    }
    free(values);
    return 0;
}

/* How many x stand together, half of them at even and half at odd places, for 4 bits; 1 where the order stays. */
INLINE int64_t halves_of(const struct weight *w, int paired)
{
    return w->bits != 4 ? 1 : paired && w->group % 64 == 0 ? 64 : 32;
}

INLINE void order_one(const struct weight *w, const void *x, int wide, int paired, void *ordered, float *sums)
{
    int64_t chunk = halves_of(w, paired), half = chunk / 2;
    for (int64_t k = 0; k < w->width; k++) {
        int64_t at = chunk == 1 ? k : k / chunk * chunk + k % 2 * half + k % chunk / 2;
        if (paired)
            ((uint16_t *)ordered)[at] = ((const uint16_t *)x)[k];
        else
            ((float *)ordered)[at] = widened(x, wide, k);
    }
    for (int64_t g = 0; w->zeros && g < w->width / w->group; g++) {
        float sum[LANES] = {0};
        for (int64_t k = 0; k < w->group; k++)
            sum[k % LANES] += widened(x, wide, g * w->group + k);
        sums[g] = 0;
        for (int lane = 0; lane < LANES; lane++)
            sums[g] += sum[lane];
    }
}

/* Put activations into the order of the bytes, as float32 or, for pairs, as bfloat16; and sum them by group. */
void assay_order_inputs(const struct weight *w, const void *x, int64_t columns, int32_t wide, int32_t paired,
                        void *ordered, float *sums)
{
    for (int64_t c = 0; c < columns; c++)
        order_one(w, (const char *)x + c * w->width * (wide ? 4 : 2), wide, paired,
                  (char *)ordered + c * w->width * (paired ? 2 : 4), sums + c * (w->width / w->group));
}

#pragma GCC push_options
/* Sums of products need not be as written, and are more exact if fused. The loops are unrolled and vectorised here already:
 * more optimization changes no instruction that counts, and takes five times as long to compile. */
#pragma GCC optimize("fp-contract=fast", "O2", "no-gcse", "no-tree-pre")

INLINE float total(floats lanes)
{
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

/* What the zeros of a row add: the sum over its groups of zero * sum(x). */
INLINE float zeros_with(const struct weight *w, int64_t row, const float *sums)
{
    int64_t groups = w->width / w->group, first = row * groups, g = 0;
    floats lanes = {0};
    for (; g + LANES <= groups; g += LANES) {
        floats zero;
        if (w->wide)
            memcpy(&zero, (const float *)w->zeros + first + g, sizeof zero);
        else {
            shorts half;
            memcpy(&half, (const uint16_t *)w->zeros + first + g, sizeof half);
            zero = (floats)(__builtin_convertvector(half, words) << 16);
        }
        lanes += zero * *(const floats *)(sums + g);
    }
    float sum = total(lanes);
    for (; g < groups; g++)
        sum += widened(w->zeros, w->wide, first + g) * sums[g];
    return sum;
}

/* The products of `rows` rows of integers with `columns` x, both known where it is inlined. */
INLINE void tile(int bits, int rows, int columns, const struct weight *w, const uint8_t *integers, int64_t stride,
                 int64_t row, const float *x, const float *sums, float *y)
{
    int64_t groups = w->width / w->group, ahead = rows == 1 ? AHEAD : rows * stride;
    floats all[ROWS][COLUMNS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++)
            all[r][c] = (floats){0};
    for (int64_t g = 0; g < groups; g++) {
        floats part[ROWS][COLUMNS];
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int c = 0; c < columns; c++)
                part[r][c] = (floats){0};
        for (int64_t k = g * w->group; k < (g + 1) * w->group; k += bits == 4 ? 2 * LANES : LANES) {
            UNROLL for (int r = 0; r < rows; r++) {
                const uint8_t *at = integers + r * stride + (bits == 4 ? k / 2 : k);
                __builtin_prefetch(at + ahead);
                bytes some;
                memcpy(&some, at, sizeof some);
                if (bits == 4) {
                    floats even = __builtin_convertvector(__builtin_convertvector(some & 15, words) - 8, floats);
                    floats odd = __builtin_convertvector(__builtin_convertvector(some >> 4, words) - 8, floats);
                    UNROLL for (int c = 0; c < columns; c++) {
                        part[r][c] += even * *(const floats *)(x + c * w->width + k);
                        part[r][c] += odd * *(const floats *)(x + c * w->width + k + LANES);
                    }
                } else { /* + 128, which widens better than what has a sign */
                    floats wide = __builtin_convertvector(__builtin_convertvector(some ^ 128, words) - 128, floats);
                    UNROLL for (int c = 0; c < columns; c++)
                        part[r][c] += wide * *(const floats *)(x + c * w->width + k);
                }
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            float scale = widened(w->scales, w->wide, (row + r) * groups + g);
            UNROLL for (int c = 0; c < columns; c++)
                all[r][c] += part[r][c] * scale;
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++)
            y[c * w->rows + row + r] = total(all[r][c]) + (w->zeros ? zeros_with(w, row + r, sums + c * groups) : 0);
}

#if HAS_PAIRS
/* The bfloat16 of the integers of 4 bits, by the low 4 bits of each of 32 words. */
PAIRED INLINE __m512i of_four_bits(void)
{
    uint16_t table[32];
    for (int i = 0; i < 32; i++)
        table[i] = narrowed((float)((i & 15) - 8));
    return _mm512_loadu_si512(table);
}

/* The same product for x in bfloat16. */
PAIRED INLINE void pair_tile(int bits, int chunk, int rows, int columns, const struct weight *w,
                             const uint8_t *integers, int64_t stride, int64_t row, const uint16_t *x,
                             const float *sums, float *y)
{
    int64_t groups = w->width / w->group, ahead = rows == 1 ? AHEAD : rows * stride;
    const __m512i table = of_four_bits();
    __m512 all[ROWS][COLUMNS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++)
            all[r][c] = _mm512_setzero_ps();
    for (int64_t g = 0; g < groups; g++) {
        __m512 part[ROWS][COLUMNS];
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int c = 0; c < columns; c++)
                part[r][c] = _mm512_setzero_ps();
        for (int64_t k = g * w->group; k < (g + 1) * w->group; k += chunk) {
            UNROLL for (int r = 0; r < rows; r++) {
                const uint8_t *at = integers + r * stride + (bits == 4 ? k / 2 : k);
                __builtin_prefetch(at + ahead);
                __m512bh first, second;
                if (bits == 4 && chunk == 64) {
                    __m512i pairs = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)at));
                    first = (__m512bh)_mm512_permutexvar_epi16(pairs, table);
                    second = (__m512bh)_mm512_permutexvar_epi16(_mm512_srli_epi16(pairs, 4), table);
                } else if (bits == 4) {
                    __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)at));
                    __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(pairs), _mm256_srli_epi16(pairs, 4), 1);
                    first = (__m512bh)_mm512_permutexvar_epi16(both, table);
                } else {
                    __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)at)));
                    __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(at + 16))));
                    first = _mm512_cvtne2ps_pbh(high, low);
                }
                UNROLL for (int c = 0; c < columns; c++) {
                    const uint16_t *with = x + c * w->width + k;
                    part[r][c] = _mm512_dpbf16_ps(part[r][c], first, (__m512bh)_mm512_loadu_si512(with));
                    if (chunk == 64)
                        part[r][c] = _mm512_dpbf16_ps(part[r][c], second, (__m512bh)_mm512_loadu_si512(with + 32));
                }
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            __m512 scale = _mm512_set1_ps(widened(w->scales, w->wide, (row + r) * groups + g));
            UNROLL for (int c = 0; c < columns; c++)
                all[r][c] = _mm512_fmadd_ps(part[r][c], scale, all[r][c]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++) {
            float rest = w->zeros ? zeros_with(w, row + r, sums + c * groups) : 0;
            y[c * w->rows + row + r] = _mm512_reduce_add_ps(all[r][c]) + rest;
        }
}
#endif

/* All columns for some rows: as many at once as there are. */
#define FOR_COLUMNS(CALL)                                                                                              \
    do {                                                                                                               \
        int64_t c = 0;                                                                                                 \
        for (; c + 4 <= columns; c += 4)                                                                               \
            CALL(4);                                                                                                   \
        for (; c + 2 <= columns; c += 2)                                                                               \
            CALL(2);                                                                                                   \
        for (; c < columns; c++)                                                                                       \
            CALL(1);                                                                                                   \
    } while (0)

#define PLAIN(BITS, ROWS_, COUNT)                                                                                      \
    tile(BITS, ROWS_, COUNT, w, integers, stride, row, (const float *)x + c * w->width, sums + c * groups, y + c * w->rows)
#define PLAIN_4_4(COUNT) PLAIN(4, 4, COUNT)
#define PLAIN_4_1(COUNT) PLAIN(4, 1, COUNT)
#define PLAIN_8_4(COUNT) PLAIN(8, 4, COUNT)
#define PLAIN_8_1(COUNT) PLAIN(8, 1, COUNT)
#define PAIR(BITS, CHUNK, ROWS_, COUNT)                                                                                \
    pair_tile(BITS, CHUNK, ROWS_, COUNT, w, integers, stride, row, (const uint16_t *)x + c * w->width,                 \
              sums + c * groups, y + c * w->rows)
#define PAIR_4_64_4(COUNT) PAIR(4, 64, 4, COUNT)
#define PAIR_4_64_1(COUNT) PAIR(4, 64, 1, COUNT)
#define PAIR_4_32_4(COUNT) PAIR(4, 32, 4, COUNT)
#define PAIR_4_32_1(COUNT) PAIR(4, 32, 1, COUNT)
#define PAIR_8_4(COUNT) PAIR(8, 32, 4, COUNT)
#define PAIR_8_1(COUNT) PAIR(8, 32, 1, COUNT)

#define PARAMETERS                                                                                                     \
    const struct weight *w, int halves, int rows, const uint8_t *integers, int64_t stride, int64_t row, const void *x, \
        int64_t columns, const float *sums, float *y

VECTORISED static void plain_rows(PARAMETERS)
{
    int64_t groups = w->width / w->group;
    if (halves && rows == ROWS)
        FOR_COLUMNS(PLAIN_4_4);
    else if (halves)
        FOR_COLUMNS(PLAIN_4_1);
    else if (rows == ROWS)
        FOR_COLUMNS(PLAIN_8_4);
    else
        FOR_COLUMNS(PLAIN_8_1);
}

#if HAS_PAIRS
PAIRED static void paired_rows(PARAMETERS)
{
    int64_t groups = w->width / w->group;
    if (halves && w->group % 64 == 0) {
        if (rows == ROWS)
            FOR_COLUMNS(PAIR_4_64_4);
        else
            FOR_COLUMNS(PAIR_4_64_1);
    } else if (halves) {
        if (rows == ROWS)
            FOR_COLUMNS(PAIR_4_32_4);
        else
            FOR_COLUMNS(PAIR_4_32_1);
    } else if (rows == ROWS)
        FOR_COLUMNS(PAIR_8_4);
    else
        FOR_COLUMNS(PAIR_8_1);
}
#endif
#pragma GCC pop_options

/* Whether this processor multiplies pairs of bfloat16. */
int assay_multiplies_pairs(void)
{
#if HAS_PAIRS
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return 0;
#endif
}

/* y of shape (columns, rows), for the rows from `first` to before `last`; x and sums as `assay_order_input` made them.
 * The group must be a multiple of 32. Returns 0, or 1 where there is no memory. */
int assay_multiply_weight(const struct weight *w, int64_t first, int64_t last, const void *x, const float *sums,
                          int64_t columns, int32_t paired, float *y)
{
    int direct = w->bits == 4 || w->bits == 8;
    int64_t stride = direct ? row_bytes(w) : w->width;
    uint8_t *spreaded = direct ? NULL : malloc((size_t)(ROWS * w->width));
    if (!direct && !spreaded)
        return 1;
    for (int64_t row = first; row < last;) {
        /* one x only reads memory as it lies; with short groups arithmetic counts, which several rows share */
        int rows = last - row >= ROWS && (columns > 1 || w->group < 64) ? ROWS : 1;
        const uint8_t *integers = w->packed + row * row_bytes(w);
        if (!direct) {
            for (int r = 0; r < rows; r++)
                spread_row(integers + r * row_bytes(w), w->bits, w->width, (int8_t *)spreaded + r * w->width);
            integers = spreaded;
        }
#if HAS_PAIRS
        if (paired)
            paired_rows(w, w->bits == 4, rows, integers, stride, row, x, columns, sums, y);
        else
#endif
            plain_rows(w, w->bits == 4, rows, integers, stride, row, x, columns, sums, y);
        row += rows;
    }
    free(spreaded);
    return 0;
}
