/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/verdict.h"
#include "harness.h"
#include "latency/result.h"
#include "latency/series.h"
#include "rows/parts.h"
#include "timing/chase.h"
#include "timing/guard.h"
#include "timing/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define COUNTS_FLUSHED_PAGES true
#else
#define COUNTS_FLUSHED_PAGES false
#endif

static void shuffle_is_a_permutation(struct harness *h)
{
    enum { COUNT = 1000 };
    uint32_t order[COUNT];
    bool seen[COUNT] = {false};
    struct rng rng = rng_new(1, 2);
    unsigned fixed = 0;

    for (uint32_t index = 0; index < COUNT; index++)
        order[index] = index;
    permutation_shuffle(order, COUNT, &rng);
    for (uint32_t index = 0; index < COUNT; index++) {
        CHECK(order[index] < COUNT && !seen[order[index]]);
        seen[order[index]] = true;
        fixed += order[index] == index ? 1 : 0;
    }
    CHECK(fixed < 10); /* one is expected */
}

static void tableless_permutation_is_one(struct harness *h)
{
    static const uint64_t counts[] = {1, 2, 3, 5, 64, 100, 1000, 4096, 65537, 100000};
    bool *seen = malloc(100000);

    for (size_t size = 0; size < sizeof(counts) / sizeof(counts[0]); size++) {
        struct permutation permutation = permutation_new(counts[size], 42 + size);
        uint64_t missing = counts[size];

        memset(seen, 0, 100000);
        for (uint64_t index = 0; index < counts[size]; index++) {
            uint64_t value = permutation_at(&permutation, index);

            CHECK(value < counts[size]);
            missing -= value < counts[size] && !seen[value] ? 1 : 0;
            seen[value < counts[size] ? value : 0] = true;
        }
        CHECK_U64(missing, 0);
    }
    free(seen);
}

/* Steps between neighbours of the cycle must not repeat: a prefetcher would learn them. */
static void tableless_permutation_has_no_stride(struct harness *h)
{
    enum { COUNT = 4096 };
    struct permutation permutation = permutation_new(COUNT, 9);
    unsigned repeats[COUNT] = {0};
    unsigned most = 0;

    for (uint64_t index = 0; index + 1 < COUNT; index++) {
        uint64_t step = (permutation_at(&permutation, index + 1) - permutation_at(&permutation, index)) % COUNT;

        repeats[step]++;
        most = repeats[step] > most ? repeats[step] : most;
    }
    CHECK(most < 40); /* one each is expected of a random order, 4095 of a stride */
}

static void check_cycle(struct harness *h, enum latency_curve layout, uint64_t nodes)
{
    enum { BYTES = 1 << 20, PAGE = 4096 };
    char *base = aligned_alloc(PAGE, BYTES);
    unsigned lines_used = 0;
    bool lines[64] = {false};

    memset(base, 0, BYTES);
    struct latency_cycle cycle = {base, BYTES, PAGE, layout, 77};
    char *start = latency_link(&cycle);
    char *position = start;
    uint64_t length = 0;

    do {
        size_t offset = (size_t)(position - base);

        if (offset >= BYTES) {
            harness_fail(h, __FILE__, __LINE__, "node outside the area");
            break;
        }
        lines_used += lines[offset / 64 % 64] ? 0 : 1;
        lines[offset / 64 % 64] = true;
        position = *(char **)position;
        length++;
    } while (position != start && length <= nodes);
    CHECK_U64(length, nodes);
    if (layout == LAYOUT_LINE_PER_PAGE)
        CHECK(lines_used > 58); /* 256 pages over 64 lines: the mean is 62.9 */
    free(base);
}

static void latency_cycles_are_whole(struct harness *h)
{
    check_cycle(h, LAYOUT_LINE_PER_PAGE, 256);
    check_cycle(h, LAYOUT_RANDOM_64B, 16384);
    check_cycle(h, LAYOUT_PACKED, 256);
}

