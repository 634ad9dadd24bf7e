#include <stddef.h>

/* A function compiled several times, for several generations of processors; the loader picks one. In one that is FUSED the
 * compiler may make one operation of a multiplication and an addition. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define FUSED VECTORISED __attribute__((optimize("fp-contract=fast")))
#else
#define VECTORISED
#define FUSED
#endif
#define INLINE static inline __attribute__((always_inline))

/* Have memory on its way to the caches; it may lie behind what there is. */
INLINE void have_ready(const void *start, size_t size)
{
    for (size_t byte = 0; byte < size; byte += 64)
        __builtin_prefetch((const char *)start + byte);
}
