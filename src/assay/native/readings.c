/* Values of states in host memory, each read in one call where there is nothing to report of the data. */
#include <math.h>
#include <string.h>

#include "limbs.h"

#define NO_KEY INT64_MIN

/* Whether a table of `Confusion` has a true label out of range, or a predicted one where the true one is in range. */
static int has_invalid(const int64_t *table, int64_t classes)
{
    int64_t columns = classes + 2, found = 0;
    for (int64_t k = 0; k < columns; k++)
        found |= table[k] | table[(classes + 1) * columns + k];
    for (int64_t row = 1; row <= classes; row++)
        found |= table[row * columns] | table[row * columns + classes + 1];
    return found != 0;
}

/* The confusion matrices of `groups` labels, (groups, classes, classes), out of their tables; returns whether a label is
 * invalid, and `matrices` may then be anything. */
int assay_plain_matrices(const int64_t *table, int64_t groups, int64_t classes, int64_t *matrices)
{
    int64_t columns = classes + 2;
    for (int64_t group = 0; group < groups; group++, table += (classes + 3) * columns) {
        if (has_invalid(table, classes))
            return 1;
        for (int64_t row = 1; row <= classes; row++, matrices += classes)
            memcpy(matrices, table + row * columns + 1, 8 * (size_t)classes);
    }
    return 0;
}

/* True and false positives, true and false negatives and support of each class, (5, classes); or of class 1 of each of
 * `groups` labels with two classes, (5, groups). Returns the same. */
int assay_plain_outcomes(const int64_t *table, int64_t groups, int64_t classes, int64_t of_classes, int64_t *outcomes)
{
    int64_t columns = classes + 2, width = of_classes ? classes : groups;
    for (int64_t group = 0; group < groups; group++, table += (classes + 3) * columns) {
        const int64_t *matrix = table + columns + 1;
        int64_t total = 0;
        if (has_invalid(table, classes))
            return 1;
        for (int64_t row = 0; row < classes; row++)
            for (int64_t k = 0; k < classes; k++)
                total += matrix[row * columns + k];
        for (int64_t class = of_classes ? 0 : 1; class < classes; class++) {
            int64_t *of = outcomes + (of_classes ? class : group);
            int64_t hits = matrix[class * columns + class], targets = 0, predicted = 0;
            for (int64_t k = 0; k < classes; k++) {
                targets += matrix[class * columns + k];
                predicted += matrix[k * columns + class];
            }
            of[0] = hits;
            of[width] = predicted - hits;
            of[2 * width] = total - targets - predicted + hits;
            of[3 * width] = targets - hits;
            of[4 * width] = targets;
        }
    }
    return 0;
}

/* The largest of the floats whose keys `Extremes` has, or of their negatives in column 1; NaN where there was a NaN or an
 * integer, or nothing. */
double assay_plain_extreme(const int64_t *keys, const int64_t *count, const int64_t *nan, int64_t column)
{
    int64_t narrow = keys[column], wide = keys[2 + column];
    float single;
    double largest = -INFINITY, value;
    if (*nan || !*count || keys[4 + column] != NO_KEY || (narrow == NO_KEY && wide == NO_KEY))
        return NAN;
    if (narrow != NO_KEY) {
        int32_t bits = (int32_t)(narrow < 0 ? narrow ^ INT32_MAX : narrow);
        memcpy(&single, &bits, 4);
        largest = single;
    }
    if (wide != NO_KEY) {
        wide = wide < 0 ? wide ^ INT64_MAX : wide;
        memcpy(&value, &wide, 8);
        largest = narrow == NO_KEY || value > largest ? value : largest;
    }
    return largest;
}

/* The lowest and the highest of one or more labels of each of two lists. */
void assay_label_ranges(int64_t rows, const int64_t *preds, const int64_t *target, int64_t *ranges)
{
    for (int side = 0; side < 2; side++, ranges += 2) {
        const int64_t *labels = side ? target : preds;
        int64_t low = labels[0], high = labels[0];
        for (int64_t k = 1; k < rows; k++) {
            low = labels[k] < low ? labels[k] : low;
            high = labels[k] > high ? labels[k] : high;
        }
        ranges[0] = low;
        ranges[1] = high;
    }
}

/* Sums of the rows and columns of a table that are not 0, one after the other; `places` of a row or column becomes its
 * number among them. Returns how many there are. */
static int64_t number_totals(const int64_t *table, int64_t lines, int64_t line, int64_t cells, int64_t cell,
                             int64_t *totals, int64_t *places)
{
    int64_t count = 0;
    for (int64_t k = 0; k < lines; k++) {
        int64_t total = 0;
        for (int64_t j = 0; j < cells; j++)
            total += table[k * line + j * cell];
        places[k] = count;
        if (total)
            totals[count++] = total;
    }
    return count;
}

/* How often each pair of labels occurs, without what does not occur: `counts` of the pairs, by row and then by column,
 * `row` and `column` of each, and the `sums` of rows and then of columns. `ranges` is what `assay_label_ranges` gives of
 * `height` and `width` labels; `room` has `height * width + height + width` numbers, `sums` as many as both sides. In
 * `sizes`, how many pairs, rows and columns there are. */
void assay_count_pairs_of_labels(int64_t rows, const int64_t *preds, const int64_t *target, const int64_t *ranges,
                                 int64_t height, int64_t width, int64_t *room, int64_t *counts, int64_t *row,
                                 int64_t *column, int64_t *sums, int64_t *sizes)
{
    int64_t *row_places = room + height * width, *column_places = row_places + height, found = 0;
    memset(room, 0, 8 * (size_t)(height * width));
    for (int64_t k = 0; k < rows; k++)
        room[(preds[k] - ranges[0]) * width + target[k] - ranges[2]]++;
    sizes[1] = number_totals(room, height, width, width, 1, sums, row_places);
    sizes[2] = number_totals(room, width, 1, height, width, sums + sizes[1], column_places);
    for (int64_t k = 0; k < height; k++)
        for (int64_t j = 0; j < width; j++)
            if (room[k * width + j]) {
                counts[found] = room[k * width + j];
                row[found] = row_places[k];
                column[found++] = column_places[j];
            }
    sizes[0] = found;
}
