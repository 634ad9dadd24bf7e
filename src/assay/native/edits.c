/* Levenshtein distances of pairs of texts by Myers' bit-parallel algorithm (Journal of the ACM 46, 1999), with the blocks
 * of Hyyrö (Nordic Journal of Computing 10, 2003). Elements of
 * texts are words or characters. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

/* A strip of the pattern, one bit an element, is compared with the whole text at once; in lanes, those of several pairs. */
enum { STRIP = 64, LANES = 8, SLOTS = 256, CLASSES = 512, ROWS = 128, BLOCK = 4096 };
typedef uint64_t Bits;
typedef Bits Lanes __attribute__((vector_size(LANES * sizeof(Bits))));

/* Elements one after the other, each of 1, 4 or 8 bytes: characters of Latin-1 or UTF-32, or the keys of words. */
typedef struct {
    const uint8_t *start;
    int64_t width, count;
} Elements;

/* Two texts that differ at both ends, the shorter one as the pattern, as numbers of elements; and where their distance
 * goes. 1 <= m <= n. */
typedef struct {
    const uint32_t *pattern, *text;
    int64_t m, n, *result;
} Pair;

/* Eight bytes as a number, of which the first byte is the lowest. */
static inline uint64_t eight(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    number = __builtin_bswap64(number);
#endif
    return number;
}

static inline uint32_t code_point(const uint8_t *bytes)
{
    uint32_t c;
    memcpy(&c, bytes, 4);
    return c;
}

static inline uint64_t mixed(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
}

/* What str.isspace says is white space. */
static inline int is_space(uint32_t c)
{
    return (c == ' ') | (c - 0x09 < 5) | (c - 0x1C < 4) | (c == 0x85) | (c == 0xA0) | (c == 0x1680) |
           (c - 0x2000 < 11) | (c - 0x2028 < 2) | (c == 0x202F) | (c == 0x205F) | (c == 0x3000);
}

static inline int is_space_at(const uint8_t *bytes, int64_t width)
{
    return is_space(width == 1 ? *bytes : code_point(bytes));
}

/* Writes a bit for each of up to BLOCK characters, whether it is white space; the bits behind the last are set. */
VECTORISED static void mark_spaces(const uint8_t *bytes, int64_t width, int64_t count, uint8_t *bits)
{
    uint8_t spaces[BLOCK];
    if (width == 1)
        for (int64_t k = 0; k < count; k++) {
            uint8_t c = bytes[k];
            spaces[k] = (c == ' ') | ((uint8_t)(c - 0x09) < 5) | ((uint8_t)(c - 0x1C) < 4) | (c == 0x85) | (c == 0xA0);
        }
    else
        for (int64_t k = 0; k < count; k++)
            spaces[k] = (uint8_t)is_space(code_point(bytes + 4 * k));
    memset(spaces + count, 1, (size_t)(BLOCK - count));
    for (int k = 0; k < BLOCK / 8; k++) /* the product moves the lowest bits of eight bytes to the top */
        bits[k] = (uint8_t)(eight(spaces + 8 * k) * 0x0102040810204080u >> 56);
}

/* Writes where the words between white space begin and end, one after the other, and returns how many words there are. */
static int64_t split(const uint8_t *bytes, int64_t width, int64_t length, int64_t *edges)
{
    int64_t count = 0;
    uint64_t before = 1;
    for (int64_t block = 0; block <= length; block += BLOCK) {
        uint8_t bits[BLOCK / 8];
        mark_spaces(bytes + width * block, width, length - block < BLOCK ? length - block : BLOCK, bits);
        for (int64_t k = 0; k < BLOCK; k += 64) {
            uint64_t mask = eight(bits + k / 8);
            for (uint64_t rest = mask ^ (mask << 1 | before); rest; rest &= rest - 1)
                edges[count++] = block + k + __builtin_ctzll(rest);
            before = mask >> 63;
        }
    }
    return count / 2;
}

