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
#include "weights.h"

#if MULTIPLIES_PAIRS
#define PAIRED __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,fma")))
#endif

#define ROWS 4    /* of the weight, at once */
#define COLUMNS 4 /* activations, at once */
#define CHUNK 128 /* integers of 4 bits in 64 bytes */
#define LEAST_GROUP 32
#define QUARTERS 4 /* groups of a chunk, at most */
#define AHEAD 2048 /* bytes that are fetched ahead; with several rows, what lies at the same place in the next ones */

typedef float floats __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef int32_t words __attribute__((vector_size(4 * LANES)));
typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef uint16_t shorts __attribute__((vector_size(2 * LANES)));
typedef float quarter __attribute__((vector_size(16)));
typedef uint64_t eight __attribute__((vector_size(64)));
typedef int8_t few __attribute__((vector_size(8)));

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

void assay_spread_rows(const struct weight *w, int64_t row, int64_t rows, int8_t *to)
{
    for (int64_t r = row; r < row + rows; r++, to += w->width)
        spread_row(w->packed + r * row_bytes(w), w->bits, w->width, to);
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

/* How many ordered x there are. Those of 4 bits stand at every second place of 2 * LANES, or for pairs at every fourth of a
 * whole CHUNK, whose rest is 0. */
INLINE int64_t ordered_width(const struct weight *w, int paired)
{
    return w->bits == 4 && paired ? (w->width + CHUNK - 1) / CHUNK * CHUNK : w->width;
}

/* Activations of some chunks in the order of their bytes. */
INLINE void order_chunks(const void *x, int wide, int paired, int64_t first, int64_t last, int chunk, int steps, void *ordered)
{
    for (int64_t k = first; k < last; k += chunk)
        for (int s = 0; s < steps; s++)
            for (int i = 0; i < chunk / steps; i++) {
                int64_t at = k + s * (chunk / steps) + i, from = k + i * steps + s;
                if (paired)
                    ((uint16_t *)ordered)[at] = ((const uint16_t *)x)[from];
                else
                    ((float *)ordered)[at] = widened(x, wide, from);
            }
}

INLINE void order_one(const struct weight *w, const void *x, int wide, int paired, void *ordered, float *sums)
{
    int64_t whole = w->width / CHUNK * CHUNK;
    if (w->bits != 4)
        order_chunks(x, wide, paired, 0, w->width, 1, 1, ordered);
    else if (!paired)
        order_chunks(x, wide, 0, 0, w->width, 2 * LANES, 2, ordered);
    else {
        order_chunks(x, 0, 1, 0, whole, CHUNK, 4, ordered);
        uint16_t rest[CHUNK] = {0};
        memcpy(rest, (const uint16_t *)x + whole, (size_t)(w->width - whole) * sizeof *rest);
        if (whole < w->width)
            order_chunks(rest, 0, 1, 0, CHUNK, CHUNK, 4, (uint16_t *)ordered + whole);
    }
    for (int64_t g = 0; w->zeros && g < w->width / w->group; g++)
        sums[g] = sum_of_group(x, wide, g * w->group, w->group);
}

/* Put activations into the order of the bytes, as float32 or, for pairs, as bfloat16; and sum them by group. */
VECTORISED void assay_order_inputs(const struct weight *w, const void *x, int64_t columns, int32_t wide, int32_t paired,
                                   void *ordered, float *sums)
{
    int64_t each = ordered_width(w, paired), groups = w->width / w->group;
    for (int64_t c = 0; c < columns; c++, sums += groups)
        if (paired)
            order_one(w, (const uint16_t *)x + c * w->width, 0, 1, (uint16_t *)ordered + c * each, sums);
        else if (wide)
            order_one(w, (const float *)x + c * w->width, 1, 0, (float *)ordered + c * each, sums);
        else
            order_one(w, (const uint16_t *)x + c * w->width, 0, 0, (float *)ordered + c * each, sums);
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
    quarter quarters[4];
    memcpy(quarters, &lanes, sizeof lanes);
    quarter sum = (quarters[0] + quarters[1]) + (quarters[2] + quarters[3]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

INLINE floats some_zeros(const struct weight *w, int64_t first)
{
    floats zeros;
    if (w->wide)
        memcpy(&zeros, (const float *)w->zeros + first, sizeof zeros);
    else {
        shorts halves;
        memcpy(&halves, (const uint16_t *)w->zeros + first, sizeof halves);
        zeros = (floats)(__builtin_convertvector(halves, words) << 16);
    }
    return zeros;
}

/* Add what the zeros of rows contribute, in any lane: over their groups, zero * sum(x). */
INLINE void add_zeros(int rows, int columns, const struct weight *w, int64_t row, const float *sums, floats all[ROWS][COLUMNS])
{
    int64_t groups = w->width / w->group, whole = groups / LANES * LANES;
    for (int64_t g = 0; g < whole; g += LANES)
        UNROLL for (int r = 0; r < rows; r++) {
            floats zeros = some_zeros(w, (row + r) * groups + g);
            UNROLL for (int c = 0; c < columns; c++)
                all[r][c] += zeros * *(const floats *)(sums + c * groups + g);
        }
    for (int64_t g = whole; g < groups; g++)
        UNROLL for (int r = 0; r < rows; r++) {
            float zero = widened(w->zeros, w->wide, (row + r) * groups + g);
            UNROLL for (int c = 0; c < columns; c++)
                all[r][c] += (floats){zero * sums[c * groups + g]};
        }
}

/* The products of rows with columns, as the sums of their lanes and of what zeros add. */
INLINE void write_totals(int rows, int columns, const struct weight *w, int64_t row, const float *sums,
                         floats all[ROWS][COLUMNS], float *y)
{
    if (w->zeros)
        add_zeros(rows, columns, w, row, sums, all);
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++)
            y[c * w->rows + row + r] = total(all[r][c]);
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
    write_totals(rows, columns, w, row, sums, all, y);
}

#if MULTIPLIES_PAIRS
/* The same product for x in bfloat16, of integers of 4 bits. A word of two bytes has four of them, so a chunk gives four
 * vectors by shifts alone. Of each of their sums, a lane has 8 weights, so a quarter of the lanes has those of one scale. */
PAIRED INLINE void pair_halves(int rows, int columns, const struct weight *w, const uint8_t *integers, int64_t stride,
                               int64_t row, const uint16_t *x, const float *scales, const float *sums, float *y)
{
    int64_t width = ordered_width(w, 1), whole = w->width / CHUNK * CHUNK;
    int64_t ahead = rows == 1 ? AHEAD : rows * stride;
    const __m512i table = of_four_bits();
    const __m512i quarter = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i own = _mm512_srl_epi32(quarter, _mm_cvtsi32_si128(doublings(w))); /* of the scales of a chunk */
    int64_t each = scales_of_row(w), shift = doublings(w);
    uint8_t rest[ROWS][CHUNK / 2] = {{0}};
    floats all[ROWS][COLUMNS];
    UNROLL for (int r = 0; r < rows; r++) {
        memcpy(rest[r], integers + r * stride + whole / 2, (size_t)(w->width - whole) / 2);
        UNROLL for (int c = 0; c < columns; c++)
            all[r][c] = (floats){0};
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
                all[r][c] += (floats)part * (floats)scale;
            }
        }
    write_totals(rows, columns, w, row, sums, all, y);
}

/* The same of integers of 8 bits. */
PAIRED INLINE void pair_bytes(int rows, int columns, const struct weight *w, const uint8_t *integers, int64_t stride,
                              int64_t row, const uint16_t *x, const float *scales, const float *sums, float *y)
{
    int64_t groups = w->width / w->group, ahead = rows == 1 ? AHEAD : rows * stride;
    floats all[ROWS][COLUMNS];
    (void)scales;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < columns; c++)
            all[r][c] = (floats){0};
    for (int64_t g = 0; g < groups; g++) {
        __m512 part[ROWS][COLUMNS];
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int c = 0; c < columns; c++)
                part[r][c] = _mm512_setzero_ps();
        for (int64_t k = g * w->group; k < (g + 1) * w->group; k += 2 * LANES) {
            UNROLL for (int r = 0; r < rows; r++) {
                const uint8_t *at = integers + r * stride + k;
                __builtin_prefetch(at + ahead);
                __m512bh both = of_bytes(at);
                UNROLL for (int c = 0; c < columns; c++) {
                    const uint16_t *with = x + c * w->width + k;
                    part[r][c] = _mm512_dpbf16_ps(part[r][c], both, (__m512bh)_mm512_loadu_si512(with));
                }
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            __m512 scale = _mm512_set1_ps(widened(w->scales, w->wide, (row + r) * groups + g));
            UNROLL for (int c = 0; c < columns; c++)
                all[r][c] += (floats)part[r][c] * (floats)scale;
        }
    }
    write_totals(rows, columns, w, row, sums, all, y);
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

#if MULTIPLIES_PAIRS
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
#if MULTIPLIES_PAIRS
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
            assay_spread_rows(w, row, rows, (int8_t *)spreaded);
            integers = spreaded;
        }
        if (scales)
            widen_scales(w, row, rows, scales);
#if MULTIPLIES_PAIRS
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
