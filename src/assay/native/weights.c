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
#define CHUNK 128 /* integers of 4 bits in 64 bytes */
#define LEAST_GROUP 32
#define QUARTERS 4 /* groups of a chunk, at most */
#define AHEAD 2048 /* bytes that are fetched ahead; with several rows, what lies at the same place in the next ones */
#define UNROLL _Pragma("GCC unroll 8")

typedef float floats __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef int32_t words __attribute__((vector_size(4 * LANES)));
typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef uint16_t shorts __attribute__((vector_size(2 * LANES)));
typedef uint64_t eight __attribute__((vector_size(64)));
typedef int8_t few __attribute__((vector_size(8)));

/* The fields of `WeightStruct` in weights.py. */
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

/* How many x stand together, for 4 bits: those at every second place, or for pairs those at every fourth, behind each other;
 * 1 where the order stays. */
INLINE int64_t chunk_of(const struct weight *w, int paired)
{
    return w->bits != 4 ? 1 : paired ? CHUNK : 2 * LANES;
}

/* How many ordered x there are: whole chunks, the rest of the last one 0. */
INLINE int64_t ordered_width(const struct weight *w, int paired)
{
    int64_t chunk = chunk_of(w, paired);
    return (w->width + chunk - 1) / chunk * chunk;
}

INLINE void order_one(const struct weight *w, const void *x, int wide, int paired, void *ordered, float *sums)
{
    int64_t chunk = chunk_of(w, paired), steps = chunk == 1 ? 1 : paired ? 4 : 2, each = chunk / steps;
    if (chunk == CHUNK && w->width % CHUNK)
        memset((uint16_t *)ordered + w->width / CHUNK * CHUNK, 0, CHUNK * sizeof(uint16_t));
    for (int64_t k = 0; k < w->width; k++) {
        int64_t at = k / chunk * chunk + k % steps * each + k % chunk / steps;
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
                  (char *)ordered + c * ordered_width(w, paired) * (paired ? 2 : 4), sums + c * (w->width / w->group));
}

/* How often a group of LEAST_GROUP doubles to one of a weight; 0 where it never does, and scales are repeated. */
INLINE int doublings(const struct weight *w)
{
    int64_t times = w->group / LEAST_GROUP;
    return times & (times - 1) ? 0 : __builtin_ctzll((uint64_t)times);
}

/* How many numbers `widen_scales` writes for a row. */
INLINE int64_t scales_of_row(const struct weight *w)
{
    return (w->width / LEAST_GROUP >> doublings(w)) + QUARTERS;
}

/* The scales of some rows as float32, those of groups that are no doublings repeated for every LEAST_GROUP weights; behind
 * those of a row 0. */
VECTORISED static void widen_scales(const struct weight *w, int64_t row, int64_t rows, float *scales)
{
    int64_t groups = w->width / w->group, first = row * groups, each = scales_of_row(w), some = each - QUARTERS;
    int64_t times = some / groups;
    for (int64_t r = 0; r < rows; r++, scales += each, first += groups) {
        const uint16_t *halves = (const uint16_t *)w->scales + first;
        for (int64_t g = 0; g < groups && !w->wide && times == 1; g++)
            scales[g] = widened(halves, 0, g);
        for (int64_t k = 0; k < some && (w->wide || times > 1); k++)
            scales[k] = widened(w->scales, w->wide, first + k / times);
        memset(scales + some, 0, QUARTERS * sizeof *scales);
    }
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

/* The same product for x in bfloat16, of integers of 4 bits. A word of two bytes has four of them, so a chunk gives four
 * vectors by shifts alone. Of each of their sums, a lane has 8 weights, so a quarter of the lanes has those of one scale. */
PAIRED INLINE void pair_halves(int rows, int columns, const struct weight *w, const uint8_t *integers, int64_t stride,
                               int64_t row, const uint16_t *x, const float *scales, const float *sums, float *y)
{
    int64_t groups = w->width / w->group, width = ordered_width(w, 1), whole = w->width / CHUNK * CHUNK;
    int64_t ahead = rows == 1 ? AHEAD : rows * stride;
    const __m512i table = of_four_bits();
    const __m512i quarter = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i own = _mm512_srl_epi32(quarter, _mm_cvtsi32_si128(doublings(w))); /* of the scales of a chunk */
    int64_t each = scales_of_row(w), shift = doublings(w);
    uint8_t rest[ROWS][CHUNK / 2] = {{0}};
    __m512 all[ROWS][COLUMNS];
    UNROLL for (int r = 0; r < rows; r++) {
        memcpy(rest[r], integers + r * stride + whole / 2, (size_t)(w->width - whole) / 2);
        UNROLL for (int c = 0; c < columns; c++)
            all[r][c] = _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < width; k += CHUNK)
        UNROLL for (int r = 0; r < rows; r++) {
            const uint8_t *at = k < whole ? integers + r * stride + k / 2 : rest[r];
            __builtin_prefetch(at + ahead);
            __m512i words = _mm512_loadu_si512(at);
            __m512bh first = (__m512bh)_mm512_permutexvar_epi16(words, table);
            __m512bh second = (__m512bh)_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4), table);
            __m512bh third = (__m512bh)_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 8), table);
            __m512bh fourth = (__m512bh)_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 12), table);
            const float *of_chunk = scales + r * each + (k / LEAST_GROUP >> shift);
            __m512 scale = _mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(of_chunk)), own);
            UNROLL for (int c = 0; c < columns; c++) {
                const uint16_t *with = x + c * width + k;
                __m512 part = _mm512_dpbf16_ps(_mm512_setzero_ps(), first, (__m512bh)_mm512_loadu_si512(with));
                part = _mm512_dpbf16_ps(part, second, (__m512bh)_mm512_loadu_si512(with + 32));
                part = _mm512_dpbf16_ps(part, third, (__m512bh)_mm512_loadu_si512(with + 64));
                part = _mm512_dpbf16_ps(part, fourth, (__m512bh)_mm512_loadu_si512(with + 96));
                all[r][c] = _mm512_fmadd_ps(part, scale, all[r][c]);
            }
        }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++) {
            float zero = w->zeros ? zeros_with(w, row + r, sums + c * groups) : 0;
            y[c * w->rows + row + r] = _mm512_reduce_add_ps(all[r][c]) + zero;
        }
}