/* Keys of words of 8 bytes and more: LONG with the number of the first word that is the same. Their places in `keys` are in
 * `words`; the table, zeroed, has `mask` + 1 entries, of half a hash and the number plus 1. */
static const uint64_t LONG = (uint64_t)0xFF << 56;
static void number_long_words(const uint8_t *bytes, int64_t width, const int64_t *edges, const int64_t *words,
                              int64_t count, uint64_t *table, uint64_t mask, uint64_t *keys)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t *own = edges + 2 * words[i];
        const uint8_t *word = bytes + width * own[0];
        int64_t size = width * (own[1] - own[0]);
        uint64_t hash = eight(word + size - 8), found;
        for (int64_t k = 0; k + 8 < size; k += 8)
            hash = mixed(hash ^ eight(word + k));
        hash = mixed(hash);
        uint64_t slot = hash & mask, half = hash >> 32 << 32;
        for (; (found = table[slot]); slot = (slot + 1) & mask) {
            const int64_t *other = edges + 2 * words[(found & UINT32_MAX) - 1];
            if (found >> 32 == half >> 32 && width * (other[1] - other[0]) == size &&
                !memcmp(bytes + width * other[0], word, (size_t)size))
                break;
        }
        if (!found)
            table[slot] = half | (uint64_t)(i + 1);
        keys[words[i]] = LONG | (table[slot] & UINT32_MAX);
    }
}

/* Writes the key of each word, another one for another word; 0 if there is no memory. */
static int find_keys(const uint8_t *bytes, int64_t width, const int64_t *edges, int64_t count, uint64_t *keys)
{
    int64_t *words = malloc(sizeof *words * (size_t)(count + 1)), longs = 0;
    uint64_t size = 2, *table;
    for (int64_t k = 0; words && k < count; k++) {
        uint64_t bits = 8 * (uint64_t)(width * (edges[2 * k + 1] - edges[2 * k]));
        keys[k] = (eight(bytes + width * edges[2 * k]) & ~(~(uint64_t)0 << (bits & 63))) | bits << 53;
        words[longs] = k;
        longs += bits >= 64;
    }
    while (size < 2 * (uint64_t)longs)
        size *= 2;
    table = calloc(size, sizeof *table);
    if (words && table)
        number_long_words(bytes, width, edges, words, longs, table, size - 1, keys);
    free(words);
    free(table);
    return words && table;
}

/* How many bytes two texts have in common at the start, or before both ends, of so many. */
static int64_t common_start(const uint8_t *a, const uint8_t *b, int64_t size)
{
    int64_t k = 0;
    for (; k + 8 <= size; k += 8) {
        uint64_t difference = eight(a + k) ^ eight(b + k);
        if (difference)
            return k + __builtin_ctzll(difference) / 8;
    }
    while (k < size && a[k] == b[k])
        k++;
    return k;
}

static int64_t common_end(const uint8_t *a, const uint8_t *b, int64_t size)
{
    int64_t k = 0;
    for (; k + 8 <= size; k += 8) {
        uint64_t difference = eight(a - k - 8) ^ eight(b - k - 8);
        if (difference)
            return k + __builtin_clzll(difference) / 8;
    }
    while (k < size && a[-k - 1] == b[-k - 1])
        k++;
    return k;
}

/* Takes away what two texts have in common at their ends. */
static void trim(Elements *a, Elements *b)
{
    int64_t width = a->width, least = a->count < b->count ? a->count : b->count;
    int64_t start = common_start(a->start, b->start, width * least) / width;
    int64_t end = common_end(a->start + width * a->count, b->start + width * b->count, width * (least - start)) / width;
    a->start += width * start;
    b->start += width * start;
    a->count -= start + end;
    b->count -= start + end;
}

static uint64_t element_key(Elements elements, int64_t k) /* not 0 */
{
    uint64_t key;
    if (elements.width == 4)
        return (uint64_t)code_point(elements.start + 4 * k) + 1;
    memcpy(&key, elements.start + 8 * k, 8);
    return key;
}

