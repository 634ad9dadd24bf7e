/* Levenshtein distances of pairs of texts by Myers' bit-parallel algorithm (Journal of the ACM 46, 1999), with the blocks
 * of Hyyrö (Nordic Journal of Computing 10, 2003). Texts are UTF-32; their elements are words or characters. */
#include <stdint.h>
#include <string.h>

typedef uint32_t Element;

/* A strip of the pattern, one bit an element, is compared with the whole text at once. */
typedef uint64_t Bits;
enum { STRIP = 8 * sizeof(Bits) };

/* What str.isspace says is white space. */
static int is_space(uint32_t c)
{
    if (c <= 0x20)
        return c >= 0x1C || (c >= 0x09 && c <= 0x0D);
    if (c < 0x1680)
        return c == 0x85 || c == 0xA0;
    return c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

/* Distance between a pattern of m >= 1 elements and a text of n, where masks[element] is zero before and after.
 * deltas: room for n. Element k of a strip is bit k; deltas are the horizontal differences below the strip. */
static int64_t distance(const Element *pattern, int64_t m, const Element *text, int64_t n, Bits *masks, int8_t *deltas)
{
    int64_t result = m;
    memset(deltas, 1, (size_t)n);
    for (int64_t start = 0; start < m; start += STRIP) {
        int64_t height = m - start < STRIP ? m - start : STRIP;
        for (int64_t k = 0; k < height; k++)
            masks[pattern[start + k]] |= (Bits)1 << k;
        Bits up = ~(Bits)0, down = 0;
        int last = (int)height - 1;
        int64_t sum = 0;
        for (int64_t j = 0; j < n; j++) {
            Bits equal = masks[text[j]], rises = deltas[j] > 0, falls = deltas[j] < 0;
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
        for (int64_t k = 0; k < height; k++)
            masks[pattern[start + k]] = 0;
        result = m + sum;
    }
    return result;
}

/* The same, without what both have in common at their ends, and with the shorter one as the pattern. */
static int64_t trimmed_distance(const Element *a, int64_t m, const Element *b, int64_t n, Bits *masks, int8_t *deltas)
{
    while (m && n && *a == *b)
        a++, b++, m--, n--;
    while (m && n && a[m - 1] == b[n - 1])
        m--, n--;
    if (!m || !n)
        return m + n;
    return m <= n ? distance(a, m, b, n, masks, deltas) : distance(b, n, a, m, masks, deltas);
}

/* Words that were numbered: where each begins, how long it is, its hash, and a table from hashes to numbers plus 1. */
typedef struct {
    const uint32_t *begin;
    int64_t length;
    uint64_t hash;
} Word;

typedef struct {
    Word *words;
    Element *table;
    uint64_t mask, known;
} Numbers;

static Element number_of(Numbers *numbers, Word word)
{
    uint64_t slot = (word.hash ^ word.hash >> 29) & numbers->mask;
    for (; numbers->table[slot]; slot = (slot + 1) & numbers->mask) {
        const Word *other = numbers->words + numbers->table[slot] - 1;
        if (other->hash == word.hash && other->length == word.length &&
            !memcmp(other->begin, word.begin, sizeof(uint32_t) * (size_t)word.length))
            return numbers->table[slot] - 1;
    }
    numbers->words[numbers->known] = word;
    numbers->table[slot] = (Element)++numbers->known;
    return (Element)(numbers->known - 1);
}

/* Writes the numbers of the words between white space, and returns how many there are. */
static int64_t split(const uint32_t *text, const uint32_t *end, Numbers *numbers, Element *out)
{
    int64_t count = 0;
    for (;;) {
        while (text < end && is_space(*text))
            text++;
        if (text == end)
            return count;
        Word word = {text, 0, 0};
        for (; text < end && !is_space(*text); text++)
            word.hash = (word.hash ^ *text) * 0x9E3779B97F4A7C15u;
        word.length = text - word.begin;
        out[count++] = number_of(numbers, word);
    }
}

/* Moves to the first character that is no white space, and returns how many there are up to the last one. */
static int64_t stripped(const uint32_t **text, const uint32_t *end)
{
    while (*text < end && is_space(**text))
        ++*text;
    while (*text < end && is_space(end[-1]))
        end--;
    return end - *text;
}

/* counts: (rows, 3), the errors, and the elements of targets and of predictions. Texts lie one after the other, and text k
 * of targets ends at target_ends[k]. With L the number of characters of the longest pair, both together: elements has room
 * for L, words for L, table for the lowest power of two above 2 L, deltas for L, and masks, zeroed, for L or, for
 * characters, for the highest code point plus 1. */
void assay_edit_counts(int64_t *counts, const uint32_t *targets, const int64_t *target_ends, const uint32_t *preds,
                       const int64_t *pred_ends, int64_t rows, int64_t by_words, Element *elements, Word *words,
                       Element *table, Bits *masks, int8_t *deltas)
{
    const uint32_t *target = targets, *pred = preds;
    for (int64_t k = 0; k < rows; k++, counts += 3) {
        const uint32_t *target_end = targets + target_ends[k], *pred_end = preds + pred_ends[k];
        const Element *a = target, *b = pred;
        int64_t m, n;
        if (by_words) {
            uint64_t most = (uint64_t)(target_end - target + pred_end - pred), size = 2;
            while (size <= most)
                size *= 2;
            memset(table, 0, sizeof(Element) * size);
            Numbers numbers = {words, table, size - 1, 0};
            m = split(target, target_end, &numbers, elements);
            n = split(pred, pred_end, &numbers, elements + m);
            a = elements;
            b = elements + m;
        } else {
            m = stripped(&a, target_end);
            n = stripped(&b, pred_end);
        }
        counts[0] = trimmed_distance(a, m, b, n, masks, deltas);
        counts[1] = m;
        counts[2] = n;
        target = target_end;
        pred = pred_end;
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
