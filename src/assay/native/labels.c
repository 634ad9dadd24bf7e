/* Labels from scores on the CPU, as decide.py defines them: the first of the largest, and the rank of the target. */
#include <stdint.h>
#include <string.h>

#include "clones.h"

#define BLOCK 512
#define LANES 8
#define STRIDE 64 /* classes looked through at once for the first of the largest */
#define FEW 32 /* classes up to which a row is scanned one by one */

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t integers __attribute__((vector_size(4 * LANES)));

static inline floats at(const float *x)
{
    floats loaded;
    memcpy(&loaded, x, sizeof loaded);
    return loaded;
}

static inline int64_t sum(integers lanes)
{
    int64_t total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += lanes[lane];
    return total;
}

static inline int64_t first_of_few(const float *x, int64_t classes)
{
    float best = x[0];
    int64_t first = 0, ordered = x[0] == x[0];
    for (int64_t c = 1; c < classes; c++) {
        int above = x[c] > best;
        ordered &= x[c] == x[c];
        first = above ? c : first;
        best = above ? x[c] : best;
    }
    return ordered ? first : classes;
}

static inline floats larger(floats a, floats b)
{
    integers above = b > a;
    return (floats)(((integers)b & above) | ((integers)a & ~above));
}

static inline int64_t first_of_many(const float *x, int64_t classes)
{
    floats high[2] = {at(x), at(x + LANES)}; /* two, so that one comparison need not wait for the last */
    integers ordered = (high[0] == high[0]) & (high[1] == high[1]);
    int64_t c = 2 * LANES;
    for (; c + 2 * LANES <= classes; c += 2 * LANES)
        for (int k = 0; k < 2; k++) {
            floats next = at(x + c + k * LANES);
            high[k] = larger(high[k], next);
            ordered &= next == next;
        }
    high[0] = larger(high[0], high[1]);
    float best = high[0][0];
    for (int lane = 1; lane < LANES; lane++)
        best = high[0][lane] > best ? high[0][lane] : best;
    int64_t whole = sum(ordered) == -LANES;
    for (; c < classes; c++) {
        whole &= x[c] == x[c];
        best = x[c] > best ? x[c] : best;
    }
    if (!whole)
        return classes;
    int64_t first = 0;
    for (; first + STRIDE <= classes; first += STRIDE) {
        integers found = {0};
        for (int64_t k = 0; k < STRIDE; k += LANES)
            found |= at(x + first + k) == best;
        if (sum(found))
            break;
    }
    while (x[first] != best)
        first++;
    return first;
}

VECTORISED void assay_first_largest(int64_t *labels, const float *scores, int64_t rows, int64_t classes)
{
    if (classes <= FEW)
        for (int64_t i = 0; i < rows; i++)
            labels[i] = first_of_few(scores + i * classes, classes);
    else
        for (int64_t i = 0; i < rows; i++)
            labels[i] = first_of_many(scores + i * classes, classes);
}

/* The same for scores of which each class has a column; from one column to the next it is `apart` numbers. */
VECTORISED void assay_first_largest_column(int64_t *labels, const float *scores, int64_t rows, int64_t classes,
                                           int64_t apart)
{
    float best[BLOCK];
    int32_t first[BLOCK], unordered[BLOCK];
    for (int64_t start = 0; start < rows; start += BLOCK) {
        int32_t stop = (int32_t)(rows - start < BLOCK ? rows - start : BLOCK);
        for (int32_t i = 0; i < stop; i++) {
            best[i] = scores[start + i];
            first[i] = 0;
            unordered[i] = best[i] != best[i];
        }
        for (int32_t c = 1; c < (int32_t)classes; c++) {
            const float *x = scores + c * apart + start;
            for (int32_t i = 0; i < stop; i++) {
                int32_t above = x[i] > best[i];
                unordered[i] |= x[i] != x[i];
                first[i] = above ? c : first[i];
                best[i] = above ? x[i] : best[i];
            }
        }
        for (int32_t i = 0; i < stop; i++)
            labels[start + i] = unordered[i] ? classes : first[i];
    }
}

static inline int64_t rank_among_few(const float *x, int64_t classes, int64_t target)
{
    float own = x[target];
    int32_t before = 0;
    for (int32_t c = 0; c < (int32_t)classes; c++)
        before += (x[c] > own) | ((x[c] == own) & (c < (int32_t)target));
    return before;
}

VECTORISED void assay_target_rank(int64_t *rank, const float *scores, const int64_t *target, int64_t rows,
                                  int64_t classes)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *x = scores + i * classes;
        if (classes <= FEW) {
            rank[i] = rank_among_few(x, classes, target[i]);
            continue;
        }
        float own = x[target[i]];
        integers before = {0};
        int64_t c = 0, rest = 0;
        for (; c + LANES <= classes; c += LANES)
            before -= at(x + c) > own;
        for (; c < classes; c++)
            rest += x[c] > own;
        for (c = 0; c + LANES <= target[i]; c += LANES)
            before -= at(x + c) == own;
        for (; c < target[i]; c++)
            rest += x[c] == own;
        rank[i] = sum(before) + rest;
    }
}
