/* 64-bit numbers sorted by their upper half. */
#include <stdint.h>

/* Bits that one pass sorts by: three passes take 32 bits, or four of few numbers. */
#define MANY_BITS 11
#define FEW_BITS 8
#define FEW_NUMBERS 2048

/* Sort by the upper 32 bits, some of them in each pass, and keep the order of equal ones; `room` is as large as `numbers`, and
 * `starts` has a place for each digit of each pass. The sorted numbers lie in one of both. */
static inline uint64_t *sorted_by_digits(uint64_t *numbers, uint64_t *room, int64_t count, int bits, int64_t *starts)
{
    int passes = (32 + bits - 1) / bits;
    uint32_t last = (UINT32_C(1) << bits) - 1;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < passes; k++)
            starts[((int64_t)k << bits) + (numbers[i] >> (32 + bits * k) & last)]++;
    for (int k = 0; k < passes; k++) {
        int shift = 32 + bits * k;
        int64_t *of_digit = starts + ((int64_t)k << bits);
        if (count && of_digit[numbers[0] >> shift & last] == count)
            continue; /* all have the same digit */
        int64_t first = 0;
        for (uint32_t digit = 0; digit <= last; digit++) {
            int64_t size = of_digit[digit];
            of_digit[digit] = first;
            first += size;
        }
        for (int64_t i = 0; i < count; i++)
            room[of_digit[numbers[i] >> shift & last]++] = numbers[i];
        uint64_t *sorted = room;
        room = numbers;
        numbers = sorted;
    }
    return numbers;
}

/* The same with more and smaller tables where there are few numbers: clearing large ones would take longer than sorting. */
static inline uint64_t *sorted_by_upper_half(uint64_t *numbers, uint64_t *room, int64_t count)
{
    if (count < FEW_NUMBERS) {
        int64_t starts[4 << FEW_BITS] = {0};
        return sorted_by_digits(numbers, room, count, FEW_BITS, starts);
    }
    int64_t starts[3 << MANY_BITS] = {0};
    return sorted_by_digits(numbers, room, count, MANY_BITS, starts);
}