/* The same of integers of 8 bits. */
PAIRED INLINE void pair_bytes(int rows, int columns, const struct weight *w, const uint8_t *integers, int64_t stride,
                              int64_t row, const uint16_t *x, const float *scales, const float *sums, float *y)
{
    int64_t groups = w->width / w->group, ahead = rows == 1 ? AHEAD : rows * stride;
    __m512 all[ROWS][COLUMNS];
    (void)scales;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++)
            all[r][c] = _mm512_setzero_ps();
    for (int64_t g = 0; g < groups; g++) {
        __m512 part[ROWS][COLUMNS];
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int c = 0; c < columns; c++)
                part[r][c] = _mm512_setzero_ps();
        for (int64_t k = g * w->group; k < (g + 1) * w->group; k += 2 * LANES) {
            UNROLL for (int r = 0; r < rows; r++) {
                const uint8_t *at = integers + r * stride + k;
                __builtin_prefetch(at + ahead);
                __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)at)));
                __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(at + 16))));
                __m512bh both = _mm512_cvtne2ps_pbh(high, low);
                UNROLL for (int c = 0; c < columns; c++) {
                    const uint16_t *with = x + c * w->width + k;
                    part[r][c] = _mm512_dpbf16_ps(part[r][c], both, (__m512bh)_mm512_loadu_si512(with));
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
            float zero = w->zeros ? zeros_with(w, row + r, sums + c * groups) : 0;
            y[c * w->rows + row + r] = _mm512_reduce_add_ps(all[r][c]) + zero;
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
#define PAIR(TILE, ROWS_, COUNT)                                                                                       \
    TILE(ROWS_, COUNT, w, integers, stride, row, (const uint16_t *)x + c * ordered_width(w, 1), scales,                \
         sums + c * groups, y + c * w->rows)
#define PAIR_4_4(COUNT) PAIR(pair_halves, 4, COUNT)
#define PAIR_4_1(COUNT) PAIR(pair_halves, 1, COUNT)
#define PAIR_8_4(COUNT) PAIR(pair_bytes, 4, COUNT)
#define PAIR_8_1(COUNT) PAIR(pair_bytes, 1, COUNT)

#define PARAMETERS                                                                                                     \
    const struct weight *w, int halves, int rows, const uint8_t *integers, int64_t stride, int64_t row, const void *x, \
        int64_t columns, const float *scales, const float *sums, float *y

VECTORISED static void plain_rows(PARAMETERS)
{
    int64_t groups = w->width / w->group;
    (void)scales;
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
    if (halves && rows == ROWS)
        FOR_COLUMNS(PAIR_4_4);
    else if (halves)
        FOR_COLUMNS(PAIR_4_1);
    else if (rows == ROWS)
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
    int direct = w->bits == 4 || w->bits == 8, halves = w->bits == 4;
    int64_t stride = direct ? row_bytes(w) : w->width;
    uint8_t *spreaded = direct ? NULL : malloc((size_t)(ROWS * w->width));
    float *scales = paired && halves ? malloc((size_t)(ROWS * scales_of_row(w)) * sizeof *scales) : NULL;
    if ((!direct && !spreaded) || (paired && halves && !scales)) {
        free(spreaded);
        free(scales);
        return 1;
    }
    for (int64_t row = first; row < last;) {
        /* one x only reads memory as it lies; with short groups arithmetic counts, which several rows share */
        int rows = last - row >= ROWS && (columns > 1 || w->group < 64) ? ROWS : 1;
        const uint8_t *integers = w->packed + row * row_bytes(w);
        if (!direct) {
            for (int r = 0; r < rows; r++)
                spread_row(integers + r * row_bytes(w), w->bits, w->width, (int8_t *)spreaded + r * w->width);
            integers = spreaded;
        }
        if (scales)
            widen_scales(w, row, rows, scales);
#if HAS_PAIRS
        if (paired)
            paired_rows(w, halves, rows, integers, stride, row, x, columns, scales, sums, y);
        else
#endif
            plain_rows(w, halves, rows, integers, stride, row, x, columns, scales, sums, y);
        row += rows;
    }
    free(spreaded);
    free(scales);
    return 0;
}
