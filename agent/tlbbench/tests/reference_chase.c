/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent dependent chase to compare `tlbbench latency` with. It shares no code with tlbbench on purpose: its
 * own shuffled table, its own mapping, whole laps where they are short, no guard, best of several mappings.
 *
 *   reference_chase BYTES page|line base|thp|hugetlb [PAGE_BYTES [PLACES [ACCESSES [ARENA_BYTES]]]]
 *
 * prints ns per access: best, median and all of PLACES fresh cycles (5; at most 64). Each is walked for ACCESSES loads
 * (4000000) to become steady and then timed over as many. With ARENA_BYTES each lies somewhere in a mapping of that
 * size; without it each has a mapping of its own, which tends to get the pages that the one before gave back.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PLACES = 5, PLACES_MAX = 64, ACCESSES = 4000000, LINE = 64 };

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Processor time: what else runs on the core takes none of it. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static char *map(size_t bytes, const char *kind, size_t page)
{
    if (strcmp(kind, "hugetlb") == 0) {
        size_t rounded = (bytes + page - 1) / page * page;

        return mmap(NULL, rounded, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)((unsigned)__builtin_ctzl(page) << 26), -1, 0);
    }
    char *wide = mmap(NULL, bytes + (4u << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (wide == MAP_FAILED)
        return wide;
    char *base = (char *)(((uintptr_t)wide + (2u << 20) - 1) & ~((uintptr_t)(2u << 20) - 1));

    (void)madvise(base, bytes, strcmp(kind, "thp") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return base;
}

int main(int argc, char **argv)
{
    double results[PLACES_MAX];

    if (argc < 4)
        return 2;
    state = (uint64_t)now() | 1; /* another order in every run, as in every mapping */
    size_t bytes = strtoull(argv[1], NULL, 0);
    size_t step = strcmp(argv[2], "page") == 0 ? 4096 : LINE;
    size_t page = argc > 4 ? strtoull(argv[4], NULL, 0) : 4096;
    size_t count = bytes / step;
    int places = argc > 5 ? atoi(argv[5]) : PLACES;
    size_t wanted = argc > 6 ? strtoull(argv[6], NULL, 0) : ACCESSES;
    size_t arena = argc > 7 ? strtoull(argv[7], NULL, 0) : bytes;
    if (places < 1 || places > PLACES_MAX || wanted == 0 || count == 0 || arena < bytes)
        return 2;
    uint32_t *order = malloc(count * sizeof(*order));
    char *dropped = map(1u << 20, "base", 4096);
    char *all = NULL;

    if (dropped == MAP_FAILED)
        return 1;
    memset(dropped, 1, 1u << 20);

    for (int place = 0; place < places; place++) {
        if (all == NULL) {
            all = map(arena, argv[3], page);
            if (all == MAP_FAILED || order == NULL) {
                perror("map");
                return 1;
            }
            memset(all, 1, arena);
        }
        char *base = all + draw() % (arena / bytes) * bytes;

        for (size_t i = 0; i < count; i++)
            order[i] = (uint32_t)i;
        for (size_t i = count - 1; i > 0; i--) {
            size_t j = draw() % (i + 1);
            uint32_t t = order[i];

            order[i] = order[j];
            order[j] = t;
        }
        /* Pages of earlier places stay in the TLBs otherwise, as they do not after the munmap of a mapping. */
        (void)mprotect(dropped, 1u << 20, PROT_NONE);
        (void)mprotect(dropped, 1u << 20, PROT_READ | PROT_WRITE);
        memset(dropped, 1, 1u << 20);
        /* One line per page at a random line; or every line. */
        char *first = NULL, *previous = NULL;
        for (size_t i = 0; i < count; i++) {
            char *node = base + (size_t)order[i] * step + (step > LINE ? draw() % (step / LINE) * LINE : 0);

            if (previous != NULL)
                *(char **)previous = node;
            else
                first = node;
            previous = node;
        }
        *(char **)previous = first;
        size_t accesses = count < wanted ? wanted / count * count : wanted;
        char *position = first;

        for (size_t i = 0; i < accesses; i++)
            position = *(char **)position;
        double start = now();

        for (size_t i = 0; i < accesses; i++)
            position = *(char **)position;
        results[place] = (now() - start) / (double)accesses;
        __asm__ volatile("" : : "r"(position));
        if (arena == bytes) {
            (void)munmap(all, (arena + page - 1) / page * page);
            all = NULL;
        }
    }
    qsort(results, (size_t)places, sizeof(results[0]), ascending);
    printf("%zu %s %s best %.3f median %.3f all", bytes, argv[2], argv[3], results[0], results[places / 2]);
    for (int place = 0; place < places; place++)
        printf(" %.3f", results[place]);
    printf("\n");
    return 0;
}
