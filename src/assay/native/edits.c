/* Levenshtein distances of pairs of texts by Myers' bit-parallel algorithm (Journal of the ACM 46, 1999), with the blocks
 * of Hyyrö (Nordic Journal of Computing 10, 2003). Elements of texts are words or characters. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_MASKS 1
#include <immintrin.h>
#define MASKED __attribute__((target("avx512f,avx512bw")))
#else
#define HAS_MASKS 0
#endif

/* A strip of the pattern, one bit an element, is compared with the whole text at once; in lanes, those of several pairs.
 * Two strips at once keep the processor busy: the second waits for the first, but not the first for the second. */
enum { STRIP = 64, STRIPS = 2, LANES = 8, SLOTS = 256, CLASSES = 512, ROWS = 128, BLOCK = 4096, LONGEST_KEY = 7 };
typedef uint64_t Bits;
typedef Bits Lanes __attribute__((vector_size(LANES * sizeof(Bits))));

/* Elements one after the other, each of 1, 4 or 8 bytes: characters of Latin-1 or UTF-32, numbers, or keys of words. */
typedef struct {
    const uint8_t *start;
    int64_t width, count;
} Elements;

/* Two texts that differ at both ends, the shorter one as the pattern; and where their distance goes. Their elements are
 * characters of Latin-1, keys of words, or numbers of elements below SLOTS or four times the length of the pattern.
 * 1 <= pattern.count <= text.count. */
typedef struct {
    Elements pattern, text;
    int64_t *result;
} Pair;

/* Eight bytes as a number, of which the first byte is the lowest. */
INLINE uint64_t eight(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    number = __builtin_bswap64(number);
#endif
    return number;
}

INLINE uint32_t number_at(const uint8_t *bytes)
{
    uint32_t c;
    memcpy(&c, bytes, 4);
    return c;
}

INLINE uint64_t key_at(const uint8_t *bytes)
{
    uint64_t key;
    memcpy(&key, bytes, 8);
    return key;
}

INLINE uint64_t mixed(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
}

/* What str.isspace says is white space. */
INLINE int is_space(uint32_t c)
{
    return (c == ' ') | (c - 0x09 < 5) | (c - 0x1C < 4) | (c == 0x85) | (c == 0xA0) | (c == 0x1680) |
           (c - 0x2000 < 11) | (c - 0x2028 < 2) | (c == 0x202F) | (c == 0x205F) | (c == 0x3000);
}

INLINE int is_space_at(const uint8_t *bytes, int64_t width)
{
    return is_space(width == 1 ? *bytes : number_at(bytes));
}

/* A bit for each of 64 bytes that are 0 or 1: products move the lowest bits of eight bytes to the top. */
INLINE uint64_t packed(const uint8_t *marks)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    Lanes eights;
    memcpy(&eights, marks, sizeof eights);
    typedef uint8_t Few __attribute__((vector_size(LANES)));
    return (uint64_t)__builtin_convertvector(eights * 0x0102040810204080u >> 56, Few);
#else
    uint64_t bits = 0;
    for (int k = 0; k < 8; k++)
        bits |= (eight(marks + 8 * k) * 0x0102040810204080u >> 56) << 8 * k;
    return bits;
#endif
}

/* Writes a bit for each of up to BLOCK characters, whether it is white space; the bits behind the last are set. */
INLINE void mark_spaces(const uint8_t *bytes, int64_t width, int64_t count, uint64_t *bits)
{
    uint8_t marks[BLOCK];
    if (width == 1)
        for (int64_t k = 0; k < count; k++) {
            uint8_t c = bytes[k];
            marks[k] = (c == ' ') | ((uint8_t)(c - 0x09) < 5) | ((uint8_t)(c - 0x1C) < 4) | (c == 0x85) | (c == 0xA0);
        }
    else
        for (int64_t k = 0; k < count; k++)
            marks[k] = (uint8_t)is_space(number_at(bytes + 4 * k));
    memset(marks + count, 1, (size_t)(BLOCK - count));
    for (int k = 0; k < BLOCK / 64; k++)
        bits[k] = packed(marks + 64 * k);
}

/* Writes two bits for each character of some texts: whether it is white space, and whether a word begins there or has just
 * ended. There is room for whole blocks, and for a character behind the last. */
