/* Scores in falling order, with how many positives and negatives have each: what tally/scores/curves.py does by NumPy. */
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "radix.h"

/* The bits of a float as an integer that rises as the float falls; both zeros are one number. */
static inline uint32_t falling_key(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (bits == UINT32_C(1) << 31)
        bits = 0;
    return bits >> 31 ? bits : ~bits & INT32_MAX;
}

/* The scores of one class or label, and the groups of samples that their rows are in; by default each row is a group. Scores
 * and classes of successive rows are `score_step` and `class_step` apart, rows whose class is below 0 are left out. */
struct ranked {
    const float *scores;
    const int8_t *classes;
    const int32_t *groups;
    int64_t rows, score_step, class_step, positive;
};

/* The rows from the highest score down: above its score a key has twice the group of a row, one more for a positive. */
static const uint64_t *sorted_rows(const struct ranked *r, uint64_t *keys, int64_t *ranked)
{
    int64_t taken = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        int8_t class = r->classes[i * r->class_step];
        uint32_t group = r->groups ? (uint32_t)r->groups[i] : (uint32_t)i;
        keys[taken] = (uint64_t)falling_key(r->scores[i * r->score_step]) << 32 | group << 1 | (class == r->positive);
        taken += class >= 0;
    }
    *ranked = taken;
    return sorted_by_upper_half(keys, keys + r->rows, taken);
}

/* Where the rows that have the score of row `first` end. */
static inline int64_t end_of_ties(const uint64_t *sorted, int64_t first, int64_t rows)
{
    int64_t end = first + 1;
    while (end < rows && sorted[end] >> 32 == sorted[first] >> 32)
        end++;
    return end;
}

/* What groups of samples contribute to the area under the ROC curve, as Tally.area_sums says, four numbers for each;
 * `sums` begins with zeros. `keys` is room for two numbers a row. */
void assay_area_sums(const struct ranked *r, uint64_t *keys, int64_t *sums)
{
    int64_t rows, all_negatives = 0, positives = 0, negatives = 0;
    const uint64_t *sorted = sorted_rows(r, keys, &rows);
    for (int64_t i = 0; i < rows; i++)
        all_negatives += !(sorted[i] & 1);
    for (int64_t i = 0, end; i < rows; i = end) {
        end = end_of_ties(sorted, i, rows);
        int64_t tied = 0;
        for (int64_t j = i; j < end; j++)
            tied += sorted[j] & 1;
        int64_t tied_negatives = end - i - tied;
        int64_t below = 2 * (all_negatives - negatives) - tied_negatives, above = 2 * positives + tied;
        for (int64_t j = i; j < end; j++) {
            int64_t is_positive = sorted[j] & 1, *of = sums + 4 * ((uint32_t)sorted[j] >> 1) + !is_positive;
            of[0] += is_positive ? below : above;
            of[2]++;
        }
        positives += tied;
        negatives += tied_negatives;
    }
}

/* The sum of products of ranks, 2 ** 32 times the first number and the second. */
static void add_products(int64_t rows, const int64_t *a, const int64_t *b, int64_t *sum)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t product = a[i] * b[i];
        sum[0] += product >> 32;
        sum[1] += product & UINT32_MAX;
    }
}

/* Twice the difference between the rank of each number and the mean rank; equal numbers have one rank. */
static void centre_ranks(int64_t rows, const float *x, uint64_t *keys, int64_t *ranks)
{
    for (int64_t i = 0; i < rows; i++)
        keys[i] = (uint64_t)falling_key(x[i]) << 32 | (uint32_t)i;
    const uint64_t *sorted = sorted_by_upper_half(keys, keys + rows, rows);
    for (int64_t i = 0, end; i < rows; i = end) {
        end = end_of_ties(sorted, i, rows);
        for (int64_t j = i; j < end; j++)
            ranks[(uint32_t)sorted[j]] = rows - i - end;
    }
}

/* The sums of products of the centred ranks of two columns of numbers, of the one with the other and of each with itself, as
 * add_products says. `room` has four numbers for each of the rows, which are fewer than 2 ** 31. */
void assay_rank_products(int64_t rows, const float *x, const float *y, int64_t *room, int64_t *sums)
{
    int64_t *of_x = room + 2 * rows, *of_y = of_x + rows;
    centre_ranks(rows, x, (uint64_t *)room, of_x);
    centre_ranks(rows, y, (uint64_t *)room, of_y);
    memset(sums, 0, 6 * sizeof *sums);
    add_products(rows, of_x, of_y, sums);
    add_products(rows, of_x, of_x, sums + 2);
    add_products(rows, of_y, of_y, sums + 4);
}

/* A row in its place from the highest score down: its number or group, whether it is a positive, and whether its score is lower
 * than that of the row before it. */
#define ROW_BITS 30
#define IS_POSITIVE (UINT32_C(1) << ROW_BITS)
#define IS_LOWER (UINT32_C(1) << 31)
#define ROW_MASK (IS_POSITIVE - 1)
#define AHEAD 24 /* rows whose cells are on their way from memory */