static uint64_t slot_of(uint64_t key, const uint64_t *table, uint64_t mask)
{
    uint64_t slot = mixed(key) & mask;
    while (table[slot] && table[slot] != key)
        slot = (slot + 1) & mask;
    return slot;
}

/* Writes numbers of elements: equal ones for equal elements, below SLOTS or four times the length of the pattern. An
 * element of the text alone has a number that none of the pattern has. The table has room for that many. */
static void number_elements(Elements pattern, Elements text, uint32_t *out, uint64_t *table)
{
    uint64_t size = 4;
    if (text.width == 1) {
        for (int64_t k = 0; k < pattern.count; k++)
            out[k] = pattern.start[k];
        for (int64_t k = 0; k < text.count; k++)
            out[pattern.count + k] = text.start[k];
        return;
    }
    while (size < 2 * (uint64_t)pattern.count)
        size *= 2;
    memset(table, 0, sizeof *table * size);
    for (int64_t k = 0; k < pattern.count; k++) {
        uint64_t key = element_key(pattern, k), slot = slot_of(key, table, size - 1);
        table[slot] = key;
        out[k] = (uint32_t)slot;
    }
    for (int64_t k = 0; k < text.count; k++)
        out[pattern.count + k] = (uint32_t)slot_of(element_key(text, k), table, size - 1);
}

/* Writes which elements of a strip are those of each column, in one lane. The columns of a text are the last ones. The masks
 * are 0 before and after. */
static void set_equal(Pair pair, int64_t start, int64_t columns, Bits *masks, Bits *equal)
{
    int64_t height = pair.m - start < STRIP ? pair.m - start : STRIP, before = columns - pair.n;
    for (int64_t k = 0; k < height; k++)
        masks[pair.pattern[start + k]] |= (Bits)1 << k;
    for (int64_t j = 0; j < before; j++)
        equal[LANES * j] = 0;
    equal += LANES * before;
    for (int64_t j = 0; j < pair.n; j++)
        equal[LANES * j] = masks[pair.text[j]];
    for (int64_t k = 0; k < height; k++)
        masks[pair.pattern[start + k]] = 0;
}

/* Which vertical differences of a strip rise and fall behind the last column. deltas: the horizontal differences above it,
 * and afterwards below; above the first strip they rise in the columns of a text. Columns without differences and equal
 * elements change nothing. */
VECTORISED static void compare_strip(const Lanes *equals, int64_t columns, Lanes *deltas, Lanes *ends)
{
    Lanes up = ~(Lanes){0}, down = {0};
    for (int64_t j = 0; j < columns; j++) {
        Lanes equal = equals[j], rises = deltas[2 * j], falls = deltas[2 * j + 1];
        Lanes vertical = equal | down;
        equal |= falls;
        Lanes horizontal = (((equal & up) + up) ^ up) | equal;
        Lanes higher = down | ~(horizontal | up), lower = up & horizontal;
        deltas[2 * j] = higher >> (STRIP - 1);
        deltas[2 * j + 1] = lower >> (STRIP - 1);
        higher = higher << 1 | rises;
        lower = lower << 1 | falls;
        up = lower | ~(vertical | higher);
        down = higher & vertical;
    }
    ends[0] = up;
    ends[1] = down;
}