/* A ring of 1,024 pointers, chased from places as far apart as the chases are many. */
static void chases_side_by_side_make_equal_steps(struct harness *h)
{
    enum { COUNT = 1024, STEPS = 64 };
    void *ring[COUNT];

    for (unsigned index = 0; index < COUNT; index++)
        ring[index] = &ring[(index + 1) % COUNT];
    for (unsigned count = 1; count <= CHASES_MAX; count *= 2) {
        struct chase chases[CHASES_MAX] = {0};
        double ns = -1;

        for (unsigned index = 0; index < count; index++)
            chases[index].position = &ring[index * (COUNT / count)];
        (void)chase_time_parallel(chases, count, (uint64_t)STEPS * count, &ns);
        CHECK(ns > 0);
        for (unsigned index = 0; index < count; index++)
            CHECK(chases[index].position == &ring[(index * (COUNT / count) + STEPS) % COUNT]);
    }
}

static void nodes_are_found_by_their_step(struct harness *h)
{
    enum { BYTES = 1 << 20, PAGE = 4096 };
    struct latency_cycle cycle = {aligned_alloc(PAGE, BYTES), BYTES, PAGE, LAYOUT_LINE_PER_PAGE, 5};
    const char *node = latency_link(&cycle);

    for (uint64_t step = 0; step < latency_node_count(&cycle); step++) {
        CHECK(node == latency_node(&cycle, step));
        node = *(char *const *)node;
    }
    free(cycle.base);
}

static void walk_follows_the_pointers(struct harness *h)
{
    void *ring[8];
    struct chase chase = {.position = &ring[0]};

    for (unsigned index = 0; index < 8; index++)
        ring[index] = &ring[(index + 3) % 8];
    chase_walk(&chase, CHASE_UNROLL);
    CHECK(chase.position == &ring[CHASE_UNROLL * 3 % 8]);
    chase_walk(&chase, 1); /* rounded up to a whole unrolled step */
    CHECK(chase.position == &ring[2 * CHASE_UNROLL * 3 % 8]);
}

static void walk_follows_a_table(struct harness *h)
{
    enum { COUNT = 5 };
    static const char zeroes[64];
    static const uint32_t offsets[COUNT] = {32, 0, 8, 56, 16};
    struct chase chase = {.offsets = offsets, .count = COUNT, .base = zeroes};

    chase_walk(&chase, CHASE_UNROLL);
    CHECK_U64(chase.next, CHASE_UNROLL % COUNT);
    chase_walk(&chase, 1);
    CHECK_U64(chase.next, 2 * CHASE_UNROLL % COUNT);
}

/* Resident bytes of this process in files and private memory; 0 where /proc says nothing. */
static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%*u %llu", &pages) != 1)
            pages = 0;
        (void)fclose(file);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void pages_of_zeroes_take_no_memory(struct harness *h)
{
    enum { PAGES = 8192 };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t *order = malloc(PAGES * sizeof(*order));
    bool *seen = calloc(PAGES, sizeof(*seen));
    struct rng rng = rng_new(1, 1);
    struct zero_window view;
    struct verdict verdict;

    memset(order, 1, PAGES * sizeof(*order));
    CHECK(zero_window_open(&view, page, PAGES, &verdict) == 0);
    uint64_t before = resident_bytes();
    struct chase chase = zero_window_link(&view, false, PAGES, &rng, order);

    for (size_t step = 0; step < PAGES; step++) {
        uint64_t at = order[step] / page;

        CHECK(at < PAGES && !seen[at] && order[step] % 64 == 0);
        seen[at < PAGES ? at : 0] = true;
    }
    chase_walk(&chase, 2 * PAGES);
    if (before > 0)
        CHECK(resident_bytes() < before + (1u << 20)); /* counted, the pages would be 32 MiB and more */
    chase = zero_window_link(&view, true, PAGES, &rng, order);
    for (size_t step = 0; step < PAGES; step++)
        CHECK(order[step] < page);
    zero_window_close(&view);
    free(order);
    free(seen);
}