/* The rows of a class or label from the highest score down, by their numbers or groups below 2 ** 30; returns how many there
 * are. `keys` is room for two numbers a row. */
int64_t assay_order_scores(const struct ranked *r, uint64_t *keys, uint32_t *order)
{
    int64_t rows;
    const uint64_t *sorted = sorted_rows(r, keys, &rows);
    for (int64_t i = 0; i < rows; i++) {
        uint32_t place = (uint32_t)sorted[i], is_lower = i && sorted[i] >> 32 != sorted[i - 1] >> 32;
        order[i] = place >> 1 | place << 31 >> 1 | is_lower << 31;
    }
    return rows;
}

/* Where the rows that have the score of row `first` end. */
static inline int64_t end_of_level(const uint32_t *order, int64_t first, int64_t rows)
{
    int64_t end = first + 1;
    while (end < rows && !(order[end] & IS_LOWER))
        end++;
    return end;
}

/* The rows as assay_order_scores gives them, returning how many there are. In `numbers`, which has five for each row of `r` and
 * four more: for each distinct score, from the highest down, its first row, how many positives and negatives have it, and how
 * many have it or a higher one; behind these five columns, how many distinct scores, positives and negatives there are, and
 * twice the pairs of both whose positive is above the negative, with once those of equal scores, which fit 62 bits. */
int64_t assay_rank_scores(const struct ranked *r, uint32_t *order, int64_t *numbers)
{
    int64_t rows = assay_order_scores(r, (uint64_t *)numbers, order);
    int64_t *first = numbers, *positives = first + r->rows, *negatives = positives + r->rows;
    int64_t *hits = negatives + r->rows, *alarms = hits + r->rows, *totals = alarms + r->rows;
    int64_t level = 0, above = 0, below = 0, right = 0;
    for (int64_t i = 0, end; i < rows; i = end, level++) {
        end = end_of_level(order, i, rows);
        int64_t tied = 0;
        for (int64_t j = i; j < end; j++)
            tied += (order[j] & IS_POSITIVE) != 0;
        first[level] = order[i] & ROW_MASK;
        positives[level] = tied;
        negatives[level] = end - i - tied;
        right += (2 * above + tied) * negatives[level];
        hits[level] = above += tied;
        alarms[level] = below += negatives[level];
    }
    totals[0] = level;
    totals[1] = above;
    totals[2] = below;
    totals[3] = right;
    return rows;
}

/* For each row that has a place, twice how many rows of the other kind (negatives of a positive, positives of a negative) have a
 * lower score, and once those that have its own. */
void assay_twice_below(int64_t rows, const uint32_t *order, int64_t *twice)
{
    int64_t below[2] = {0, 0};
    for (int64_t i = 0; i < rows; i++)
        below[(order[i] & IS_POSITIVE) != 0]++;
    for (int64_t i = 0, end; i < rows; i = end) {
        end = end_of_level(order, i, rows);
        int64_t tied[2] = {0, 0};
        for (int64_t j = i; j < end; j++)
            tied[(order[j] & IS_POSITIVE) != 0]++;
        int64_t of_negatives = 2 * below[1] - tied[1], of_positives = 2 * below[0] - tied[0];
        for (int64_t j = i; j < end; j++)
            twice[order[j] & ROW_MASK] = order[j] & IS_POSITIVE ? of_positives : of_negatives;
        below[0] -= tied[0];
        below[1] -= tied[1];
    }
}

/* Number the pairs of cells that rows are in, in the order in which they come. `numbers` has a place for each pair of a cell and
 * one of `count` others, all below 0; `joint` is given the number of the pair of each row. */
void assay_join_cells(int64_t rows, const int32_t *cells, const int32_t *others, int64_t count, int32_t *numbers,
                      int32_t *joint)
{
    int32_t found = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t *number = numbers + cells[i] * count + others[i];
        if (*number < 0)
            *number = found++;
        joint[i] = *number;
    }
}

/* What cells of samples contribute to the area under the ROC curve of the part that a cell is in, four numbers for each cell as
 * `assay_area_sums` says, from rows in the order of `assay_order_scores`. `sums` begins with zeros, and so does `counts`, four
 * numbers for each part: its negatives and positives above the score, and those that have it. `cells` has the cell of each row,
 * or of each group that rows were ordered with. */
