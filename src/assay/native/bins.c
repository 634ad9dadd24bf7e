/* Scores and confidences into bins on the CPU, as tally/scores/score_bins.py, tally/scores/labelled_scores.py and tally/scores/histogram.py define
 * them. */
#include <fenv.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "limbs.h"

#define BLOCK 1024
#define GROUPS 16 /* whose scores lie in one line of the cache */
#define ROWS 128 /* of a tile */
#define MOST_ROWS 2048 /* whose scores are read again before they left the cache */
#define INFINITE 0x7f800000 /* the bits of the float */
#define SMALL_TABLE 4096 /* counts that the first cache holds */

/* Where bins are fine, as ScoreBins has it; `lattice` are the bits that make a score not plain. */
struct bins {
    int32_t logits, first, above, coarse_dropped, fine_dropped, lattice, middle, count, shift;
};

static inline int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* `place` for one kind of scores. Fields are read before the loop: `bin` might be one of them, for all that the compiler
 * knows, and then it would not vectorise. */
INLINE int64_t place_kind(const struct bins *b, const float *restrict scores, int32_t *restrict bin, int64_t rows, int logits)
{
    int32_t extra = (1 << (23 - b->fine_dropped)) - (1 << (23 - b->coarse_dropped)), lowest = b->first * extra;
    int32_t wide = (b->above - b->first) * extra, coarse_dropped = b->coarse_dropped, fine_dropped = b->fine_dropped;
    int32_t shift = b->shift, middle = b->middle, last = b->count - 1, lattice = b->lattice, unclear = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t given = bits_of(scores[i]), known = -((given & 0x7fffffff) <= INFINITE); /* not NaN */
        float score = float_of(given & known), rest = 1 - score;
        float distance = logits ? score : score < rest ? score : rest;
        int32_t below = bits_of(logits ? score : score - 0.5f) >> 31;
        int32_t bits = bits_of(distance) & 0x7fffffff;
        int32_t coarse = bits >> coarse_dropped, fine = (bits >> fine_dropped) - lowest;
        int32_t most = coarse + wide;
        int32_t steps = fine < coarse ? coarse : fine > most ? most : fine;
        int32_t from_middle = logits ? steps : middle - steps;
        int32_t key = (((from_middle ^ below) - below) + middle) >> shift;
        bin[i] = key < 0 ? 0 : key > last ? last : key;
        unclear += (bits & lattice) != 0;
    }
    return unclear;
}

VECTORISED static int64_t place(const struct bins *b, const float *scores, int32_t *bin, int64_t rows)
{
    return b->logits ? place_kind(b, scores, bin, rows, 1) : place_kind(b, scores, bin, rows, 0);
}

/* Count targets that are out of range, and rows with scores that are NaN, or that are no probabilities and should be, where
 * the target is not ignored. A row has one target and `width` scores; `target` is 0 below the range, up to `classes` one
 * more than the class, `classes + 1` above the range, and `classes + 2` where it is ignored. */
VECTORISED void assay_count_invalid_scores(int64_t *invalid, const float *scores, const int64_t *target, int64_t rows,
                                           int64_t width, int64_t classes, int64_t logits)
{
    int64_t targets = 0, nan = 0, outside = 0, checked = !logits;
    for (int64_t i = 0; i < rows; i++) {
        int32_t where = (int32_t)target[i], last = (int32_t)classes, counted = where != last + 2, some = 0, out = 0;
        for (int64_t k = 0; k < width; k++) {
            float score = scores[i * width + k];
            some |= score != score;
            out |= (score > 1) | (score < 0);
        }
        targets += counted & ((where == 0) | (where == last + 1));
        nan += counted & some;
        outside += counted & checked & out & !some;
    }
    invalid[0] += targets, invalid[1] += nan, invalid[2] += outside;
}

