/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"
#include "latency/series.h"

enum {
    PART_ACCESSES = 1 << 14, /* between two readings of the clock while a cycle is walked warm */
    DISTURBED_TRIES = 4,
};

/* A cycle is steady when a lap takes as long as each of the two laps before it, to this share. */
#define STEADY_SHARE 0.02

static bool is_near(double left, double right)
{
    return fabs(left - right) <= STEADY_SHARE * right;
}

/* Linking visits the nodes in the order of the walk, but stores fill caches otherwise than loads, and a last-level
 * cache is a victim of the one before it and is shared with other guests: a cycle of its size takes ten laps and more,
 * faster or slower from lap to lap, before its time stands still. What other guests leave of the cache is then what
 * counts. */
static void walk_until_steady(struct chase *chase, uint64_t nodes, double seconds)
{
    uint64_t lap = nodes > PART_ACCESSES ? nodes : PART_ACCESSES;
    uint64_t start_ns = clock_now_ns();
    uint64_t end_ns = start_ns + (uint64_t)(seconds * 1e9);
    double before = INFINITY;
    double last = INFINITY;

    while (!signals_stop_requested()) {
        uint64_t lap_start_ns = clock_now_ns();

        for (uint64_t done = 0; done < lap; done += PART_ACCESSES) {
            chase_walk(chase, lap - done < PART_ACCESSES ? lap - done : PART_ACCESSES);
            if (clock_now_ns() >= end_ns || signals_stop_requested())
                return;
        }
        double now = (double)(clock_now_ns() - lap_start_ns);

        if (is_near(now, last) && is_near(now, before))
            return;
        before = last;
        last = now;
    }
}

void latency_measure_cell(struct latency_cell *cell, const struct latency_plan *plan, unsigned batches,
                          struct chase *chase, uint64_t nodes)
{
    walk_until_steady(chase, nodes, plan->warm_seconds);
    latency_time_batches(cell, plan, batches, chase, 1);
}

void latency_time_batches(struct latency_cell *cell, const struct latency_plan *plan, unsigned batches,
                          struct chase *chases, unsigned count)
{
    if (cell->accesses == 0)
        cell->accesses = count * chase_batch_accesses(chases, plan->batch_seconds);
    for (unsigned batch = 0; batch < batches; batch++) {
        bool quiet = false;
        double ns = NAN;

        for (unsigned try = 0; try < DISTURBED_TRIES && !quiet && !signals_stop_requested(); try++) {
            quiet = chase_time_parallel(chases, count, cell->accesses, &ns);
            cell->dropped += quiet ? 0 : 1;
        }
        if (quiet && cell->count < LATENCY_SAMPLES_MAX)
            cell->samples[cell->count++] = ns;
    }
}

void latency_end_round(struct latency_cell *cell, size_t first, unsigned round)
{
    double samples[LATENCY_SAMPLES_MAX];
    size_t count = cell->count - first;

    memcpy(samples, cell->samples + first, count * sizeof(*samples));
    if (count > 0)
        cell->round_ns[round] = statistics_median(samples, count);
}

static char *node_at(const struct latency_cycle *cycle, uint64_t index)
{
    uint64_t bytes = cycle->layout == LAYOUT_LINE_PER_PAGE ? cycle->base_page_bytes : CACHE_LINE_BYTES;
    uint64_t lines = bytes / CACHE_LINE_BYTES;
    uint64_t line = lines > 1 ? rng_mix(cycle->seed ^ index) % lines : 0;

    return cycle->base + index * bytes + line * CACHE_LINE_BYTES;
}

uint64_t latency_node_count(const struct latency_cycle *cycle)
{
    return cycle->footprint / (cycle->layout == LAYOUT_RANDOM_64B ? CACHE_LINE_BYTES : cycle->base_page_bytes);
}

void latency_visit(const struct latency_cycle *cycle)
{
    uint64_t count = latency_node_count(cycle);

    for (uint64_t index = 0; index < count; index++)
        (void)*(volatile const char *)node_at(cycle, index);
}

char *latency_node(const struct latency_cycle *cycle, uint64_t step)
{
    struct permutation permutation = permutation_new(latency_node_count(cycle), cycle->seed);

    return node_at(cycle, permutation_at(&permutation, step));
}

void *latency_link(const struct latency_cycle *cycle)
{
    uint64_t count = latency_node_count(cycle);
    struct permutation permutation = permutation_new(count, cycle->seed);
    char *first = node_at(cycle, permutation_at(&permutation, 0));
    char *node = first;

    for (uint64_t index = 1; index < count; index++) {
        char *next = node_at(cycle, permutation_at(&permutation, index));

        *(char **)node = next;
        node = next;
    }
    *(char **)node = first;
    return first;
}
