/* Labels from scores on the CPU, as decide.py defines them: the first of the largest, and the rank of the target. */
#include <stdint.h>
#include <stdlib.h>
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

#define SIDES 4 /* tables that are counted into by turns, so that no addition waits for the one before */
#define FEW_CELLS 512
#define ROWS 1024 /* of a block */
#define DIGITS 4 /* of a label below `NARROW`: with its target it makes one of 256 cells, and those of two rows a pair */
#define NARROW (1 << DIGITS)
#define CELLS (NARROW * NARROW)
#define MANY (1 << 18) /* rows from which on to count pairs saves more than to add up their table takes */

/* Columns of the table of tally/labels/confusion.py: one more than the label, which is -1 below the classes, and as many as
 * there are classes above them. */
VECTORISED static void columns_of_labels(int32_t *restrict column, const int64_t *predicted, int64_t rows, int64_t classes)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t label = predicted[i];
        label = label < -1 ? -1 : label;
        column[i] = (int32_t)(label > classes ? classes : label) + 1;
    }
}

/* The same of scores, whose labels are 0 and 1, and 2 where they are NaN or no probability. */
VECTORISED static void columns_of_scores(int32_t *restrict column, const float *scores, int64_t rows, float threshold,
                                         int32_t logits)
{
    for (int64_t i = 0; i < rows; i++) {
        int32_t possible = logits ? scores[i] == scores[i] : (scores[i] >= 0) & (scores[i] <= 1);
        column[i] = possible ? 1 + (scores[i] > threshold) : 3;
    }
}

/* Where the row of a target begins in the table: below the classes, one of them, above them, or ignored. */
VECTORISED static void starts_of_targets(int32_t *restrict start, const int64_t *target, int64_t rows, int64_t classes,
                                         int64_t ignores, int64_t ignored)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t label = target[i] < -1 ? -1 : target[i];
        label = label > classes ? classes : label;
        label = ignores & (target[i] == ignored) ? classes + 1 : label;
        start[i] = (int32_t)(label + 1) * (int32_t)(classes + 2);
    }
}

/* What is predicted: labels, or scores that a threshold decides. */
struct predicted {
    const int64_t *labels;
    const float *scores;
    float threshold;
    int32_t logits;
};

/* The cell of each row; false where a label is not narrow. */
VECTORISED static int narrow_cells(uint8_t *restrict cell, const int64_t *predicted, const int64_t *target)
{
    uint64_t any = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        uint64_t label = (uint64_t)predicted[i], truth = (uint64_t)target[i];
        any |= label | truth;
        cell[i] = (uint8_t)(truth << DIGITS | label);
    }
    return any < NARROW;
}

/* Count the cells of a block, those of two rows by one addition; into two tables by turns. Meanwhile the labels of the next
 * block are on their way. */
static void count_pairs(uint32_t *pairs, const uint8_t *cell, const int64_t *predicted, const int64_t *target)
{
    for (int64_t i = 0; i < ROWS; i += 8) {
        uint64_t eight;
        __builtin_prefetch(predicted + ROWS + i);
        __builtin_prefetch(target + ROWS + i);
        memcpy(&eight, cell + i, sizeof eight);
        pairs[eight & 65535]++;
        pairs[CELLS * CELLS + (eight >> 16 & 65535)]++;
        pairs[eight >> 32 & 65535]++;
        pairs[CELLS * CELLS + (eight >> 48)]++;
    }
}

/* Add what was counted by pairs to the table. */
static void add_pairs(int64_t *table, const uint32_t *pairs, int64_t classes, int64_t ignores, int64_t ignored)
{
    uint64_t counts[CELLS] = {0};
    for (int64_t first = 0; first < 2 * CELLS; first++)
        for (int64_t second = 0; second < CELLS; second++) {
            counts[first % CELLS] += pairs[first * CELLS + second];
            counts[second] += pairs[first * CELLS + second];
        }
    for (int64_t target = 0; target < NARROW; target++)
        for (int64_t label = 0; label < NARROW; label++) {
            int64_t row = ignores && target == ignored ? classes + 1 : target < classes ? target : classes;
            int64_t column = label < classes ? label : classes;
            table[(row + 1) * (classes + 2) + column + 1] += (int64_t)counts[target << DIGITS | label];
        }
}