/* The same for scores of which each class has a column; from one column to the next it is `apart` numbers. */
VECTORISED void assay_count_invalid_score_columns(int64_t *invalid, const float *scores, const int64_t *target,
                                                  int64_t rows, int64_t width, int64_t classes, int64_t logits,
                                                  int64_t apart)
{
    for (int64_t start = 0; start < rows; start += BLOCK) {
        int32_t stop = (int32_t)(rows - start < BLOCK ? rows - start : BLOCK), some[BLOCK] = {0}, out[BLOCK] = {0};
        int32_t targets = 0, nan = 0, outside = 0, last = (int32_t)classes, checked = !logits;
        for (int64_t k = 0; k < width; k++) {
            const float *x = scores + k * apart + start;
            for (int32_t i = 0; i < stop; i++) {
                some[i] |= x[i] != x[i];
                out[i] |= (x[i] > 1) | (x[i] < 0);
            }
        }
        for (int32_t i = 0; i < stop; i++) {
            int32_t where = (int32_t)target[start + i], counted = where != last + 2;
            targets += counted & ((where == 0) | (where == last + 1));
            nan += counted & some[i];
            outside += counted & checked & out[i] & !some[i];
        }
        invalid[0] += targets, invalid[1] += nan, invalid[2] += outside;
    }
}

/* Scores of `groups` groups, from one row and one group to the next so many numbers; and their targets as for
 * `assay_count_invalid_scores`: with `multiclass` one for each row, whose group is its class, else one for each score. */
struct labelled {
    const float *scores;
    const int64_t *target;
    int64_t groups, row_step, group_step, classes, multiclass;
};

/* Scores of some rows and groups, row by row, and where they count: in the table of the group, negatives, then positives. */
struct tile {
    float scores[ROWS * GROUPS];
    int32_t at[ROWS * GROUPS];
    int64_t first, width; /* the groups */
};

static void take_scores(struct tile *t, const struct labelled *s, const int64_t *row, int64_t rows)
{
    const float *x = s->scores + t->first * s->group_step;
    if (s->group_step == 1 && t->width == GROUPS)
        for (int64_t i = 0; i < rows; i++) {
            memcpy(t->scores + i * GROUPS, x + row[i] * s->row_step, GROUPS * sizeof *x);
            __builtin_prefetch(x + row[i] * s->row_step + GROUPS); /* the next groups of the row */
        }
    else
        for (int64_t g = 0; g < t->width; g++)
            for (int64_t i = 0; i < rows; i++)
                t->scores[i * t->width + g] = x[row[i] * s->row_step + g * s->group_step];
}

/* From bins to places in the tables of the groups, `table` numbers for each. */
static void add_tables(struct tile *t, int64_t rows, int32_t table)
{
    if (t->width == GROUPS)
        for (int64_t i = 0; i < rows; i++)
            for (int32_t g = 0; g < GROUPS; g++)
                t->at[i * GROUPS + g] += g * table;
    else
        for (int64_t i = 0; i < rows; i++)
            for (int64_t g = 0; g < t->width; g++)
                t->at[i * t->width + g] += (int32_t)g * table;
}

/* Count a row whose target is its class, if it is one. */
static void count_of_class(int64_t *counts, struct tile *t, int64_t i, int64_t target, int64_t classes, int32_t bins)
{
    int64_t own = target - 1 - t->first;
    int32_t *at = t->at + i * t->width;
    if (target < 1 || target > classes)
        return;
    if (own >= 0 && own < t->width)
        at[own] += bins;
    if (t->width == GROUPS)
        for (int64_t g = 0; g < GROUPS; g++)
            counts[at[g]]++;
    else
        for (int64_t g = 0; g < t->width; g++)
            counts[at[g]]++;
}

/* Count some rows of the groups of a tile into their tables. */
static void count_tile(int64_t *counts, int64_t *unclear, struct tile *t, const struct labelled *s, const int64_t *row,
                       int64_t rows, const struct bins *b)
{
    take_scores(t, s, row, rows);
    *unclear += place(b, t->scores, t->at, rows * t->width);
    add_tables(t, rows, 2 * b->count);
    for (int64_t k = 0; k < rows * t->width && b->count > SMALL_TABLE; k++) /* they are on their way from memory */
        __builtin_prefetch(counts + t->at[k], 1);
    for (int64_t i = 0; i < rows && s->multiclass; i++)
        count_of_class(counts, t, i, s->target[row[i]], s->classes, b->count);
    for (int64_t i = 0; i < rows && !s->multiclass; i++)
        for (int64_t g = 0; g < t->width; g++) {
            int64_t where = s->target[row[i] * s->groups + t->first + g];
            counts[t->at[i * t->width + g] + (where == 2 ? b->count : 0)] += where >= 1 && where <= s->classes;
        }
}