INLINE void find_edges(const uint8_t *bytes, int64_t width, int64_t length, uint64_t *spaces, uint64_t *edges)
{
    uint64_t before = 1;
    for (int64_t start = 0; start <= length; start += BLOCK) {
        mark_spaces(bytes + width * start, width, length - start < BLOCK ? length - start : BLOCK, spaces);
        for (int64_t k = 0; k < BLOCK / 64; k++) {
            uint64_t mask = *spaces++;
            *edges++ = mask ^ (mask << 1 | before);
            before = mask >> 63;
        }
    }
}

/* The bits of word `k` that stand for `first` to `last`, of which it has some. */
INLINE uint64_t bits_between(const uint64_t *bits, int64_t k, int64_t first, int64_t last)
{
    uint64_t rest = bits[k];
    rest = k == first / 64 ? rest & ~(uint64_t)0 << first % 64 : rest;
    return k == last / 64 ? rest & ~(uint64_t)0 >> (63 - last % 64) : rest;
}

/* How many words lie between two places; white space, or nothing, is before the first one and at the last. */
INLINE int64_t count_words(const uint64_t *edges, int64_t first, int64_t last)
{
    int64_t count = 0;
    for (int64_t k = first / 64; k <= last / 64; k++)
        count += __builtin_popcountll(bits_between(edges, k, first, last));
    return count / 2;
}

/* Writes where they begin and end, one after the other, and returns how many words there are. Up to 3 more numbers are
 * written. */