/* The distances of up to LANES pairs. equal and deltas: room for the longest text, and for two of it. */
static void compare(const Pair *pairs, int count, Bits *masks, Lanes *equal, Lanes *deltas)
{
    int64_t m = 0, n = 0;
    Lanes ends[2], lengths = {0};
    for (int k = 0; k < count; k++) {
        m = pairs[k].m > m ? pairs[k].m : m;
        n = pairs[k].n > n ? pairs[k].n : n;
        lengths[k] = (Bits)pairs[k].n;
        *pairs[k].result = pairs[k].n;
    }
    for (int64_t j = 0; j < n; j++) {
        deltas[2 * j] = (Lanes)((Bits)(n - j) <= lengths) & 1;
        deltas[2 * j + 1] = (Lanes){0};
    }
    for (int64_t start = 0; start < m; start += STRIP) {
        for (int k = 0; k < count; k++)
            if (start < pairs[k].m)
                set_equal(pairs[k], start, n, masks, (Bits *)equal + k);
        compare_strip(equal, n, deltas, ends);
        for (int k = 0; k < count; k++) {
            int64_t height = pairs[k].m - start;
            Bits inside = height >= STRIP ? ~(Bits)0 : height > 0 ? ((Bits)1 << height) - 1 : 0;
            *pairs[k].result += __builtin_popcountll(ends[0][k] & inside) - __builtin_popcountll(ends[1][k] & inside);
        }
    }
}

/* The same number for about the same length. */
static int length_class(int64_t n)
{
    int bits = n < 16 ? 0 : 60 - __builtin_clzll((uint64_t)n);
    return 8 * bits + (int)(n >> bits);
}

/* Pairs of about the same length next to each other. */
static void sort_pairs(const Pair *pairs, int64_t count, Pair *sorted)
{
    int64_t starts[CLASSES + 1] = {0};
    for (int64_t k = 0; k < count; k++)
        starts[length_class(pairs[k].n) + 1]++;
    for (int k = 0; k < CLASSES; k++)
        starts[k + 1] += starts[k];
    for (int64_t k = 0; k < count; k++)
        sorted[starts[length_class(pairs[k].n)]++] = pairs[k];
}

/* Without the white space at both ends. */
static Elements stripped(Elements text)
{
    while (text.count && is_space_at(text.start, text.width))
        text.start += text.width, text.count--;
    while (text.count && is_space_at(text.start + text.width * (text.count - 1), text.width))
        text.count--;
    return text;
}

/* The elements of each text: characters, or keys of words. 0 if there is no memory for the keys. */
static int find_elements(const uint8_t *bytes, int64_t width, const int64_t *lengths, int64_t texts, int64_t *edges,
                         uint64_t *keys, Elements *out)
{
    int64_t start = 0, words = 0, length = -1;
    for (int64_t k = 0; k < texts; k++)
        length += lengths[k] + 1;
    int64_t count = keys ? split(bytes, width, length, edges) : 0;
    if (keys && !find_keys(bytes, width, edges, count, keys))
        return 0;
    for (int64_t k = 0; k < texts; start += lengths[k++] + 1) {
        int64_t first = words;
        while (words < count && edges[2 * words] < start + lengths[k])
            words++;
        out[k] = keys ? (Elements){(const uint8_t *)(keys + first), 8, words - first}
                      : stripped((Elements){bytes + width * start, width, lengths[k]});
    }
    return 1;
}

/* Counts elements and finds the pairs whose distance is still to be counted. Returns how many there are. */
static int64_t find_pairs(int64_t *counts, const Elements *elements, int64_t rows, uint32_t *numbers, uint64_t *table,
                          Pair *pairs)
{
    int64_t found = 0;
    for (int64_t k = 0; k < rows; k++) {
        Elements target = elements[2 * k], pred = elements[2 * k + 1];
        int64_t *result = counts + 3 * k;
        result[1] = target.count;
        result[2] = pred.count;
        trim(&target, &pred);
        *result = target.count + pred.count;
        if (!target.count || !pred.count)
            continue;
        Elements pattern = target.count < pred.count ? target : pred, text = target.count < pred.count ? pred : target;
        number_elements(pattern, text, numbers, table);
        pairs[found++] = (Pair){numbers, numbers + pattern.count, pattern.count, text.count, result};
        numbers += pattern.count + text.count;
    }
    return found;
}

