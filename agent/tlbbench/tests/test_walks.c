/* SPDX-License-Identifier: Apache-2.0 */
/* Walks on machines that are not here: a second NUMA node, two walkers, caches and walk caches of known sizes. The
 * linker puts the functions below in the place of those that map and time; what is chased is real. */
#include "base/clock.h"
#include "base/std.h"
#include "harness.h"
#include "latency/result.h"
#include "memory/arena.h"
#include "timing/chase.h"
#include "timing/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, LOCAL_NS = 100, REMOTE_NS = 170, WALKERS = 2 };

#define HIT_NS 2.0
#define L2_NS 8.0
#define LLC_NS 25.0
#define MEMORY_NS 90.0
#define SIMULATED_L2_BYTES (1 * MIB)
#define SIMULATED_LLC_BYTES (4 * MIB)

static struct {
    int node; /* of the arena that is open */
    double on_node;
    int full_node; /* that has no room; -1 = none */
    double granted_fraction;
    int64_t pool_pages;
    unsigned opened[2];
} machine;

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* How many different parts of 2^shift bytes the table visits: lines of page tables, or tables. */
static uint64_t parts_of(const struct chase *chase, unsigned shift)
{
    uint64_t *parts = malloc(chase->count * sizeof(*parts));
    uint64_t count = 0;

    for (uint64_t index = 0; index < chase->count; index++)
        parts[index] = (uint64_t)(uintptr_t)chase->addresses[index] >> shift;
    qsort(parts, chase->count, sizeof(*parts), by_value);
    for (uint64_t index = 0; index < chase->count; index++)
        count += index == 0 || parts[index] != parts[index - 1] ? 1 : 0;
    free(parts);
    return count;
}

/* Eight entries of 4K pages share a line of 64 bytes; entries that cover 2M are cached for 32 of them. */
static double table_ns(const struct chase *chase)
{
    uint64_t bytes = parts_of(chase, 15) * 64;
    double ns = bytes <= SIMULATED_L2_BYTES ? L2_NS : bytes <= SIMULATED_LLC_BYTES ? LLC_NS : MEMORY_NS;

    return chase->count <= 64 ? HIT_NS : parts_of(chase, 21) <= 32 ? ns : ns + 5;
}

bool __wrap_chase_time_parallel(struct chase *chases, unsigned count, uint64_t accesses, double *ns_per_access);
bool __wrap_chase_time_parallel(struct chase *chases, unsigned count, uint64_t accesses, double *ns_per_access)
{
    (void)accesses;
    *ns_per_access = chases->addresses != NULL
                         ? table_ns(chases)
                         : (machine.node == 1 ? REMOTE_NS : LOCAL_NS) / (double)(count < WALKERS ? count : WALKERS);
    return true;
}

void __wrap_chase_walk(struct chase *chase, uint64_t accesses);
void __wrap_chase_walk(struct chase *chase, uint64_t accesses)
{
    (void)chase;
    (void)accesses;
}

uint64_t __wrap_chase_batch_accesses(struct chase *chase, double seconds);
uint64_t __wrap_chase_batch_accesses(struct chase *chase, double seconds)
{
    (void)chase;
    (void)seconds;
    return 4096;
}

int64_t __wrap_backing_free_pages(const char *sysfs, uint64_t page_bytes, int node);
int64_t __wrap_backing_free_pages(const char *sysfs, uint64_t page_bytes, int node)
{
    (void)sysfs;
    (void)page_bytes;
    return node == 1 && machine.full_node == 1 ? 0 : machine.pool_pages;
}

int __wrap_arena_open(struct arena *arena, const struct arena_request *request, struct verdict *verdict);
int __wrap_arena_open(struct arena *arena, const struct arena_request *request, struct verdict *verdict)
{
    *verdict = (struct verdict){.status = STATUS_OK};
    machine.node = request->node;
    machine.opened[request->node == 1 ? 1 : 0]++;
    *arena = (struct arena){.backing = *request->backing,
                            .bytes = request->bytes,
                            .on_node = machine.on_node,
                            .granted_fraction = machine.granted_fraction};
    if (request->node >= 0 && request->node == machine.full_node) {
        verdict_set(verdict, STATUS_NO_MEMORY, "NUMA node %d has no room", request->node);
        return -1;
    }
    if (arena->granted_fraction < 1)
        verdict_set(verdict, STATUS_THP_NOT_GRANTED, "the kernel gave base pages");
    arena->base = aligned_alloc(PAGE, request->bytes);
    return arena->base == NULL ? -1 : 0;
}

