/* Levenshtein distances of pairs of texts by Myers' bit-parallel algorithm (Journal of the ACM 46, 1999), with the blocks
 * of Hyyrö (Nordic Journal of Computing 10, 2003). Elements of
 * texts are words or characters. */
#include <stdint.h>
#include <string.h>

#include "clones.h"

typedef uint32_t Element;

/* A strip of the pattern, one bit an element, is compared with the whole text at once; in lanes, those of several pairs. */
enum { STRIP = 64, LANES = 8, BLOCK = 64 };
typedef uint64_t Bits;
typedef Bits Lanes __attribute__((vector_size(LANES * sizeof(Bits))));

/* Two texts that differ at both ends, the shorter one, of m >= 1 elements, as the pattern; and where their distance goes. */
typedef struct {
    const Element *pattern, *text;
    int64_t m, n, *result;
} Pair;

/* What str.isspace says is white space. */
static inline int is_ascii_space(uint32_t c)
{
    return (c == ' ') | (c - 0x09 < 5) | (c - 0x1C < 4);
}

static inline int is_space(uint32_t c)
{
    if (c < 0x80)
        return is_ascii_space(c);
    if (c < 0x1680)
        return c == 0x85 || c == 0xA0;
    return c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

static void set_masks(Pair pair, int64_t start, int64_t height, Bits *masks, int set)
{
    for (int64_t k = 0; k < height; k++) {
        Bits *mask = masks + LANES * pair.pattern[start + k];
        *mask = set ? *mask | (Bits)1 << k : 0;
    }
}

/* The distance of one pair, where masks[LANES * element] is zero before and after. deltas: room for n. Element k of a strip
 * is bit k; deltas are the horizontal differences below the strip. */
static void distance(Pair pair, Bits *masks, int8_t *deltas)
{
    memset(deltas, 1, (size_t)pair.n);
    for (int64_t start = 0; start < pair.m; start += STRIP) {
        int64_t height = pair.m - start < STRIP ? pair.m - start : STRIP, sum = 0;
        Bits up = ~(Bits)0, down = 0;
        int last = (int)height - 1;
        set_masks(pair, start, height, masks, 1);
        for (int64_t j = 0; j < pair.n; j++) {
            Bits equal = masks[LANES * pair.text[j]], rises = deltas[j] > 0, falls = deltas[j] < 0;
            Bits vertical = equal | down;
            equal |= falls;
            Bits horizontal = (((equal & up) + up) ^ up) | equal;
            Bits higher = down | ~(horizontal | up), lower = up & horizontal;
            int delta = (int)((higher >> last) & 1) - (int)((lower >> last) & 1);
            deltas[j] = (int8_t)delta;
            sum += delta;
            higher = higher << 1 | rises;
            lower = lower << 1 | falls;
            up = lower | ~(vertical | higher);
            down = higher & vertical;
        }
        set_masks(pair, start, height, masks, 0);
        *pair.result = pair.m + sum;
    }
}

/* The same of LANES pairs; deltas: room for two of the longest text. What a lane computes beyond its pair is not read: its
 * text and what lies behind are elements. */
VECTORISED static void distances(const Pair *pairs, Lanes *masks, Lanes *deltas)
{
    int64_t m = 0, n = 0;
    Lanes lengths;
    for (int k = 0; k < LANES; k++) {
        m = pairs[k].m > m ? pairs[k].m : m;
        n = pairs[k].n > n ? pairs[k].n : n;
        lengths[k] = (Bits)pairs[k].n;
    }
    for (int64_t j = 0; j < n; j++) {
        deltas[2 * j] = (Lanes){0} + 1;
        deltas[2 * j + 1] = (Lanes){0};
    }
    for (int64_t start = 0; start < m; start += STRIP) {
        Lanes up = ~(Lanes){0}, down = {0}, sums = {0}, last;
        int64_t heights[LANES];
        for (int k = 0; k < LANES; k++) {
            int64_t height = pairs[k].m - start;
            height = heights[k] = height < 0 ? 0 : height < STRIP ? height : STRIP;
            last[k] = height ? (Bits)height - 1 : 0;
            set_masks(pairs[k], start, height, (Bits *)masks + k, 1);
        }
        for (int64_t j = 0; j < n; j++) {
            Lanes equal, rises = deltas[2 * j], falls = deltas[2 * j + 1];
            for (int k = 0; k < LANES; k++)
                equal[k] = masks[pairs[k].text[j]][k];
            Lanes vertical = equal | down;
            equal |= falls;
            Lanes horizontal = (((equal & up) + up) ^ up) | equal;
            Lanes higher = down | ~(horizontal | up), lower = up & horizontal;
            Lanes risen = (higher >> last) & 1, fallen = (lower >> last) & 1;
            deltas[2 * j] = risen;
            deltas[2 * j + 1] = fallen;
            sums += (risen - fallen) & (Lanes)((Bits)j < lengths);
            higher = higher << 1 | rises;
            lower = lower << 1 | falls;
            up = lower | ~(vertical | higher);
            down = higher & vertical;
        }
        for (int k = 0; k < LANES; k++) {
            set_masks(pairs[k], start, heights[k], (Bits *)masks + k, 0);
            if (heights[k])
                *pairs[k].result = pairs[k].m + (int64_t)sums[k];
        }
    }
}

/* Of a few pairs, one by one; of so many that lanes are faster, in lanes, of which the others repeat the first pair. */
static void all_distances(Pair *pairs, int count, Lanes *masks, Lanes *deltas)
{
    for (int k = 0; count < LANES / 2 && k < count; k++)
        distance(pairs[k], (Bits *)masks, (int8_t *)deltas);
    for (int k = count; k < LANES && count >= LANES / 2; k++)
        pairs[k] = pairs[0];
    if (count >= LANES / 2)
        distances(pairs, masks, deltas);
}

/* What remains of two texts without what they have in common at their ends; whether both have elements then. */
static int trimmed(const Element *a, int64_t m, const Element *b, int64_t n, int64_t *result, Pair *pair)
{
    while (m && n && *a == *b)
        a++, b++, m--, n--;
    while (m && n && a[m - 1] == b[n - 1])
        m--, n--;
    *result = m + n;
    *pair = m <= n ? (Pair){a, b, m, n, result} : (Pair){b, a, n, m, result};
    return m && n;
}

/* Characters of one byte each (ASCII) or of four (UTF-32). */
typedef struct {
    const uint8_t *bytes;
    int64_t width, length;
} Text;

static uint32_t character(Text text, int64_t k)
{
    uint32_t c;
    if (text.width == 1)
        return text.bytes[k];
    memcpy(&c, text.bytes + 4 * k, 4);
    return c;
}

/* Eight bytes as a number, of which the first byte is the lowest. */
static uint64_t eight(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    number = __builtin_bswap64(number);
#endif
    return number;
}

/* Writes which characters are white space, and that those behind the end are. */
VECTORISED static void mark_spaces(Text text, uint8_t *spaces)
{
    if (text.width == 1)
        for (int64_t k = 0; k < text.length; k++)
            spaces[k] = (uint8_t)is_ascii_space(text.bytes[k]);
    else
        for (int64_t k = 0; k < text.length; k++)
            spaces[k] = (uint8_t)is_space(character(text, k));
    memset(spaces + text.length, 1, BLOCK);
}

/* Writes where the words between white space begin and end, one after the other, and returns how many words there are. */
static int64_t split(Text text, uint8_t *spaces, int64_t *edges)
{
    int64_t count = 0;
    uint64_t before = 1;
    mark_spaces(text, spaces);
    for (int64_t block = 0; block <= text.length; block += BLOCK) {
        uint64_t mask = 0; /* a bit a character: the product moves the lowest bits of eight bytes to the top */
        for (int k = 0; k < BLOCK; k += 8)
            mask |= (eight(spaces + block + k) * 0x0102040810204080u >> 56) << k;
        for (uint64_t rest = mask ^ (mask << 1 | before); rest; rest &= rest - 1)
            edges[count++] = block + __builtin_ctzll(rest);
        before = mask >> (BLOCK - 1);
    }
    return count / 2;
}

/* A word, and a number that is another one for another word of the same size, up to 8 bytes. */
typedef struct {
    const uint8_t *bytes;
    int64_t size;
    uint64_t key;
} Word;

static Word word_at(Text text, const int64_t *edges)
{
    Word word = {text.bytes + edges[0] * text.width, (edges[1] - edges[0]) * text.width, 0};
    int64_t k = 0;
    for (; k + 8 < word.size; k += 8) {
        word.key = (word.key ^ eight(word.bytes + k)) * 0x9E3779B97F4A7C15u;
        word.key ^= word.key >> 32;
    }
    word.key ^= eight(word.bytes + k) & ~(uint64_t)0 >> (8 * (8 - (word.size - k)));
    return word;
}

/* Writes the number of each word of a text behind `first` others: that of the first word that is the same. The table, of
 * `mask` + 1 entries, has the numbers plus 1. */
static void number_words(Text text, const int64_t *edges, int64_t first, int64_t count, Word *words, Element *table,
                         uint64_t mask, Element *out)
{
    for (int64_t k = first; k < first + count; k++, edges += 2) {
        Word word = words[k] = word_at(text, edges);
        uint64_t slot = (word.key * 0x9E3779B97F4A7C15u >> 32) & mask;
        for (; table[slot]; slot = (slot + 1) & mask) {
            const Word *other = words + table[slot] - 1;
            if (other->key == word.key && other->size == word.size &&
                (word.size <= 8 || !memcmp(other->bytes, word.bytes, (size_t)word.size)))
                break;
        }
        if (!table[slot])
            table[slot] = (Element)(k + 1);
        out[k] = table[slot] - 1;
    }
}

/* Writes the characters from the first to the last that is no white space, and returns how many there are. */
static int64_t stripped(Text text, Element *out)
{
    int64_t start = 0, stop = text.length;
    while (start < stop && is_space(character(text, start)))
        start++;
    while (start < stop && is_space(character(text, stop - 1)))
        stop--;
    if (text.width == 1)
        for (int64_t k = start; k < stop; k++)
            *out++ = text.bytes[k];
    else
        memcpy(out, text.bytes + 4 * start, (size_t)(4 * (stop - start)));
    return stop - start;
}

/* counts: (rows, 3), the errors, and the elements of targets and of predictions. Texts lie one after the other, in
 * characters of `width` bytes, with 8 bytes more at the end; text k of targets ends at character target_ends[k]. `order`
 * has all rows, those of similar length next to each other. With L the number of characters of the longest pair, both
 * together: elements, zeroed, have room for (LANES + 1) L, words for L, deltas for 2 L, edges for L + 2, spaces for
 * L + 64, table for the lowest power of two above 2 L, and masks, zeroed, for L or, for characters, for the highest code
 * point, plus 1. */
void assay_edit_counts(int64_t *counts, const uint8_t *targets, const int64_t *target_ends, const uint8_t *preds,
                       const int64_t *pred_ends, int64_t width, const int64_t *order, int64_t rows, int64_t by_words,
                       int64_t longest, Element *elements, Word *words, int64_t *edges, uint8_t *spaces, Element *table,
                       Lanes *masks, Lanes *deltas)
{
    Pair pairs[LANES];
    int filled = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t k = order[i], m, n, target_start = k ? target_ends[k - 1] : 0, pred_start = k ? pred_ends[k - 1] : 0;
        Text target = {targets + width * target_start, width, target_ends[k] - target_start};
        Text pred = {preds + width * pred_start, width, pred_ends[k] - pred_start};
        Element *own = elements + filled * longest;
        if (by_words) {
            m = split(target, spaces, edges);
            n = split(pred, spaces, edges + 2 * m);
            uint64_t size = 2;
            while (size <= (uint64_t)(2 * (m + n)))
                size *= 2;
            memset(table, 0, sizeof(Element) * size);
            number_words(target, edges, 0, m, words, table, size - 1, own);
            number_words(pred, edges + 2 * m, m, n, words, table, size - 1, own);
        } else {
            m = stripped(target, own);
            n = stripped(pred, own + m);
        }
        counts[3 * k + 1] = m;
        counts[3 * k + 2] = n;
        filled += trimmed(own, m, own + m, n, counts + 3 * k, pairs + filled);
        if (filled == LANES || i + 1 == rows) {
            all_distances(pairs, filled, masks, deltas);
            filled = 0;
        }
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