/* `assay_edit_counts` of rows whose texts and words fit the cache together; 0 if there is no memory. */
VECTORISED static int count_rows(int64_t *counts, const uint8_t *bytes, int64_t width, const int64_t *lengths, int64_t rows,
                      int64_t by_words)
{
    size_t length = 0, longest = 0;
    for (int64_t k = 0; k < rows; k++) {
        size_t both = (size_t)(lengths[2 * k] + lengths[2 * k + 1]);
        length += both + 2;
        longest = both > longest ? both : longest;
    }
    size_t slots = 2 * longest > SLOTS ? 2 * longest : SLOTS;
    int64_t *edges = malloc(sizeof *edges * (by_words ? length + 2 : 1));
    uint64_t *keys = malloc(sizeof *keys * (by_words ? length / 2 + 1 : 1));
    uint64_t *table = malloc(sizeof *table * slots);
    uint32_t *numbers = malloc(sizeof *numbers * length);
    Bits *masks = calloc(slots, sizeof *masks);
    Lanes *columns = aligned_alloc(sizeof *columns, sizeof *columns * 3 * (longest + 1));
    Elements elements[2 * ROWS];
    Pair pairs[ROWS], sorted[ROWS];
    int enough = edges && keys && table && numbers && masks && columns &&
                 find_elements(bytes, width, lengths, 2 * rows, edges, by_words ? keys : NULL, elements);
    if (enough) {
        int64_t found = find_pairs(counts, elements, rows, numbers, table, pairs);
        sort_pairs(pairs, found, sorted);
        for (int64_t k = 0; k < found; k += LANES)
            compare(sorted + k, found - k < LANES ? (int)(found - k) : LANES, masks, columns, columns + longest + 1);
    }
    free(edges), free(keys), free(table), free(numbers), free(masks), free(columns);
    return enough;
}

/* counts: (rows, 3), the errors, and the elements of targets and of predictions. The texts, of each row the target and the
 * prediction, have `lengths` characters of `width` bytes, a line feed between two texts, and 8 at the end. Without memory,
 * `done` is smaller than `rows`. */
void assay_edit_counts(int64_t *counts, const uint8_t *bytes, int64_t width, const int64_t *lengths, int64_t rows,
                       int64_t by_words, int64_t *done)
{
    for (int64_t k = 0; k < rows; k += ROWS) {
        int64_t count = rows - k < ROWS ? rows - k : ROWS;
        if (!count_rows(counts + 3 * k, bytes, width, lengths + 2 * k, count, by_words))
            return;
        for (int64_t i = 2 * k; i < 2 * (k + count); i++)
            bytes += width * (lengths[i] + 1);
        *done = k + count;
    }
}

/* The recurrence of the extended edit distance (Stanchev, Wang, Ney, WMT 2019), with the operations of
 * `encode.extended_edits`. visits: (m + 1), all -1 before; row and next: room for m + 1. Returns the cost of the path. */
double assay_extended_edits(const uint32_t *pred, int64_t m, const uint32_t *target, int64_t n, double alpha,
                            double deletion, double insertion, int64_t *visits, double *row, double *next)
{
    for (int64_t i = 0; i <= m; i++)
        row[i] = i > 0;
    for (int64_t j = 0; j < n; j++) {
        double cost = row[0] + 1.0, least = cost;
        int64_t cheapest = 0;
        next[0] = cost;
        for (int64_t i = 0; i < m; i++) {
            double other = row[i] + (pred[i] != target[j]), above = row[i + 1] + insertion;
            other = above < other ? above : other;
            cost += deletion;
            cost = other < cost ? other : cost;
            next[i + 1] = cost;
            if (cost < least) {
                least = cost;
                cheapest = i + 1;
            }
        }
        visits[cheapest]++;
        double jump = alpha + least;
        for (int64_t i = 0; target[j] == ' ' && i <= m; i++)
            next[i] = jump < next[i] ? jump : next[i];
        double *done = row;
        row = next;
        next = done;
    }
    return row[m];
}
