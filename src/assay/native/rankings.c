/* Scores in falling order, with how many positives and negatives have each: what tally/scores/curves.py does by NumPy. */
#include <stdint.h>
#include <string.h>

#define DIGIT 11 /* bits that one pass sorts by; three passes take the 33 bits of a key */
#define DIGITS (1 << DIGIT)
#define PASSES 3

/* The bits of a float as an integer that rises as the float falls; both zeros are one number. */
static inline uint32_t falling_key(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (bits == UINT32_C(1) << 31)
        bits = 0;
    return bits >> 31 ? bits : ~bits & INT32_MAX;
}

static inline float score_of(uint32_t key)
{
    uint32_t bits = key >> 31 ? key : ~key & INT32_MAX;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void sort(uint64_t *keys, uint64_t *room, int64_t rows)
{
    int64_t starts[PASSES][DIGITS] = {{0}};
    for (int64_t i = 0; i < rows; i++)
        for (int k = 0; k < PASSES; k++)
            starts[k][keys[i] >> (DIGIT * k) & (DIGITS - 1)]++;
    for (int k = 0; k < PASSES; k++) {
        for (int64_t digit = 0, first = 0; digit < DIGITS; digit++) {
            int64_t size = starts[k][digit];
            starts[k][digit] = first;
            first += size;
        }
        for (int64_t i = 0; i < rows; i++)
            room[starts[k][keys[i] >> (DIGIT * k) & (DIGITS - 1)]++] = keys[i];
        uint64_t *sorted = room;
        room = keys;
        keys = sorted;
    }
}

/* Rank scores without NaN. Rows whose class is below 0 are left out; those of class `positive` are positives. For each
 * distinct score the lists are given that score, and its positives and negatives. `keys` is room for two numbers a row. */
void assay_rank_scores(int64_t rows, const float *scores, const int8_t *classes, int64_t positive, uint64_t *keys,
                       double *thresholds, int64_t *positives, int64_t *negatives, int64_t *distinct)
{
    int64_t ranked = 0, found = -1;
    for (int64_t i = 0; i < rows; i++)
        if (classes[i] >= 0)
            keys[ranked++] = (uint64_t)falling_key(scores[i]) << 1 | (classes[i] == positive);
    sort(keys, keys + rows, ranked);
    const uint64_t *sorted = keys + (PASSES % 2 ? rows : 0);
    for (int64_t i = 0; i < ranked; i++) {
        if (!i || sorted[i] >> 1 != sorted[i - 1] >> 1) {
            found++;
            thresholds[found] = score_of((uint32_t)(sorted[i] >> 1));
            positives[found] = negatives[found] = 0;
        }
        int64_t is_positive = sorted[i] & 1;
        positives[found] += is_positive;
        negatives[found] += !is_positive;
    }
    *distinct = found + 1;
}