/* Count rows into `histogram`: of each group the negatives, then the positives, each in `b->count` bins; and in `unclear`
 * those that may share a bin with others. The rows are those that `order` lists, or all in turn without it. The tables of
 * a few groups at a time stay in the cache, for as many rows as their scores do. */
static void count_rows(int64_t *histogram, int64_t *unclear, const struct labelled *s, const int64_t *order, int64_t rows,
                       const struct bins *b)
{
    struct tile tile;
    int64_t row[MOST_ROWS], blocks = (rows + MOST_ROWS - 1) / MOST_ROWS;
    for (int64_t block = 0; block < blocks; block++) { /* of equal size */
        int64_t start = block * rows / blocks, taken = (block + 1) * rows / blocks - start;
        for (int64_t i = 0; i < taken; i++)
            row[i] = order ? order[start + i] : start + i;
        for (tile.first = 0; tile.first < s->groups; tile.first += tile.width) {
            tile.width = s->groups - tile.first < GROUPS ? s->groups - tile.first : GROUPS;
            for (int64_t i = 0; i < taken; i += ROWS)
                count_tile(histogram + 2 * tile.first * b->count, unclear, &tile, s, row + i,
                           taken - i < ROWS ? taken - i : ROWS, b);
        }
    }
}

/* Count scores into the histogram of all rows; see `count_rows`. */
void assay_count_scores(int64_t *histogram, int64_t *unclear, const float *scores, const int64_t *target, int64_t rows,
                        int64_t groups, int64_t row_step, int64_t group_step, int64_t classes, int64_t multiclass,
                        const struct bins *b)
{
    struct labelled s = {scores, target, groups, row_step, group_step, classes, multiclass};
    count_rows(histogram, unclear, &s, 0, rows, b);
}

/* Count scores into the histograms of the cells of their rows. `tables` has for each cell the address of its histogram and
 * of its `unclear`, or twice 0 where its rows are not counted; `starts` and `order` list rows as `assay_order_cells` does. */
void assay_count_cell_scores(const int64_t *tables, int64_t cells, const int64_t *starts, const int64_t *order,
                             const float *scores, const int64_t *target, int64_t groups, int64_t row_step,
                             int64_t group_step, int64_t classes, int64_t multiclass, const struct bins *b)
{
    struct labelled s = {scores, target, groups, row_step, group_step, classes, multiclass};
    for (int64_t cell = 0; cell < cells; cell++)
        if (tables[2 * cell])
            count_rows((int64_t *)(intptr_t)tables[2 * cell], (int64_t *)(intptr_t)tables[2 * cell + 1], &s,
                       order + starts[cell], starts[cell + 1] - starts[cell], b);
}

/* The bin of each score, and in `unclear` how many may share one with others. */
void assay_place_scores(int32_t *bin, int64_t *unclear, const float *scores, int64_t rows, const struct bins *b)
{
    for (int64_t start = 0; start < rows; start += BLOCK)
        *unclear += place(b, scores + start, bin + start, rows - start < BLOCK ? rows - start : BLOCK);
}

/* Copy scores, where `kept` is not NULL, and the classes of their binary targets: -1 where one is ignored or no class. Counts
 * what is invalid as `assay_count_invalid_scores` does. */
