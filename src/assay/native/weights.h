/* A quantized weight in memory, what several products read of it, and which processors have what they need. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

#define LANES 16
#define UNROLL _Pragma("GCC unroll 16")

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define MULTIPLIES_PAIRS 1
#include <immintrin.h>
#else
#define MULTIPLIES_PAIRS 0
#endif

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

/* The sum of the activations of a group. */
INLINE float sum_of_group(const void *x, int wide, int64_t first, int64_t group)
{
    float sum[LANES] = {0};
    for (int64_t k = 0; k < group; k += LANES)
        UNROLL for (int lane = 0; lane < LANES; lane++)
            sum[lane] += widened(x, wide, first + k + lane);
    UNROLL for (int half = LANES / 2; half; half /= 2)
        UNROLL for (int lane = 0; lane < half; lane++)
            sum[lane] += sum[lane + half];
    return sum[0];
}

#if MULTIPLIES_PAIRS
/* The bfloat16 of the integers of 4 bits, by the low 4 bits of each of 32 words. */
__attribute__((target("avx512f"))) INLINE __m512i of_four_bits(void)
{
    uint16_t table[32];
    for (int i = 0; i < 32; i++)
        table[i] = narrowed((float)((i & 15) - 8));
    return _mm512_loadu_si512(table);
}

/* Integers of 8 bits as bfloat16, which has all of them. */
__attribute__((target("avx512f,avx512bf16"))) INLINE __m512bh of_bytes(const uint8_t *at)
{
    __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)at)));
    __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(at + 16))));
    return _mm512_cvtne2ps_pbh(high, low);
}
#endif

/* The integers of rows of 2, 3, 5, 6 or 7 bits as int8, one row behind the other. */
void assay_spread_rows(const struct weight *w, int64_t row, int64_t rows, int8_t *to);