INLINE int64_t list_words(const uint64_t *edges, int64_t first, int64_t last, int64_t *out)
{
    int64_t count = 0;
    for (int64_t k = first / 64; k <= last / 64; k++) {
        uint64_t rest = bits_between(edges, k, first, last);
        int found = __builtin_popcountll(rest);
        for (int i = 0; i < found; i += 4)
            for (int each = 0; each < 4; each++) {
                out[count + i + each] = 64 * k + __builtin_ctzll(rest | (uint64_t)1 << 63);
                rest &= rest - 1;
            }
        count += found;
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
INLINE int find_keys(const uint8_t *bytes, int64_t width, const int64_t *edges, int64_t count, uint64_t *keys)
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
    table = words && longs ? calloc(size, sizeof *table) : NULL;
    if (table)
        number_long_words(bytes, width, edges, words, longs, table, size - 1, keys);
    int enough = words && (table || !longs);
    free(words);
    free(table);
    return enough;
}

/* How many bytes two texts have in common at the start, or before both ends, of so many. */
INLINE int64_t common_start(const uint8_t *a, const uint8_t *b, int64_t size)
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

INLINE int64_t common_end(const uint8_t *a, const uint8_t *b, int64_t size)
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
INLINE void trim(Elements *a, Elements *b)
{
    int64_t width = a->width, least = a->count < b->count ? a->count : b->count;
    int64_t start = common_start(a->start, b->start, width * least) / width;
    int64_t end = common_end(a->start + width * a->count, b->start + width * b->count, width * (least - start)) / width;
    a->start += width * start;
    b->start += width * start;
    a->count -= start + end;
    b->count -= start + end;
}

/* The same of whole words, of texts of characters: up to white space that both have. */
INLINE void trim_words(Elements *a, Elements *b)
{
    int64_t width = a->width;
    Elements first = *a, second = *b;
    trim(&first, &second);
    int64_t start = (first.start - a->start) / width, end = a->count - start - first.count;
    if (first.count || second.count) {
        while (start && !is_space_at(a->start + width * (start - 1), width))
            start--;
        while (end && !is_space_at(a->start + width * (a->count - end), width))
            end--;
    }
    a->start += width * start;
    b->start += width * start;
    a->count -= start + end;
    b->count -= start + end;
}

static uint64_t element_key(Elements elements, int64_t k) /* not 0 */
{
    return elements.width == 4 ? (uint64_t)number_at(elements.start + 4 * k) + 1 : key_at(elements.start + 8 * k);
}

static uint64_t slot_of(uint64_t key, const uint64_t *table, uint64_t mask)
{
    uint64_t slot = mixed(key) & mask;
    while (table[slot] && table[slot] != key)
        slot = (slot + 1) & mask;
    return slot;
}

/* Writes numbers of elements: equal ones for equal elements, below four times the length of the pattern. An
 * element of the text alone has a number that none of the pattern has. The table has room for that many. */
static void number_elements(Elements pattern, Elements text, uint32_t *out, uint64_t *table)
{
    uint64_t size = 4;
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

INLINE uint32_t small_element(Elements elements, int64_t k)
{
    return elements.width == 1 ? elements.start[k] : number_at(elements.start + 4 * k);
}

/* Writes which elements of a strip are those of each column of the text. The masks are 0 before and after. */
INLINE void look_up(Elements strip, Elements text, Bits *masks, Bits *equal)
{
    for (int64_t k = 0; k < strip.count; k++)
        masks[small_element(strip, k)] |= (Bits)1 << k;
    for (int64_t j = 0; j < text.count; j++)
        equal[LANES * j] = masks[small_element(text, j)];
    for (int64_t k = 0; k < strip.count; k++)
        masks[small_element(strip, k)] = 0;
}

/* The same of keys, each with each: of few that takes less time. */
INLINE void look_at_all(Elements strip, Elements text, Bits *equal)
{
    for (int64_t j = 0; j < text.count; j += LANES) {
        Bits keys[LANES], found[LANES] = {0};
        int64_t columns = text.count - j < LANES ? text.count - j : LANES;
        memcpy(keys, text.start + 8 * j, sizeof keys);
        for (int64_t k = 0; k < strip.count; k++) {
            Bits key = key_at(strip.start + 8 * k);
            for (int each = 0; each < LANES; each++)
                found[each] |= (Bits)(keys[each] == key) << k;
        }
        for (int64_t each = 0; each < columns; each++)
            equal[LANES * (j + each)] = found[each];
    }
}

#if HAS_MASKS
/* The same where eight keys are compared at once; compilers for other processors compare such keys one by one. */
MASKED static void look_at_keys(Elements strip, Elements text, Bits *equal)
{
    for (int64_t j = 0; j < text.count; j += LANES) {
        Lanes keys, found = {0};
        int64_t columns = text.count - j < LANES ? text.count - j : LANES;
        memcpy(&keys, text.start + 8 * j, sizeof keys);
        for (int64_t k = 0; k < strip.count; k++)
            found |= (Lanes)(keys == key_at(strip.start + 8 * k)) & (Bits)1 << k;
        for (int64_t each = 0; each < columns; each++)
            equal[LANES * (j + each)] = found[each];
    }
}

/* The same of two strips of characters of one byte; those of the second follow. */
MASKED static void look_at_characters(const uint8_t *pattern, int64_t count, Elements text, Bits *first, Bits *second)
{
    Bits inside = count >= STRIP ? ~(Bits)0 : ((Bits)1 << count) - 1;
    Bits beyond = count >= 2 * STRIP ? ~(Bits)0 : count > STRIP ? ((Bits)1 << (count - STRIP)) - 1 : 0;
    __m512i low = _mm512_maskz_loadu_epi8(inside, pattern), high = _mm512_maskz_loadu_epi8(beyond, pattern + STRIP);
    for (int64_t j = 0; j < text.count; j++) {
        __m512i character = _mm512_set1_epi8((char)text.start[j]);
        first[LANES * j] = _mm512_cmpeq_epi8_mask(low, character);
        if (beyond)
            second[LANES * j] = _mm512_cmpeq_epi8_mask(high, character);
    }
}
#endif

/* Writes which elements of each of some strips are those of each column, in one lane. The columns of a text are the last
 * ones. */
INLINE void set_equal(const Pair *pair, int64_t start, int strips, int64_t columns, Bits *masks, Bits *equal)
{
    Elements text = pair->text;
    int64_t before = columns - text.count;
    int masked = 0;
#if HAS_MASKS
    masked = text.width != 4 && __builtin_cpu_supports("avx512bw");
    int counts = start < pair->pattern.count;
    if (masked && counts && text.width == 8)
        look_at_keys(pair->pattern, text, equal + LANES * before); /* of one strip: more have numbers */
    else if (masked && counts)
        look_at_characters(pair->pattern.start + start, pair->pattern.count - start, text, equal + LANES * before,
                           equal + LANES * (columns + before));
#endif
    for (int k = 0; k < strips; k++, start += STRIP, equal += LANES * columns) {
        Elements strip = pair->pattern;
        strip.start += strip.width * start;
        strip.count = strip.count - start < STRIP ? strip.count - start : STRIP;
        if (strip.count <= 0)
            break;
        for (int64_t j = 0; j < before; j++)
            equal[LANES * j] = 0;
        if (masked)
            continue;
        if (text.width == 8)
            look_at_all(strip, text, equal + LANES * before);
        else if (text.width == 1)
            look_up((Elements){strip.start, 1, strip.count}, (Elements){text.start, 1, text.count}, masks,
                    equal + LANES * before);
        else
            look_up((Elements){strip.start, 4, strip.count}, (Elements){text.start, 4, text.count}, masks,
                    equal + LANES * before);
    }
}

/* Which vertical differences of strips rise and fall behind the last column. deltas: the horizontal differences above the
 * first, and afterwards below the last. Columns without differences and equal elements change nothing. */
INLINE void compare_strips(const Lanes *equals, int strips, int64_t columns, Lanes *deltas, Lanes *rising,
                           Lanes *falling)
{
    Lanes up[STRIPS], down[STRIPS];
    for (int k = 0; k < strips; k++)
        up[k] = ~(Lanes){0}, down[k] = (Lanes){0};
    for (int64_t j = 0; j < columns; j++) {
        Lanes rises = deltas[2 * j], falls = deltas[2 * j + 1];
        for (int k = 0; k < strips; k++) {
            Lanes equal = equals[k * columns + j], vertical = equal | down[k];
            equal |= falls;
            Lanes horizontal = (((equal & up[k]) + up[k]) ^ up[k]) | equal;
            Lanes higher = down[k] | ~(horizontal | up[k]), lower = up[k] & horizontal;
            Lanes above = rises, below = falls;
            rises = higher >> (STRIP - 1);
            falls = lower >> (STRIP - 1);
            higher = higher << 1 | above;
            up[k] = (lower << 1 | below) | ~(vertical | higher);
            down[k] = higher & vertical;
        }
        deltas[2 * j] = rises;
        deltas[2 * j + 1] = falls;
    }
    for (int k = 0; k < strips; k++)
        rising[k] = up[k], falling[k] = down[k];
}

/* The distances of up to LANES pairs. equal and deltas: room for two of the longest text each. */
INLINE void compare(const Pair *pairs, int count, Bits *masks, Lanes *equal, Lanes *deltas)
{
    int64_t m = 0, n = 0;
    Lanes rising[STRIPS], falling[STRIPS], lengths = {0};
    for (int k = 0; k < count; k++) {
        m = pairs[k].pattern.count > m ? pairs[k].pattern.count : m;
        n = pairs[k].text.count > n ? pairs[k].text.count : n;
        lengths[k] = (Bits)pairs[k].text.count;
        *pairs[k].result = pairs[k].text.count;
    }
    for (int64_t j = 0; j < n; j++) { /* above the first strip, they rise in the columns of a text */
        deltas[2 * j] = (Lanes)((Bits)(n - j) <= lengths) & 1;
        deltas[2 * j + 1] = (Lanes){0};
    }
    for (int64_t start = 0; start < m; start += STRIPS * STRIP) {
        int strips = m - start > STRIP ? STRIPS : 1;
        for (int k = 0; k < count; k++)
            set_equal(pairs + k, start, strips, n, masks, (Bits *)equal + k);
        if (strips == 1)
            compare_strips(equal, 1, n, deltas, rising, falling);
        else
            compare_strips(equal, STRIPS, n, deltas, rising, falling);
        for (int i = 0; i < strips; i++)
            for (int k = 0; k < count; k++) {
                int64_t height = pairs[k].pattern.count - start - STRIP * i;
                Bits inside = height >= STRIP ? ~(Bits)0 : height > 0 ? ((Bits)1 << height) - 1 : 0;
                *pairs[k].result += __builtin_popcountll(rising[i][k] & inside);
                *pairs[k].result -= __builtin_popcountll(falling[i][k] & inside);
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
        starts[length_class(pairs[k].text.count) + 1]++;
    for (int k = 0; k < CLASSES; k++)
        starts[k + 1] += starts[k];
    for (int64_t k = 0; k < count; k++)
        sorted[starts[length_class(pairs[k].text.count)]++] = pairs[k];
}

/* Without the white space at both ends. */
INLINE Elements stripped(Elements text)
{
    while (text.count && is_space_at(text.start, text.width))
        text.start += text.width, text.count--;
    while (text.count && is_space_at(text.start + text.width * (text.count - 1), text.width))
        text.count--;
    return text;
}

/* Rows whose texts and words fit the cache together, and room for what is found of them. */
typedef struct {
    const uint8_t *bytes;
    int64_t width, rows, origin; /* of the first text */
    const int64_t *ends;
    int64_t length, longest; /* of all texts with what lies between them, and of two of a row */
    uint64_t *spaces, *edges, *keys, *table;
    int64_t *places;
    uint32_t *numbers;
    Bits *masks;
    Lanes *columns;
} Block;

INLINE Elements text_of(const Block *block, int64_t k)
{
    int64_t start = k ? block->ends[k - 1] + 1 : block->origin;
    return (Elements){block->bytes + block->width * start, block->width, block->ends[k] - start};
}

INLINE int open_block(Block *block, int64_t by_words)
{
    block->length = block->ends[2 * block->rows - 1] - block->origin;
    block->longest = 0;
    for (int64_t k = 0; k < block->rows; k++) {
        int64_t both = text_of(block, 2 * k).count + text_of(block, 2 * k + 1).count;
        block->longest = both > block->longest ? both : block->longest;
    }
    size_t length = (size_t)block->length + 2, longest = (size_t)block->longest + 1;
    size_t slots = 2 * longest > SLOTS ? 2 * longest : SLOTS, words = by_words ? length / 2 + LANES : 1;
    size_t bits = by_words ? (length / BLOCK + 1) * (BLOCK / 64) : 1;
    block->spaces = malloc(sizeof *block->spaces * bits);
    block->edges = malloc(sizeof *block->edges * bits);
    block->keys = malloc(sizeof *block->keys * words);
    block->places = malloc(sizeof *block->places * 2 * words);
    block->table = malloc(sizeof *block->table * slots);
    block->numbers = malloc(sizeof *block->numbers * length);
    block->masks = calloc(slots, sizeof *block->masks);
    block->columns = aligned_alloc(sizeof *block->columns, sizeof *block->columns * 4 * longest);
    return block->spaces && block->edges && block->keys && block->places && block->table && block->numbers &&
           block->masks && block->columns;
}

static void close_block(Block *block)
{
    free(block->spaces), free(block->edges), free(block->keys), free(block->places);
    free(block->table), free(block->numbers), free(block->masks), free(block->columns);
}

/* Counts words, and finds the keys of those that differ; 0 if there is no memory. */
INLINE int find_words(Block *block, int64_t *counts, Elements *elements)
{
    const uint8_t *bytes = block->bytes + block->width * block->origin;
    int64_t width = block->width, words = 0;
    find_edges(bytes, width, block->length, block->spaces, block->edges);
    for (int64_t k = 0; k < block->rows; k++) {
        Elements texts[2] = {text_of(block, 2 * k), text_of(block, 2 * k + 1)};
        for (int i = 0; i < 2; i++) {
            int64_t start = (texts[i].start - bytes) / width;
            counts[3 * k + 1 + i] = count_words(block->edges, start, start + texts[i].count);
        }
        trim_words(texts, texts + 1);
        for (int i = 0; i < 2; i++) {
            int64_t start = (texts[i].start - bytes) / width;
            int64_t count = list_words(block->edges, start, start + texts[i].count, block->places + 2 * words);
            elements[2 * k + i] = (Elements){(const uint8_t *)(block->keys + words), 8, count};
            words += count;
        }
    }
    return find_keys(bytes, width, block->places, words, block->keys);
}

/* Counts characters, and finds those that differ. */
INLINE void find_characters(const Block *block, int64_t *counts, Elements *elements)
{
    for (int64_t k = 0; k < block->rows; k++) {
        Elements *target = elements + 2 * k, *pred = target + 1;
        *target = stripped(text_of(block, 2 * k));
        *pred = stripped(text_of(block, 2 * k + 1));
        counts[3 * k + 1] = target->count;
        counts[3 * k + 2] = pred->count;
        trim(target, pred);
    }
}

/* Finds the pairs whose distance is still to be counted. Returns how many there are. */
INLINE int64_t find_pairs(const Block *block, int64_t *counts, const Elements *elements, Pair *pairs)
{
    uint32_t *numbers = block->numbers;
    int64_t found = 0;
    for (int64_t k = 0; k < block->rows; k++) {
        Elements target = elements[2 * k], pred = elements[2 * k + 1];
        counts[3 * k] = target.count + pred.count;
        if (!target.count || !pred.count)
            continue;
        Elements pattern = target.count < pred.count ? target : pred, text = target.count < pred.count ? pred : target;
        if (text.width == 4 || (text.width == 8 && pattern.count > STRIP)) {
            number_elements(pattern, text, numbers, block->table);
            pattern = (Elements){(const uint8_t *)numbers, 4, pattern.count};
            text = (Elements){(const uint8_t *)(numbers + pattern.count), 4, text.count};
            numbers += pattern.count + text.count;
        }
        pairs[found++] = (Pair){pattern, text, counts + 3 * k};
    }
    return found;
}

/* `assay_edit_counts` of the rows of a block; 0 if there is no memory. */
VECTORISED static int count_rows(Block *block, int64_t *counts, int64_t by_words)
{
    Elements elements[2 * ROWS];
    Pair pairs[ROWS], sorted[ROWS];
    int enough = open_block(block, by_words);
    if (enough && by_words)
        enough = find_words(block, counts, elements);
    else if (enough)
        find_characters(block, counts, elements);
    if (enough) {
        int64_t found = find_pairs(block, counts, elements, pairs);
        sort_pairs(pairs, found, sorted);
        for (int64_t k = 0; k < found; k += LANES)
            compare(sorted + k, found - k < LANES ? (int)(found - k) : LANES, block->masks, block->columns,
                    block->columns + 2 * (block->longest + 1));
    }
    close_block(block);
    return enough;
}

/* Writes where the first characters `mark` are, up to `most`, and how many there are, `most` + 1 for more. */
VECTORISED void assay_find_ends(const uint8_t *bytes, int64_t width, int64_t length, int64_t mark, int64_t most,
                                int64_t *ends, int64_t *found)
{
    int64_t count = 0;
    for (int64_t start = 0; start < length && count <= most; start += BLOCK) {
        uint8_t marks[BLOCK];
        int64_t size = length - start < BLOCK ? length - start : BLOCK;
        if (width == 1)
            for (int64_t k = 0; k < size; k++)
                marks[k] = bytes[start + k] == (uint8_t)mark;
        else
            for (int64_t k = 0; k < size; k++)
                marks[k] = number_at(bytes + 4 * (start + k)) == (uint32_t)mark;
        memset(marks + size, 0, (size_t)(BLOCK - size));
        for (int64_t k = 0; k < BLOCK && count <= most; k += 64)
            for (uint64_t rest = packed(marks + k); rest && count <= most; rest &= rest - 1, count++)
                if (count < most)
                    ends[count] = start + k + __builtin_ctzll(rest);
    }
    *found = count;
}

/* counts: (rows, 3), the errors, and the elements of targets and of predictions. The texts, of each row the target and the
 * prediction, have characters of `width` bytes; they lie one behind the other and end at `ends`, each before a character of
 * white space, which belongs to none; 8 bytes follow. Without memory, `done` is smaller than `rows`. */
void assay_edit_counts(int64_t *counts, const uint8_t *bytes, int64_t width, const int64_t *ends, int64_t rows,
                       int64_t by_words, int64_t *done)
{
    for (int64_t k = 0; k < rows; k += ROWS) {
        Block block = {.bytes = bytes, .width = width, .rows = rows - k < ROWS ? rows - k : ROWS,
                       .origin = k ? ends[2 * k - 1] + 1 : 0, .ends = ends + 2 * k};
        if (!count_rows(&block, counts + 3 * k, by_words))
            return;
        *done = k + block.rows;
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