VECTORISED void assay_copy_labelled_scores(int64_t *invalid, int8_t *restrict known, float *restrict kept,
                                           const float *scores, const int64_t *target, int64_t rows, int64_t logits,
                                           int64_t ignores, int64_t ignore_index)
{
    for (int64_t start = 0; start < rows; start += BLOCK) {
        int32_t stop = (int32_t)(rows - start < BLOCK ? rows - start : BLOCK), targets = 0, nan = 0, outside = 0;
        const float *x = scores + start;
        const int64_t *t = target + start;
        int32_t code[BLOCK]; /* the class; 2 for none, 3 for ignored */
        for (int32_t i = 0; i < stop; i++)
            code[i] = (int32_t)((uint64_t)t[i] > 1 ? 2 : t[i]);
        if (ignores)
            for (int32_t i = 0; i < stop; i++)
                code[i] = t[i] == ignore_index ? 3 : code[i];
        for (int32_t i = 0; i < stop; i++) {
            int32_t counted = code[i] != 3;
            targets += code[i] == 2;
            nan += counted & (x[i] != x[i]);
            outside += counted & !logits & ((x[i] > 1) | (x[i] < 0));
            known[start + i] = (int8_t)(code[i] > 1 ? -1 : code[i]);
        }
        if (kept)
            memcpy(kept + start, x, sizeof *x * (size_t)stop);
        invalid[0] += targets, invalid[1] += nan, invalid[2] += outside;
    }
}

#define MOST_BINS 64 /* whose sums are formed in blocks */
#define FIXED_BITS 52
#define ONE 0x3f800000                          /* the bits of the float */
#define LEAST_EXPONENT (127 + 23 - FIXED_BITS) /* the bits of the exponent of floats that are multiples of such a unit */
#define SIDES 4 /* tables that are counted into by turns, so that no addition waits for the one before */

static int64_t bin_of(float sure, int64_t num_bins)
{
    float scaled = sure * (float)num_bins;
    return scaled < 0 ? 0 : scaled >= (float)num_bins ? num_bins - 1 : (int64_t)scaled;
}

/* What a bin holds of a block: the confidences as integers, and how many there are with 2 ** 32 for each that is right. */
struct bin {
    int64_t fixed, counted;
};

typedef union {
    uint32_t bits;
    float number;
} __attribute__((may_alias)) aliased;

/* The bins of confidences, one more where the outcome does not count, and the confidences as integers in units of
 * 2 ** -FIXED_BITS; false where one is no such integer, or not in [0, 1]. */
VECTORISED static int place_confidence(const float *restrict confidence, const int8_t *restrict outcome, int64_t rows,
                                       int32_t num_bins, int32_t *restrict bin, int64_t *restrict fixed)
{
    int32_t unclear = 0, none = 0, significand[BLOCK], shift[BLOCK];
    uint32_t within[BLOCK];
    const aliased *given = (const aliased *)confidence, *sure = (const aliased *)within;
    for (int64_t i = 0; i < rows; i++) {
        unclear |= given[i].bits > ONE;
        within[i] = given[i].bits > ONE ? 0 : given[i].bits;
    }
    for (int64_t i = 0; i < rows; i++) {
        int32_t bits = (int32_t)within[i], exponent = (bits >> 23) - LEAST_EXPONENT, some = bits != 0;
        none |= some & (exponent < 0);
        significand[i] = ((bits & 0x7fffff) | 0x800000) & -some;
        shift[i] = exponent < 0 ? 0 : exponent;
    }
    for (int64_t i = 0; i < rows; i++) {
        int32_t place = (int32_t)(sure[i].number * (float)num_bins);
        place = place < num_bins ? place : num_bins - 1;
        bin[i] = outcome[i] < 0 ? num_bins : place;
    }
    for (int64_t i = 0; i < rows; i++)
        fixed[i] = (int64_t)significand[i] << shift[i];
    return !(unclear | none);
}