void __wrap_arena_close(struct arena *arena);
void __wrap_arena_close(struct arena *arena)
{
    free(arena->base);
    arena->base = NULL;
}

/* A quick run with 32 MiB per mapping, on a machine of `nodes` nodes. */
static struct walks_result measure(size_t nodes, bool full)
{
    static struct environment environment;
    struct session session = {.environment = &environment,
                              .base_page_bytes = PAGE,
                              .backings = {{BACKING_BASE, PAGE, "4K"},
                                           {BACKING_HUGETLB, 2 * MIB, "2M"},
                                           {BACKING_MULTI_SIZE_THP, 64 * KIB, "THP-64K"}},
                              .backing_count = 2,
                              .multi_size_count = 1,
                              .full = full,
                              .seed = 7,
                              .numa_node = nodes > 1 ? 0 : -1,
                              .memory_bytes = 64 * MIB,
                              .deadline = deadline_after(600)};
    struct walks_result result;

    memset(&environment, 0, sizeof(environment));
    environment.node_count = nodes;
    for (size_t node = 0; node < nodes; node++) {
        environment.nodes[node] = (struct numa_node){.id = (int)node, .mem_total_bytes = GIB, .mem_free_bytes = GIB};
        (void)snprintf(environment.nodes[node].cpus, sizeof(environment.nodes[node].cpus), "%zu", node);
    }
    if (walks_measure(&session, &result) != 0)
        abort();
    return result;
}

static void reset(void)
{
    memset(&machine, 0, sizeof(machine));
    machine.on_node = 1;
    machine.full_node = -1;
    machine.granted_fraction = 1;
    machine.pool_pages = 64;
}

static const struct curve *find(const struct walks_result *result, const char *x_name, const char *backing)
{
    for (size_t index = 0; index < result->curves.count; index++)
        if (strcmp(result->curves.items[index].x_name, x_name) == 0 &&
            strcmp(result->curves.items[index].backing.name, backing) == 0)
            return &result->curves.items[index];
    return NULL;
}

/* The median at x; -1 where there is none. */
static double at(const struct curve *curve, uint64_t x)
{
    for (size_t index = 0; curve != NULL && index < curve->point_count; index++)
        if (curve->points[index].x == x)
            return curve->points[index].stats.ns_p50;
    return -1;
}

static void every_node_with_memory_is_a_point(struct harness *h)
{
    reset();
    struct walks_result result = measure(2, false);

    CHECK_I64(result.cpu_node, 0);
    CHECK(at(find(&result, "numa_node", "4K"), 0) == LOCAL_NS);
    CHECK(at(find(&result, "numa_node", "4K"), 1) == REMOTE_NS);
    CHECK(at(find(&result, "numa_node", "2M"), 1) == REMOTE_NS);
    CHECK(at(find(&result, "numa_node", "THP-64K"), 1) == REMOTE_NS);
    CHECK(find(&result, "numa_node", "2M")->footprint_bytes == 32 * MIB);
    CHECK(machine.opened[0] == machine.opened[1]);
    CHECK(at(find(&result, "chases", "2M"), 1) == LOCAL_NS);
    curve_list_free(&result.curves);
}

static void one_node_has_no_remote_memory(struct harness *h)
{
    reset();
    struct walks_result result = measure(1, false);

    CHECK(find(&result, "numa_node", "4K") == NULL);
    CHECK(at(find(&result, "chases", "4K"), 1) == LOCAL_NS);
    curve_list_free(&result.curves);
}

static void memory_of_unknown_place_is_not_called_remote(struct harness *h)
{
    reset();
    machine.on_node = NAN;
    struct walks_result result = measure(2, false);
    const struct curve *curve = find(&result, "numa_node", "2M");

    CHECK(curve->verdict.status == STATUS_CANNOT_TELL);
    CHECK(at(curve, 1) < 0 && at(curve, 0) == LOCAL_NS);
    curve_list_free(&result.curves);
}

