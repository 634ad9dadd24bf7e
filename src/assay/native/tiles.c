/* Products of quantized weights with several activations in bfloat16 by the matrix unit of the processor (AMX), which
 * multiplies 16 rows of 32 bfloat16 with 16 columns of them, and adds up in float32.
 *
 * The integers of 16 rows of the weight become tiles of bfloat16, exactly. The sums of a tile, or of several of one group,
 * are multiplied by the scales of their rows when they leave the matrix unit; a lane is then an activation. Tiles are
 * written, multiplied and scaled some at a time, because what was just written is only slowly read.
 */
#define _DEFAULT_SOURCE /* for syscall */
#include "weights.h"

#if MULTIPLIES_PAIRS && defined(__linux__)
#define MULTIPLIES_TILES 1
#include <sys/syscall.h>
#include <unistd.h>
#define TILED __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16,fma")))
#else
#define MULTIPLIES_TILES 0
#endif

#define SIDE 16 /* rows of a tile, and activations of another one */
#define STEP 32 /* integers of a row of a tile */
#define TILES 4 /* at a time */
#define TILE_BYTES 64 /* of a row */
#define ALIGNED __attribute__((aligned(64)))
#define REQUEST 0x1023 /* ARCH_REQ_XCOMP_PERM of arch_prctl: Linux lets a process use tiles when it asks */
#define TILE_DATA 18   /* XFEATURE_XTILEDATA */

/* Which integer of a step stands at a place in a row of a tile: of 4 bits, the first of each two bytes, then the second, … */
INLINE int integer_at(int halves, int place)
{
    return halves ? place % 8 * 4 + place / 8 : place;
}

/* Put activations into tiles: of each block of 16 of them, and of each step, pairs of numbers of all 16; and their sums over
 * groups, of all 16 as well. Lanes without an activation are not written. */
VECTORISED void assay_order_tiles(const struct weight *w, const uint16_t *x, int64_t columns, uint16_t *tiles, float *sums)
{
    int64_t groups = w->width / w->group;
    for (int64_t c = 0; c < columns; c++, x += w->width) {
        uint16_t *block = tiles + c / SIDE * SIDE * w->width;
        for (int64_t k = 0; k < w->width; k += STEP)
            UNROLL for (int place = 0; place < STEP; place++)
                block[k * SIDE + place / 2 * 2 * SIDE + c % SIDE * 2 + place % 2] = x[k + integer_at(w->bits == 4, place)];
        for (int64_t g = 0; w->zeros && g < groups; g++)
            sums[(c / SIDE * groups + g) * SIDE + c % SIDE] = sum_of_group(x, 0, g * w->group, w->group);
    }
}

/* Whether this processor has a matrix unit for bfloat16, and the system lets this process use it. */
int assay_multiplies_tiles(void)
{
#if MULTIPLIES_TILES
    return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return 0;
#endif
}

#if MULTIPLIES_TILES
/* What is multiplied at a time: integers of 16 rows, with their scales and zeros as float32. */
struct rows {
    const uint8_t *integers[SIDE];
    float *scales, *zeros; /* zeros may be null */
};

/* The integers of all rows from `begin` to before `end`, as tiles. */
TILED INLINE void write_tiles(int halves, const struct rows *rows, int64_t begin, int64_t end,
                              uint16_t tiles[TILES][SIDE][STEP])
{
    static const uint16_t by[STEP] = {0, 0, 0, 0, 0, 0, 0, 0, 4,  4,  4,  4,  4,  4,  4,  4,
                                      8, 8, 8, 8, 8, 8, 8, 8, 12, 12, 12, 12, 12, 12, 12, 12};
    const __m512i shifts = _mm512_loadu_si512(by), table = of_four_bits();
    for (int r = 0; r < SIDE; r++)
        for (int64_t k = begin; k < end; k += STEP) {
            __m512i integers;
            if (halves) {
                __m512i words = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(rows->integers[r] + k / 2)));
                integers = _mm512_permutexvar_epi16(_mm512_srlv_epi16(words, shifts), table);
            } else
                integers = (__m512i)of_bytes(rows->integers[r] + k);
            _mm512_store_si512(tiles[(k - begin) / STEP][r], integers);
        }
    __asm__ volatile("" ::: "memory"); /* the compiler does not know that tiles are read from memory */
}