/* Count a block of confidences that `place_confidence` has placed. */
static void count_placed(int64_t *counts, int64_t *limbs, int64_t words, int64_t origin, const int32_t *bin,
                         const int64_t *fixed, const int8_t *outcome, int64_t rows, int64_t num_bins)
{
    struct bin table[SIDES][MOST_BINS + 1] = {{{0}}};
    for (int64_t i = 0; i < rows; i++) {
        struct bin *into = &table[i % SIDES][bin[i]];
        into->fixed += fixed[i];
        into->counted += 1 + ((int64_t)outcome[i] << 32);
    }
    for (int64_t k = 0; k < num_bins; k++) {
        struct bin sum = {0};
        for (int side = 0; side < SIDES; side++)
            sum.fixed += table[side][k].fixed, sum.counted += table[side][k].counted;
        counts[2 * k] += sum.counted & UINT32_MAX;
        counts[2 * k + 1] += sum.counted >> 32;
        add_wide_number(limbs + k * words, -FIXED_BITS - origin, (uint128)sum.fixed, 0);
    }
}

/* Count confidences one by one. */
static void count_each(int64_t *counts, int64_t *limbs, int64_t words, int64_t origin, const float *confidence,
                       const int8_t *outcome, int64_t rows, int64_t num_bins)
{
    for (int64_t i = 0; i < rows; i++) {
        if (outcome[i] < 0 || !(confidence[i] - confidence[i] == 0))
            continue;
        int64_t bin = bin_of(confidence[i], num_bins);
        counts[2 * bin] += 1;
        counts[2 * bin + 1] += outcome[i];
        add_number(limbs + bin * words, origin, confidence[i]);
    }
}

/* Count confidences in `num_bins` bins of equal width: in `counts` all that count and those that are right, in `limbs`
 * of `words` words for each bin the exact sums. `outcome` is 1 for right, 0 for wrong, and -1 for what does not count. */
void assay_count_confidence(int64_t *counts, int64_t *limbs, int64_t words, int64_t origin, const float *confidence,
                            const int8_t *outcome, int64_t rows, int64_t num_bins)
{
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    for (int64_t start = 0; start < rows; start += BLOCK) {
        int64_t taken = rows - start < BLOCK ? rows - start : BLOCK, fixed[BLOCK]; /* 2 ** 10 of these fit 63 bits */
        int32_t bin[BLOCK];
        if (num_bins <= MOST_BINS && place_confidence(confidence + start, outcome + start, taken, (int32_t)num_bins, bin,
                                                      fixed))
            count_placed(counts, limbs, words, origin, bin, fixed, outcome + start, taken, num_bins);
        else
            count_each(counts, limbs, words, origin, confidence + start, outcome + start, taken, num_bins);
    }
    for (int64_t bin = 0; bin < num_bins; bin++)
        carry(limbs + bin * words, words);
    fesetenv(&before);
}

/* The confidence and the outcome of each row of scores, as assay_count_confidence takes them: of one score the score, and
 * whether the target is 1; of those of `classes` the highest, and whether it is the target's, the first among equals. Returns
 * whether a score is no probability, or a target no class. */
static int64_t decide_rows(const float *scores, const int64_t *target, int64_t rows, int64_t classes, float *confidence,
                           int8_t *outcome)
{
    int64_t invalid = 0, targets = classes == 1 ? 2 : classes;
    for (int64_t i = 0; i < rows; i++) {
        const float *x = scores + i * classes;
        int64_t best = 0;
        for (int64_t k = 0; k < classes; k++) {
            invalid |= !((x[k] >= 0) & (x[k] <= 1));
            best = x[k] > x[best] ? k : best;
        }
        invalid |= (uint64_t)target[i] >= (uint64_t)targets;
        confidence[i] = x[best];
        outcome[i] = target[i] == (classes == 1 ? 1 : best);
    }
    return invalid;
}

/* Count rows of scores in bins of confidence, as assay_count_confidence does; returns whether some are invalid, and then
 * none was counted. `confidence` and `outcome` are room for a number of each row. */
int64_t assay_count_scored_rows(const float *scores, const int64_t *target, int64_t rows, int64_t classes, float *confidence,
                                int8_t *outcome, int64_t *counts, int64_t *limbs, int64_t words, int64_t origin,
                                int64_t num_bins)
{
    if (decide_rows(scores, target, rows, classes, confidence, outcome))
        return 1;
    assay_count_confidence(counts, limbs, words, origin, confidence, outcome, rows, num_bins);
    return 0;
}
