/* Limbs, as tally/sums/exact.py has them: int64 words of 32 bits each, the first bit of which weighs 2 ** origin. */
#include <stdint.h>
#include <string.h>

#define WORD 32

/* Add one finite double. */
static inline void add_number(int64_t *limbs, int64_t origin, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    int64_t exponent = (bits >> 52) & 2047;
    uint64_t significand = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent)
        significand |= UINT64_C(1) << 52;
    else
        exponent = 1;
    int64_t position = exponent - 1075 - origin;
    int64_t *word = limbs + position / WORD;
    int shift = (int)(position % WORD);
    uint64_t low = (significand & UINT32_MAX) << shift, high = (significand >> WORD) << shift;
    int64_t first = (int64_t)(low & UINT32_MAX);
    int64_t second = (int64_t)((low >> WORD) + (high & UINT32_MAX));
    int64_t third = (int64_t)(high >> WORD);
    if (bits >> 63)
        first = -first, second = -second, third = -third;
    word[0] += first;
    word[1] += second;
    word[2] += third;
}

typedef unsigned __int128 uint128;

/* A double as an integer times 2 ** position. */
struct number {
    uint64_t significand;
    int64_t position;
    int negative, finite;
};

static inline struct number number_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t exponent = (bits >> 52) & 2047;
    uint64_t hidden = (uint64_t)(exponent != 0) << 52, significand = (bits & ((UINT64_C(1) << 52) - 1)) | hidden;
    return (struct number){significand, exponent - (exponent != 0) - 1074, bits >> 63, exponent != 2047};
}

/* Add an integer times 2 ** position, which counts from the first bit of the limbs. Bits below that are 0: a sign, which
 * has the 53 bits of 1.0, times a denormal. */
static inline void add_wide_number(int64_t *limbs, int64_t position, uint128 number, int negative)
{
    if (position < 0)
        number >>= -position, position = 0;
    int64_t *word = limbs + position / WORD, sign = -(int64_t)negative;
    int shift = (int)(position % WORD);
    uint64_t over = 0;
    for (int k = 0; k < 5; k++) {
        uint64_t shifted = k < 4 ? (uint64_t)(uint32_t)(number >> (WORD * k)) << shift : 0;
        uint64_t total = (shifted & UINT32_MAX) + over;
        if (k < 4 || total)
            word[k] += ((int64_t)total ^ sign) - sign;
        over = shifted >> WORD;
    }
}

/* Carry from each word to the next, so that all but the last are in [0, 2 ** 32). */
static inline void carry(int64_t *limbs, int64_t words)
{
    int64_t over = 0;
    for (int64_t k = 0; k < words; k++) {
        int64_t total = limbs[k] + over;
        over = k + 1 < words ? total >> WORD : 0;
        limbs[k] = k + 1 < words ? total & UINT32_MAX : total;
    }
}