static void a_full_node_is_named(struct harness *h)
{
    reset();
    machine.full_node = 1;
    struct walks_result result = measure(2, false);

    for (size_t index = 0; index < 2; index++) {
        const struct curve *curve = find(&result, "numa_node", index == 0 ? "4K" : "2M");

        CHECK(curve->verdict.status == STATUS_NO_MEMORY && strstr(curve->verdict.reason, "NUMA node 1") != NULL);
        CHECK(at(curve, 1) < 0 && at(curve, 0) == LOCAL_NS);
    }
    curve_list_free(&result.curves);
}

static void chases_overlap_as_far_as_there_are_walkers(struct harness *h)
{
    reset();
    struct walks_result result = measure(1, false);
    const struct curve *curve = find(&result, "chases", "2M");

    CHECK_U64(curve->point_count, 4);
    CHECK(at(curve, 2) == LOCAL_NS / 2.0 && at(curve, 4) == LOCAL_NS / 2.0 && at(curve, 8) == LOCAL_NS / 2.0);
    curve_list_free(&result.curves);
}

static void an_empty_pool_and_refused_pages_have_a_reason(struct harness *h)
{
    reset();
    machine.pool_pages = 0;
    struct walks_result result = measure(1, false);

    CHECK(find(&result, "chases", "2M")->verdict.status == STATUS_NO_FREE_HUGEPAGES);
    CHECK_U64(find(&result, "chases", "2M")->point_count, 0);
    curve_list_free(&result.curves);
    reset();
    machine.pool_pages = 4;
    result = measure(1, false);
    CHECK(strstr(find(&result, "chases", "2M")->verdict.reason, "8 MiB may be taken") != NULL);
    curve_list_free(&result.curves);
    reset();
    machine.granted_fraction = 0.5;
    result = measure(1, false);
    CHECK(find(&result, "chases", "THP-64K")->verdict.status == STATUS_THP_NOT_GRANTED);
    CHECK_U64(find(&result, "chases", "THP-64K")->point_count, 0);
    curve_list_free(&result.curves);
}

static void needs_4k_pages(struct harness *h, struct walks_result *result, bool full)
{
    reset();
    *result = (struct walks_result){0};
    if (sysconf(_SC_PAGESIZE) != PAGE || harness_is_emulated())
        harness_skip(h, "the simulated tables are those of 4K pages, read natively");
    else
        *result = measure(1, full);
}

static void tables_cost_what_their_cache_does(struct harness *h)
{
    struct walks_result result;

    needs_4k_pages(h, &result, false);
    const struct curve *curve = find(&result, "table_bytes", "4K");

    if (curve == NULL)
        return;
    CHECK_U64(curve->point_count, 4);
    CHECK(at(curve, 1 * KIB) == HIT_NS);
    CHECK(at(curve, 512 * KIB) == L2_NS + 5);
    CHECK(at(curve, 2 * MIB) == LLC_NS + 5);
    CHECK(at(curve, 8 * MIB) == MEMORY_NS + 5);
    curve_list_free(&result.curves);
}

static void strides_run_the_walk_caches_out(struct harness *h)
{
    struct walks_result result;

    needs_4k_pages(h, &result, false);
    const struct curve *curve = find(&result, "stride_bytes", "4K");

    if (curve == NULL)
        return;
    CHECK(at(curve, 4 * KIB) == L2_NS);
    CHECK(at(curve, 32 * KIB) == L2_NS + 5);
    CHECK(at(curve, 256 * KIB) == L2_NS + 5);
    /* 64 MiB are allowed: 8,192 tables of 4K, and what addresses them, would take more than half of it. */
    CHECK(at(curve, 2 * MIB) < 0 && strstr(curve->verdict.reason, "the memory budget is small: 3 of 7 points") != NULL);
    CHECK(curve->verdict.status == STATUS_OK);
    curve_list_free(&result.curves);
}

static const struct harness_case CASES[] = {
    {"every NUMA node with memory is a point", every_node_with_memory_is_a_point},
    {"one NUMA node has no remote memory", one_node_has_no_remote_memory},
    {"memory of unknown place is not called remote", memory_of_unknown_place_is_not_called_remote},
    {"a full NUMA node is named", a_full_node_is_named},
    {"chases overlap as far as there are walkers", chases_overlap_as_far_as_there_are_walkers},
    {"an empty pool and refused pages have a reason", an_empty_pool_and_refused_pages_have_a_reason},
    {"tables cost what their cache does", tables_cost_what_their_cache_does},
    {"strides run the walk caches out", strides_run_the_walk_caches_out},
};

HARNESS_MAIN("walks", CASES)
