/* Rows in the order of their columns: what NumPy's lexsort gives. */
#include <stdint.h>
#include <string.h>

#include "radix.h"

#define FEW_TIES 48 /* are sorted by insertion */
#define IS_FIRST (INT64_C(1) << 62)
#define ROW(place) ((place) & ~IS_FIRST)

/* One number of each row, in so many bytes, of rows that are `step` bytes apart; `flipped` are the bits that are turned so that
 * the order of the numbers is that of unsigned ones. */
struct sort_key {
    const char *first;
    int64_t size, step, flipped;
};

static inline uint32_t number(const struct sort_key *key, int64_t row)
{
    const char *at = key->first + row * key->step;
    uint32_t whole;
    uint16_t half;
    switch (key->size) {
    case 1:
        return (uint8_t)*at ^ (uint32_t)key->flipped;
    case 2:
        memcpy(&half, at, sizeof half);
        return half ^ (uint32_t)key->flipped;
    default:
        memcpy(&whole, at, sizeof whole);
        return whole ^ (uint32_t)key->flipped;
    }
}

static uint64_t *inserted(uint64_t *keys, int64_t rows)
{
    for (int64_t i = 1; i < rows; i++) {
        uint64_t key = keys[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
    return keys;
}

/* Sort rows that have been equal so far, and mark the first of those that still are; whether any are. */
static int sorted_run(const struct sort_key *key, int64_t *order, int64_t rows, uint64_t *room)
{
    int is_tied = 0;
    for (int64_t i = 0; i < rows; i++)
        room[i] = (uint64_t)number(key, ROW(order[i])) << 32 | (uint32_t)ROW(order[i]);
    const uint64_t *sorted =
        rows < FEW_TIES ? inserted(room, rows) : sorted_by_upper_half(room, room + rows, rows);
    for (int64_t i = 0; i < rows; i++) {
        int is_first = !i || sorted[i] >> 32 != sorted[i - 1] >> 32;
        is_tied |= !is_first;
        order[i] = (uint32_t)sorted[i] | (is_first ? IS_FIRST : 0);
    }
    return is_tied;
}

/* The same by a number of one byte, which takes one pass. */
static int counted_run(const struct sort_key *key, int64_t *order, int64_t rows, int64_t *room)
{
    int64_t starts[257] = {0};
    int is_tied = 0;
    for (int64_t i = 0; i < rows; i++)
        starts[number(key, ROW(order[i])) + 1]++;
    for (int k = 0; k < 256; k++) {
        is_tied |= starts[k + 1] > 1;
        starts[k + 1] += starts[k];
    }
    for (int64_t i = 0; i < rows; i++) {
        uint32_t byte = number(key, ROW(order[i]));
        room[starts[byte]++] = ROW(order[i]);
    }
    memcpy(order, room, sizeof *order * (size_t)rows);
    order[0] |= IS_FIRST;
    for (int k = 0; k < 255; k++) /* where a byte ends, the next one starts */
        if (starts[k] < rows)
            order[starts[k]] |= IS_FIRST;
    return is_tied;
}

/* The numbers of rows, fewer than 2 ** 32, sorted by the last key, those that are tied by the one before it, and so on; equal
 * rows stay in their order. `room` is for two numbers a row. */
void assay_order_rows(int64_t rows, int64_t keys, const struct sort_key *described, uint64_t *room, int64_t *order)
{
    int is_tied = rows > 1;
    for (int64_t i = 0; i < rows; i++)
        order[i] = i ? i : IS_FIRST;
    for (int64_t k = keys - 1; k >= 0 && is_tied; k--) {
        is_tied = 0;
        for (int64_t i = 0, end; i < rows; i = end) {
            for (end = i + 1; end < rows && !(order[end] & IS_FIRST);)
                end++;
            if (end - i > 1)
                is_tied |= described[k].size == 1 && end - i >= FEW_TIES
                               ? counted_run(described + k, order + i, end - i, (int64_t *)room)
                               : sorted_run(described + k, order + i, end - i, room);
        }
    }
    for (int64_t i = 0; i < rows; i++)
        order[i] = ROW(order[i]);
}
