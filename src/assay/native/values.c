/* Exact sums as integers, for values: what tally/sums/exact.py does with limbs word by word. */
#include "limbs.h"

/* The 32-bit digits of sums in two's complement, `words + 1` of each, from limbs in any form. `range` becomes the first
 * digit that is not 0 in all of them, and the one behind the last that is not just a sign in all of them. The digits
 * lie behind `range`. */
void assay_digits(int64_t sums, int64_t words, const int64_t *limbs, int64_t *range)
{
    uint32_t *digits = (uint32_t *)(range + 2);
    int64_t start = words + 1, stop = 0;
    for (int64_t k = 0; k < sums; k++, limbs += words, digits += words + 1) {
        int64_t over = 0, first = 0, last = words + 1;
        for (int64_t j = 0; j < words; j++) {
            int64_t total = limbs[j] + over;
            over = total >> WORD;
            digits[j] = (uint32_t)total;
        }
        digits[words] = (uint32_t)over;
        uint32_t sign = over < 0 ? UINT32_MAX : 0;
        while (first < words + 1 && !digits[first])
            first++;
        while (last > 0 && digits[last - 1] == sign)
            last--;
        start = first < start ? first : start;
        stop = last > stop ? last : stop;
    }
    range[0] = start;
    range[1] = stop;
}

/* Whether all words but the last are in [0, 2 ** 32). */
void assay_is_canonical(int64_t sums, int64_t words, const int64_t *limbs, int64_t *canonical)
{
    int64_t bits = 0;
    for (int64_t k = 0; k < sums; k++, limbs += words)
        for (int64_t j = 0; j + 1 < words; j++)
            bits |= limbs[j];
    *canonical = 0 <= bits && bits <= UINT32_MAX;
}

/* Add the sum of each column of integers, of shape (rows, columns), to its limbs. */
void assay_add_integers(int64_t columns, int64_t words, int64_t origin, int64_t *limbs, const int64_t *values, int64_t rows)
{
    for (int64_t column = 0; column < columns; column++, limbs += words) {
        __int128 sum = 0;
        for (int64_t row = 0; row < rows; row++)
            sum += values[row * columns + column];
        add_wide_number(limbs, -origin, sum < 0 ? -(uint128)sum : (uint128)sum, sum < 0);
        carry(limbs, words);
    }
}