void assay_area_sums_of_cells(int64_t rows, const uint32_t *order, const int32_t *cells, int64_t count, const int32_t *part_of,
                              int64_t *counts, int64_t *sums)
{
    for (int64_t i = 0, end; i < rows; i = end) {
        end = end_of_level(order, i, rows);
        if (i + AHEAD < rows)
            __builtin_prefetch(cells + (order[i + AHEAD] & ROW_MASK));
        if (end - i == 1) {
            int32_t cell = cells[order[i] & ROW_MASK];
            int64_t is_positive = (order[i] & IS_POSITIVE) != 0, *of = counts + 4 * part_of[cell];
            int64_t *of_cell = sums + 4 * (int64_t)cell + !is_positive;
            of_cell[0] += 2 * of[!is_positive];
            of_cell[2]++;
            of[is_positive]++;
            continue;
        }
        for (int64_t j = i; j < end; j++)
            counts[4 * part_of[cells[order[j] & ROW_MASK]] + 2 + ((order[j] & IS_POSITIVE) != 0)]++;
        for (int64_t j = i; j < end; j++) {
            int32_t cell = cells[order[j] & ROW_MASK];
            int64_t is_positive = (order[j] & IS_POSITIVE) != 0, *of = counts + 4 * part_of[cell];
            int64_t *of_cell = sums + 4 * (int64_t)cell + !is_positive;
            of_cell[0] += 2 * of[!is_positive] + of[2 + !is_positive];
            of_cell[2]++;
        }
        for (int64_t j = i; j < end; j++) {
            int64_t *of = counts + 4 * part_of[cells[order[j] & ROW_MASK]];
            of[0] += of[2];
            of[1] += of[3];
            of[2] = of[3] = 0;
        }
    }
    for (int64_t k = 0; k < count; k++) /* above a positive are the negatives that are not below it */
        sums[4 * k] = 2 * counts[4 * part_of[k]] * sums[4 * k + 2] - sums[4 * k];
}

/* One more row of a score, as often as each draw has its group. */
INLINE void add_draws(double *restrict of, const double *restrict times, int64_t draws)
{
    for (int64_t k = 0; k < draws; k++)
        of[k] += times[k];
}

/* For each of some draws of the groups, which have group g `times[g * draws + k]` times: twice the pairs of a positive and a
 * negative that are in the right order, and the pairs that are equal; how many positives there are, and negatives. These
 * are `pairs`, rows of `draws` numbers, of which two more are room; they begin with zeros. All are whole numbers below
 * 2 ** 53. */
VECTORISED void assay_pairs_of_draws(const struct ranked *r, uint64_t *keys, const double *times, int64_t draws,
                                     double *restrict pairs)
{
    int64_t rows;
    const uint64_t *sorted = sorted_rows(r, keys, &rows);
    double *right = pairs, *positives = pairs + draws, *negatives = positives + draws;
    double *tied = negatives + draws, *tied_negatives = tied + draws;
    for (int64_t i = 0, end; i < rows; i = end) {
        end = end_of_ties(sorted, i, rows);
        if (end - i == 1) {
            const double *weight = times + ((uint32_t)sorted[i] >> 1) * draws;
            if (sorted[i] & 1)
                add_draws(positives, weight, draws);
            else
                for (int64_t k = 0; k < draws; k++) {
                    right[k] += 2 * positives[k] * weight[k];
                    negatives[k] += weight[k];
                }
            continue;
        }
        for (int64_t k = 0; k < 2 * draws; k++)
            tied[k] = 0;
        for (int64_t j = i; j < end; j++)
            add_draws(sorted[j] & 1 ? tied : tied_negatives, times + ((uint32_t)sorted[j] >> 1) * draws, draws);
        for (int64_t k = 0; k < draws; k++) {
            right[k] += (2 * positives[k] + tied[k]) * tied_negatives[k];
            positives[k] += tied[k];
            negatives[k] += tied_negatives[k];
        }
    }
}

/* Merge two sorted runs, `middle` and `end` of them; returns how many pairs of both stand in falling order. */
static int64_t merged(const int32_t *restrict runs, int64_t middle, int64_t end, int32_t *restrict into)
{
    int64_t i = 0, j = middle, falling = 0;
    for (int64_t k = 0; i < middle && j < end; k++) { /* no branch, which would be guessed wrong every second time */
        int32_t a = runs[i], b = runs[j], later = b < a;
        falling += (middle - i) & -(int64_t)later;
        into[k] = later ? b : a;
        i += !later;
        j += later;
    }
    int64_t done = i + j - middle;
    memcpy(into + done, runs + (i < middle ? i : j), sizeof *into * (size_t)(end - done));
    return falling;
}

/* How many pairs of numbers stand in falling order; the numbers are sorted. `room` is as large (Knight 1966). */
void assay_count_inversions(int64_t count, int32_t *numbers, int32_t *room, int64_t *inversions)
{
    const int64_t short_run = 16;
    int64_t falling = 0;
    for (int64_t start = 0; start < count; start += short_run) {
        int64_t end = count - start < short_run ? count : start + short_run;
        for (int64_t i = start + 1; i < end; i++) {
            int32_t number = numbers[i];
            int64_t j = i;
            for (; j > start && numbers[j - 1] > number; j--)
                numbers[j] = numbers[j - 1];
            numbers[j] = number;
            falling += i - j;
        }
    }
    for (int64_t width = short_run; width < count; width *= 2) {
        for (int64_t start = 0; start < count; start += 2 * width) {
            int64_t rest = count - start, end = rest < 2 * width ? rest : 2 * width;
            falling += merged(numbers + start, width < end ? width : end, end, room + start);
        }
        int32_t *sorted = room;
        room = numbers;
        numbers = sorted;
    }
    *inversions = falling;
}