static void count_rows(int64_t *table, const struct predicted *p, const int64_t *target, int64_t rows, int64_t classes,
                       int64_t ignores, int64_t ignored)
{
    int64_t sides[SIDES][FEW_CELLS], cells = (classes + 3) * (classes + 2);
    int few = cells <= FEW_CELLS && rows >= cells;
    uint32_t *pairs = NULL; /* or without memory */
    if (p->labels && classes <= NARROW && rows >= MANY && rows <= UINT32_MAX)
        pairs = calloc(2 * CELLS * CELLS, sizeof *pairs);
    for (int side = 0; few && side < SIDES; side++)
        memset(sides[side], 0, sizeof *table * (size_t)cells);
    for (int64_t start = 0; start < rows; start += ROWS) {
        int32_t column[ROWS], row[ROWS];
        uint8_t cell[ROWS];
        int64_t taken = rows - start < ROWS ? rows - start : ROWS;
        if (pairs && taken == ROWS && narrow_cells(cell, p->labels + start, target + start)) {
            count_pairs(pairs, cell, p->labels + start, target + start);
            continue;
        }
        have_ready(target + start + ROWS, ROWS * sizeof *target);
        have_ready(p->labels ? (const void *)(p->labels + start + ROWS) : p->scores + start + ROWS,
                   ROWS * (p->labels ? sizeof *p->labels : sizeof *p->scores));
        if (p->labels)
            columns_of_labels(column, p->labels + start, taken, classes);
        else
            columns_of_scores(column, p->scores + start, taken, p->threshold, p->logits);
        starts_of_targets(row, target + start, taken, classes, ignores, ignored);
        for (int64_t i = 0; i < taken; i++)
            row[i] += column[i];
        if (few && taken == ROWS)
            for (int64_t i = 0; i < ROWS; i += SIDES)
                for (int side = 0; side < SIDES; side++)
                    sides[side][row[i + side]]++;
        else
            for (int64_t i = 0; i < taken; i++)
                table[row[i]]++;
    }
    for (int side = 0; few && side < SIDES; side++)
        for (int64_t k = 0; k < cells; k++)
            table[k] += sides[side][k];
    if (pairs)
        add_pairs(table, pairs, classes, ignores, ignored);
    free(pairs);
}

/* Count rows into the table of tally/labels/confusion.py by their true labels and their predicted ones. */
void assay_count_labels(int64_t *table, const int64_t *predicted, const int64_t *target, int64_t rows, int64_t classes,
                        int64_t ignores, int64_t ignored)
{
    count_rows(table, &(struct predicted){predicted, NULL, 0, 0}, target, rows, classes, ignores, ignored);
}

/* The same for binary scores, and the bits of the threshold. */
void assay_count_scores_above(int64_t *table, const float *scores, int64_t threshold, int64_t logits, const int64_t *target,
                              int64_t rows, int64_t ignores, int64_t ignored)
{
    struct predicted p = {NULL, scores, 0, (int32_t)logits};
    uint32_t bits = (uint32_t)threshold;
    memcpy(&p.threshold, &bits, sizeof bits);
    count_rows(table, &p, target, rows, 2, ignores, ignored);
}

/* Count rows into such tables, of which each cell of rows has one. */
void assay_count_labels_of_cells(int64_t *table, const int64_t *predicted, const int64_t *target, const int64_t *cells,
                                 int64_t rows, int64_t classes, int64_t ignores, int64_t ignored)
{
    int64_t size = (classes + 3) * (classes + 2);
    for (int64_t start = 0; start < rows; start += ROWS) {
        int32_t column[ROWS], row[ROWS];
        int64_t taken = rows - start < ROWS ? rows - start : ROWS;
        columns_of_labels(column, predicted + start, taken, classes);
        starts_of_targets(row, target + start, taken, classes, ignores, ignored);
        for (int64_t i = 0; i < taken; i++)
            table[cells[start + i] * size + row[i] + column[i]]++;
    }
}

/* 1 for each score above the level, else 0; 2 where it is NaN, or outside [0, 1] and no logit. */
VECTORISED void assay_above(int64_t *labels, const float *scores, int64_t count, const float *level, int64_t logits)
{
    float least = *level;
    for (int64_t i = 0; i < count; i++) {
        int possible = logits ? scores[i] == scores[i] : (scores[i] >= 0) & (scores[i] <= 1);
        labels[i] = possible ? scores[i] > least : 2;
    }
}

/* Count rows into tables of tally/labels/confusion.py, of which each label has one. Both have the shape (samples, labels,
 * positions). */
void assay_count_grouped_labels(int64_t *table, const int64_t *predicted, const int64_t *target, int64_t samples,
                                int64_t labels, int64_t positions, int64_t classes, int64_t ignores, int64_t ignored)
{
    for (int64_t i = 0, sample = 0; sample < samples; sample++)
        for (int64_t label = 0; label < labels; label++) {
            int64_t *of_label = table + label * (classes + 3) * (classes + 2);
            for (int64_t position = 0; position < positions; position++, i++) {
                int64_t row = target[i] < 0 ? 0 : target[i] < classes ? target[i] + 1 : classes + 1;
                int64_t column = predicted[i] < 0 ? 0 : predicted[i] < classes ? predicted[i] + 1 : classes + 1;
                row = ignores && target[i] == ignored ? classes + 2 : row;
                of_label[row * (classes + 2) + column]++;
            }
        }
}