static void zipf_has_the_right_popularity(struct harness *h)
{
    enum { RANKS = 1000, DRAWS = 400000 };
    struct zipf zipf = zipf_new(RANKS, 0.99);
    static unsigned hits[RANKS];
    struct rng rng = rng_new(3, 3);
    double total = 0;

    for (unsigned rank = 1; rank <= RANKS; rank++)
        total += pow(rank, -0.99);
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        uint64_t rank = zipf_draw(&zipf, &rng);

        if (rank < RANKS)
            hits[rank]++;
        else
            harness_fail(h, __FILE__, __LINE__, "rank %llu", (unsigned long long)rank);
    }
    for (unsigned rank = 1; rank <= RANKS; rank *= 3) {
        double expected = DRAWS * pow(rank, -0.99) / total;

        if (fabs(hits[rank - 1] - expected) > 5 * sqrt(expected))
            harness_fail(h, __FILE__, __LINE__, "rank %u: %u hits, expected %.0f", rank, hits[rank - 1], expected);
    }
}

/* NUMA balancing takes pages out of the page tables to see who faults; such a fault is the kernel's time. */
static void a_fault_disturbs_a_batch(struct harness *h)
{
    enum { TRIES = 50 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *pages = mmap(NULL, TRIES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct noise_guard guard;
    double wall_ns;
    bool quiet = false;

    if (pages == MAP_FAILED) {
        harness_fail(h, __FILE__, __LINE__, "no memory");
        return;
    }
    for (unsigned try = 0; try < TRIES; try++) {
        guard_begin(&guard);
        pages[try * page] = 1;
        CHECK(!guard_end(&guard, &wall_ns));
    }
    for (unsigned try = 0; try < 1000 && !quiet; try++) {
        guard_begin(&guard);
        for (unsigned index = 0; index < 1000 * TRIES; index++)
            pages[index % TRIES * page]++;
        quiet = guard_end(&guard, &wall_ns);
    }
    CHECK(quiet); /* the same accesses without faults */
    (void)munmap((void *)pages, TRIES * page);
}

/* Armv8.4's range instructions invalidate up to 2^21 pages by themselves; only past that does the kernel drop all of
 * the process. Elsewhere than on x86-64 the range that is flushed has to be longer. */
static void a_flush_spans_more_than_a_range_instruction(struct harness *h)
{
    unsigned long long start, end, longest = 0;
    char line[512], permissions[8];

    if (COUNTS_FLUSHED_PAGES) {
        harness_skip(h, "x86-64 kernels drop everything past 33 pages");
        return;
    }
    tlb_flush();
    tlb_flush();
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        if (sscanf(line, "%llx-%llx %7s", &start, &end, permissions) == 3 && strcmp(permissions, "r--p") == 0)
            longest = end - start > longest ? end - start : longest;
    if (maps != NULL)
        (void)fclose(maps);
    if (longest <= (1ull << 21) * (unsigned long long)sysconf(_SC_PAGESIZE))
        harness_fail(h, __FILE__, __LINE__, "the longest readable range has %llu bytes", longest);
}

static const struct harness_case CASES[] = {
    {"a flush spans more than a range instruction", a_flush_spans_more_than_a_range_instruction},
    {"a page fault disturbs a batch", a_fault_disturbs_a_batch},
    {"a shuffle is a permutation", shuffle_is_a_permutation},
    {"a permutation without a table is one", tableless_permutation_is_one},
    {"a permutation without a table has no stride", tableless_permutation_has_no_stride},
    {"cycles of the latency layouts are whole", latency_cycles_are_whole},
    {"chases side by side make equal steps", chases_side_by_side_make_equal_steps},
    {"nodes of a cycle are found by their step", nodes_are_found_by_their_step},
    {"a walk follows the pointers", walk_follows_the_pointers},
    {"a walk follows a table", walk_follows_a_table},
    {"pages of zeroes take no memory", pages_of_zeroes_take_no_memory},
    {"Zipf ranks have the right popularity", zipf_has_the_right_popularity},
};

HARNESS_MAIN("chase", CASES)
