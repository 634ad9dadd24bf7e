/* Hashes of samples by their numbers: their random groups and their digests, as stats/sampling.py has them by NumPy. */
#include <stdint.h>

#include "clones.h"

#define ROWS 256 /* of a block */

/* SplitMix64, see `mixed` in stats/sampling.py. */
INLINE uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* The group of each sample: its number and a salt, hashed, modulo how many groups there are. */
VECTORISED void assay_sample_groups(int64_t rows, const uint64_t *restrict numbers, const uint64_t *salt, int64_t count,
                                    int64_t *restrict groups)
{
    uint64_t added = *salt, groups_in_all = (uint64_t)count, last = groups_in_all - 1;
    if (groups_in_all & last)
        for (int64_t i = 0; i < rows; i++)
            groups[i] = (int64_t)(mixed(numbers[i] + added) % groups_in_all);
    else
        for (int64_t i = 0; i < rows; i++)
            groups[i] = (int64_t)(mixed(numbers[i] + added) & last);
}

/* The hash of each id, and of each id with its target, where there are targets. */
VECTORISED static void hash_rows(int64_t rows, const uint64_t *restrict ids, const uint64_t *restrict targets,
                                 uint64_t *restrict hashes, uint64_t *restrict pairs)
{
    for (int64_t i = 0; i < rows; i++)
        hashes[i] = mixed(ids[i]);
    for (int64_t i = 0; targets && i < rows; i++)
        pairs[i] = mixed(hashes[i] + targets[i]);
}

/* Of each code how many samples have it, the sum and the exclusive or of the hashes of their ids, and the sum of those of
 * ids with targets: rows of `digests`, which begins with zeros. Without codes all samples have code 0. */
void assay_sample_digests(int64_t rows, const uint64_t *ids, const uint64_t *targets, const int64_t *codes,
                          uint64_t *digests)
{
    uint64_t hashes[ROWS], pairs[ROWS] = {0};
    for (int64_t start = 0; start < rows; start += ROWS) {
        int64_t taken = rows - start < ROWS ? rows - start : ROWS;
        hash_rows(taken, ids + start, targets ? targets + start : targets, hashes, pairs);
        for (int64_t i = 0; i < taken; i++) {
            uint64_t *of = digests + (codes ? 4 * codes[start + i] : 0);
            of[0]++;
            of[1] += hashes[i];
            of[2] ^= hashes[i];
            of[3] += pairs[i];
        }
    }
}
