/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent dependent chase to compare `tlbbench latency` with. It shares no code with tlbbench on purpose: its
 * own shuffled table, its own mapping, whole laps, no guard, best of several mappings.
 *
 *   reference_chase BYTES page|line base|thp|hugetlb [PAGE_BYTES]     prints ns per access (best and median of 5
 * mappings)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAPPINGS = 5, LINE = 64 };

static uint64_t state = 0x2545f4914f6cdd1du;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static char *map(size_t bytes, const char *kind, size_t page)
{
    if (strcmp(kind, "hugetlb") == 0) {
        const size_t rounded = (bytes + page - 1) / page * page;

        return mmap(NULL, rounded, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)((unsigned)__builtin_ctzl(page) << 26), -1, 0);
    }
    char *const wide = mmap(NULL, bytes + (4u << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (wide == MAP_FAILED)
        return wide;
    char *const base = (char *)(((uintptr_t)wide + (2u << 20) - 1) & ~((uintptr_t)(2u << 20) - 1));

    (void)madvise(base, bytes, strcmp(kind, "thp") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return base;
}

int main(int argc, char **argv)
{
    double results[MAPPINGS];

    if (argc < 4)
        return 2;
    const size_t bytes = strtoull(argv[1], NULL, 0);
    const size_t step = strcmp(argv[2], "page") == 0 ? 4096 : LINE;
    const size_t page = argc > 4 ? strtoull(argv[4], NULL, 0) : 4096;
    const size_t count = bytes / step;
    uint32_t *const order = malloc(count * sizeof(*order));

    for (int mapping = 0; mapping < MAPPINGS; mapping++) {
        char *const base = map(bytes, argv[3], page);

        if (base == MAP_FAILED || order == NULL) {
            perror("map");
            return 1;
        }
        memset(base, 1, bytes);
        for (size_t i = 0; i < count; i++)
            order[i] = (uint32_t)i;
        for (size_t i = count - 1; i > 0; i--) {
            const size_t j = draw() % (i + 1);
            const uint32_t t = order[i];

            order[i] = order[j];
            order[j] = t;
        }
        /* One line a page at a random line; or every line. */
        char *first = NULL, *previous = NULL;
        for (size_t i = 0; i < count; i++) {
            char *const node = base + (size_t)order[i] * step + (step > LINE ? draw() % (step / LINE) * LINE : 0);

            if (previous != NULL)
                *(char **)previous = node;
            else
                first = node;
            previous = node;
        }
        *(char **)previous = first;
        const size_t accesses = count < 4000000 ? 4000000 / count * count : count;
        char *position = first;

        for (size_t i = 0; i < count; i++) /* one lap to warm */
            position = *(char **)position;
        const double start = now();

        for (size_t i = 0; i < accesses; i++)
            position = *(char **)position;
        results[mapping] = (now() - start) / (double)accesses;
        __asm__ volatile("" : : "r"(position));
        (void)munmap(base, bytes);
    }
    qsort(results, MAPPINGS, sizeof(results[0]), ascending);
    printf("%zu %s %s best %.3f median %.3f\n", bytes, argv[2], argv[3], results[0], results[MAPPINGS / 2]);
    return 0;
}