/* The products of 16 rows with 16 activations. */
TILED INLINE void multiply_rows(int halves, const struct weight *w, const struct rows *rows, const uint16_t *x,
                                const float *sums, float out[SIDE][SIDE])
{
    uint16_t tiles[TILES][SIDE][STEP] ALIGNED;
    float products[TILES][SIDE][SIDE] ALIGNED;
    int64_t groups = w->width / w->group, of_product[TILES];
    __m512 all[SIDE];
    UNROLL for (int r = 0; r < SIDE; r++)
        all[r] = _mm512_setzero_ps();
    for (int64_t begin = 0; begin < w->width; begin += TILES * STEP) {
        int64_t end = begin + TILES * STEP < w->width ? begin + TILES * STEP : w->width;
        int count = 0;
        write_tiles(halves, rows, begin, end, tiles);
        _tile_zero(0);
        for (int64_t k = begin; k < end; k += STEP) {
            _tile_loadd(1, tiles[(k - begin) / STEP], TILE_BYTES);
            _tile_loadd(2, x + k * SIDE, TILE_BYTES);
            _tile_dpbf16ps(0, 1, 2);
            if ((k + STEP) % w->group == 0 || k + STEP == end) {
                _tile_stored(0, products[count], TILE_BYTES);
                _tile_zero(0);
                of_product[count++] = k / w->group;
            }
        }
        for (int i = 0; i < count; i++)
            UNROLL for (int r = 0; r < SIDE; r++) {
                __m512 scale = _mm512_set1_ps(rows->scales[r * groups + of_product[i]]);
                all[r] = _mm512_fmadd_ps(_mm512_load_ps(products[i][r]), scale, all[r]);
            }
    }
    for (int64_t g = 0; rows->zeros && g < groups; g++) {
        __m512 sum = _mm512_loadu_ps(sums + g * SIDE);
        UNROLL for (int r = 0; r < SIDE; r++)
            all[r] = _mm512_fmadd_ps(sum, _mm512_set1_ps(rows->zeros[r * groups + g]), all[r]);
    }
    UNROLL for (int r = 0; r < SIDE; r++)
        _mm512_storeu_ps(out[r], all[r]);
}

/* The same for all activations, written where they belong. */
TILED static void multiply_all(const struct weight *w, const struct rows *rows, int64_t row, int count, const uint16_t *x,
                               const float *sums, int64_t columns, float *y)
{
    int64_t groups = w->width / w->group;
    for (int64_t begin = 0; begin < columns; begin += SIDE) {
        float out[SIDE][SIDE];
        if (w->bits == 4)
            multiply_rows(1, w, rows, x + begin * w->width, sums + begin * groups, out);
        else
            multiply_rows(0, w, rows, x + begin * w->width, sums + begin * groups, out);
        for (int64_t c = begin; c < columns && c < begin + SIDE; c++)
            for (int r = 0; r < count; r++)
                y[c * w->rows + row + r] = out[r][c - begin];
    }
}

/* Scales or zeros of some rows as float32. */
VECTORISED static void widen(const void *numbers, int wide, int64_t first, int64_t count, float *to)
{
    if (wide)
        memcpy(to, (const float *)numbers + first, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = widened(numbers, 0, first + i);
}

/* The rows from `first` to before `last`, with memory for what is made of 16 of them. */
static void multiply_some(const struct weight *w, int64_t first, int64_t last, const uint16_t *x, const float *sums,
                          int64_t columns, float *y, float *scales, int8_t *spreaded)
{
    int64_t groups = w->width / w->group, stride = spreaded ? w->width : row_bytes(w);
    for (int64_t row = first; row < last; row += SIDE) {
        int count = last - row < SIDE ? (int)(last - row) : SIDE;
        struct rows rows = {.scales = scales, .zeros = w->zeros ? scales + SIDE * groups : NULL};
        const uint8_t *integers = spreaded ? (uint8_t *)spreaded : w->packed + row * stride;
        if (spreaded)
            assay_spread_rows(w, row, count, spreaded);
        for (int r = 0; r < SIDE; r++) /* the last one again, where there are no more */
            rows.integers[r] = integers + (r < count ? r : count - 1) * stride;
        widen(w->scales, w->wide, row * groups, count * groups, rows.scales);
        if (w->zeros)
            widen(w->zeros, w->wide, row * groups, count * groups, rows.zeros);
        multiply_all(w, &rows, row, count, x, sums, columns, y);
    }
}
#endif

/* y of shape (columns, rows), for the rows from `first` to before `last`; x and sums as `assay_order_tiles` wrote them. The
 * group must be a multiple of 32. Returns 0, or 1 where there is no memory. */
#if MULTIPLIES_TILES
TILED int assay_multiply_tiles(const struct weight *w, int64_t first, int64_t last, const uint16_t *x, const float *sums,
                               int64_t columns, float *y)
{
    struct {
        uint8_t palette, start, none[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1, .bytes = {TILE_BYTES, TILE_BYTES, TILE_BYTES}, .rows = {SIDE, SIDE, SIDE}};
    int direct = w->bits == 4 || w->bits == 8;
    float *scales = calloc((size_t)(2 * SIDE * (w->width / w->group)), sizeof *scales);
    int8_t *spreaded = direct ? NULL : malloc((size_t)(SIDE * w->width));
    int failed = !scales || (!direct && !spreaded);
    if (!failed) {
        _tile_loadconfig(&shapes);
        multiply_some(w, first, last, x, sums, columns, y, scales, spreaded);
        _tile_release();
    }
    free(scales);
    free(spreaded);
    return failed;
}
#else
int assay_multiply_tiles(const struct weight *w, int64_t first, int64_t last, const uint16_t *x, const float *sums,
                         int64_t columns, float *y)
{
    (void)w, (void)first, (void)last, (void)x, (void)sums, (void)columns, (void)y;
    return 1;
}
#endif
