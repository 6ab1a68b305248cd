/* SPDX-License-Identifier: Apache-2.0 */
#include "latency_series.h"

#include "signals.h"
#include "statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 64,
    FOOTPRINT_MIN_BYTES = 64 << 10,
    PROBE_BYTES = 16 << 20,
    POINTS_MIN = 4,                 /* of every plan, however slow the machine is */
    WARM_LAPS_NODES = 65536,        /* short cycles are walked twice before they are timed */
    QUICK_WARM_LAP_NODES = 1 << 18, /* longer ones once, up to here: 1 GiB of base pages */
    FULL_WARM_LAP_NODES = 1 << 22,
    WARM_ACCESSES = 8192, /* the longest: their first nodes were linked so long ago that no cache holds them */
    DISTURBED_TRIES = 4,
};

#define GIB (1ull << 30)
#define MIB (1ull << 20)

/* The rest of the time that the rounds may plan with: linking and faults vary. */
#define PLAN_SHARE 0.9
/* Part of the time that may go into mapping and touching. */
#define MAP_SHARE 0.4

/* --- one cell ------------------------------------------------------------------------------------------------- */

/* Linking visits the nodes in the order of the cycle, so the walk starts where a lap would be the longest ago. Caches
 * that other guests share lose lines with time as well, so a lap at the pace of the walk is worth its time where the
 * lines could stay. */
static uint64_t warm_accesses(const struct latency_plan *plan, uint64_t nodes)
{
    if (nodes <= WARM_LAPS_NODES) {
        return 2 * nodes;
    }
    return nodes <= plan->warm_lap_nodes ? nodes : WARM_ACCESSES;
}

static void measure_cell(struct latency_cell *cell, const struct latency_plan *plan, unsigned round, void *start,
                         uint64_t nodes)
{
    struct chase chase = {start};
    double medians[LATENCY_SAMPLES_MAX];
    size_t kept = 0;

    chase_walk(&chase, warm_accesses(plan, nodes));
    if (cell->accesses == 0) {
        cell->accesses = chase_batch_accesses(&chase, plan->batch_seconds);
    }
    for (unsigned batch = 0; batch < plan->batches; batch++) {
        bool quiet = false;
        double ns = NAN;

        for (unsigned try = 0; try < DISTURBED_TRIES && !quiet && !signals_stop_requested(); try++) {
            quiet = chase_time_batch(&chase, cell->accesses, &ns);
            cell->dropped += quiet ? 0 : 1;
        }
        if (quiet && cell->count < LATENCY_SAMPLES_MAX) {
            cell->samples[cell->count++] = ns;
            medians[kept++] = ns;
        }
    }
    cell->round_ns[round] = statistics_median(medians, kept);
}

/* --- rounds ----------------------------------------------------------------------------------------------------- */

struct work {
    const struct session *session;
    struct latency_plan plan;
    struct latency_series *series;
    size_t series_count;
    struct latency_result *result;
    struct arena arenas[SESSION_BACKINGS_MAX]; /* base NULL = not mapped */
    uint64_t shared_bytes;                     /* footprints up to this are measured with all backings mapped at once */
    uint64_t start_ns;
    double budget_seconds;
};

static double seconds_since(uint64_t start_ns)
{
    return (double)(timing_now_ns() - start_ns) / 1e9;
}

/* What a mapping may take of the first round. Memory that the host of a guest has not given yet is slow to touch: such
 * a backing gets smaller footprints, instead of leaving no time for any. */
static double touch_seconds(const struct work *work, const struct latency_series *series)
{
    return isnan(series->granted_fraction)
               ? work->budget_seconds / (double)(work->plan.rounds * (work->series_count + 1))
               : INFINITY;
}

/* Maps a fresh arena for a series. A backing that cannot be had is lost with its reason, the others go on; -1 = stop.
 */
static int open_arena(struct work *work, size_t index, uint64_t bytes, struct verdict *verdict)
{
    struct latency_series *const series = &work->series[index];
    struct arena *const arena = &work->arenas[index];
    struct verdict found;

    if (series->bytes == 0) {
        return 0;
    }
    if (arena_open_within(arena, &series->backing, (size_t)bytes, work->session->options->numa_node,
                          touch_seconds(work, series), &found) != 0) {
        if (found.status == STATUS_STOPPED) {
            *verdict = found;
            return -1;
        }
        series->verdict = found;
        series->bytes = 0;
        return 0;
    }
    if (found.status != STATUS_OK) {
        series->verdict = found;
    }
    while (arena->bytes < bytes && series->bytes > arena->bytes) {
        series->bytes /= 2;
        (void)snprintf(series->verdict.reason, sizeof(series->verdict.reason),
                       "touching this memory takes long here: larger footprints were left out");
    }
    if (isnan(series->granted_fraction) || arena->granted_fraction < series->granted_fraction) {
        series->granted_fraction = arena->granted_fraction;
    }
    return 0;
}

static void close_arenas(struct work *work)
{
    uint64_t bytes = 0;

    for (size_t index = 0; index < work->series_count; index++) {
        bytes += work->arenas[index].base != NULL ? work->arenas[index].bytes : 0;
        arena_close(&work->arenas[index]);
    }
    if (bytes > work->result->peak_mapped_bytes) {
        work->result->peak_mapped_bytes = bytes;
    }
}

/* One layout and footprint on every backing that is mapped, in random order: the pairs lie milliseconds apart. */
static int measure_point(struct work *work, enum latency_layout layout, size_t point, unsigned round, struct rng *rng,
                         struct verdict *verdict)
{
    const uint64_t footprint = work->plan.footprints[point];
    const uint64_t base_page_bytes = work->session->base_page_bytes;
    const uint64_t seed = rng_mix(work->session->options->seed * 64 + round) ^ rng_mix((uint64_t)layout * 1000 + point);
    uint32_t order[SESSION_BACKINGS_MAX];

    for (uint32_t index = 0; index < work->series_count; index++) {
        order[index] = index;
    }
    chase_shuffle(order, work->series_count, rng);
    for (size_t step = 0; step < work->series_count; step++) {
        struct latency_series *const series = &work->series[order[step]];
        const struct arena *const arena = &work->arenas[order[step]];

        if (session_must_stop(work->session, verdict)) {
            return -1;
        }
        if (arena->base != NULL && latency_plan_has(&work->plan, layout, point, series->bytes)) {
            void *const start = latency_link(arena->base, footprint, base_page_bytes, layout, seed);

            measure_cell(&series->cells[layout][point], &work->plan, round, start,
                         footprint / (layout == LAYOUT_RANDOM_64B ? LINE_BYTES : base_page_bytes));
        }
    }
    return 0;
}

/* True when the first round has used more than its share of the section's time. */
static bool is_too_slow(const struct work *work)
{
    return seconds_since(work->start_ns) > PLAN_SHARE * work->budget_seconds / work->plan.rounds;
}

/* Leaves out the footprints from `point` on: a few rounds of less are a measurement, one round of all is none. */
static void cut_plan(struct work *work, size_t point)
{
    const uint64_t largest = work->plan.footprints[point - 1];

    work->plan.footprint_count = point;
    work->shared_bytes = work->shared_bytes < largest ? work->shared_bytes : largest;
    for (size_t index = 0; index < work->series_count; index++) {
        struct latency_series *const series = &work->series[index];

        series->bytes = series->bytes < largest ? series->bytes : largest;
    }
}

/* The points of a range of footprints, in random order. */
static int measure_points(struct work *work, uint64_t above_bytes, uint64_t up_to_bytes, unsigned round,
                          struct rng *rng, struct verdict *verdict)
{
    uint32_t order[LAYOUT_COUNT * LATENCY_POINTS_MAX];
    const struct latency_plan *const plan = &work->plan;
    size_t count = 0;

    for (uint32_t slot = 0; slot < LAYOUT_COUNT * plan->footprint_count; slot++) {
        const uint64_t footprint = plan->footprints[slot / LAYOUT_COUNT];

        if (footprint > above_bytes && footprint <= up_to_bytes) {
            order[count++] = slot;
        }
    }
    /* The first round ascends, so that it can be cut short where it turns out too long. */
    if (round > 0) {
        chase_shuffle(order, count, rng);
    }
    for (size_t step = 0; step < count; step++) {
        session_report_progress(work->session, ((double)round + (double)step / (double)count) / (double)plan->rounds);
        const size_t point = order[step] / LAYOUT_COUNT;

        if (round == 0 && point >= POINTS_MIN && is_too_slow(work)) {
            cut_plan(work, point);
            return 0;
        }
        if (measure_point(work, order[step] % LAYOUT_COUNT, point, round, rng, verdict) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Fresh mappings for every round. What fits is mapped at once; larger footprints one backing after the other. */
static int measure_round(struct work *work, unsigned round, struct verdict *verdict)
{
    struct rng rng = rng_new(work->session->options->seed, 0x1a7e0000u + round);
    const uint64_t largest = work->plan.footprints[work->plan.footprint_count - 1];
    const size_t first = (size_t)rng_below(&rng, work->series_count);
    int status = 0;

    for (size_t index = 0; index < work->series_count && status == 0; index++) {
        const uint64_t bytes = work->series[index].bytes;

        status = open_arena(work, index, bytes < work->shared_bytes ? bytes : work->shared_bytes, verdict);
    }
    if (status == 0) {
        status = measure_points(work, 0, work->shared_bytes, round, &rng, verdict);
    }
    close_arenas(work);
    for (size_t step = 0; step < work->series_count && largest > work->shared_bytes && status == 0; step++) {
        const size_t index = (first + step) % work->series_count;

        if (work->series[index].bytes > work->shared_bytes) {
            status = open_arena(work, index, work->series[index].bytes, verdict);
            if (status == 0) {
                status = measure_points(work, work->shared_bytes, largest, round, &rng, verdict);
            }
            close_arenas(work);
        }
    }
    return status;
}

/* At least the planned rounds; then more while a paired difference is uncertain and the time allows another one. */
static int measure_rounds(struct work *work, struct verdict *verdict)
{
    const unsigned planned = work->plan.rounds;

    for (unsigned round = 0; round < LATENCY_ROUNDS_MAX; round++) {
        const uint64_t start_ns = timing_now_ns();

        work->plan.rounds = round < planned ? planned : round + 1;
        if (measure_round(work, round, verdict) != 0) {
            return -1;
        }
        if (round + 1 >= planned &&
            (latency_is_narrow(&work->plan, work->series, work->series_count) ||
             seconds_since(start_ns) > PLAN_SHARE * deadline_remaining_seconds(work->session->deadline))) {
            break;
        }
    }
    return 0;
}

/* --- plan ------------------------------------------------------------------------------------------------------- */

static void make_plan(const struct session *session, struct latency_plan *plan)
{
    const bool full = session->options->profile == PROFILE_FULL;
    const uint64_t largest = full ? 4 * GIB : GIB;

    *plan = (struct latency_plan){
        .layout_max_bytes = {largest, full ? 4 * GIB : 128 * MIB, largest},
        .layout_every = {1, full ? 1 : 2, full ? 2 : 4},
        .warm_lap_nodes = full ? FULL_WARM_LAP_NODES : QUICK_WARM_LAP_NODES,
        .rounds = full ? 7 : 5,
        .batches = 3,
        .batch_seconds = full ? 2e-3 : 1.2e-3,
    };
    for (uint64_t bytes = FOOTPRINT_MIN_BYTES; bytes <= largest && bytes <= session->memory_bytes; bytes *= 2) {
        plan->footprints[plan->footprint_count++] = bytes;
    }
}

/* How much of this backing there is: all that is planned, or what the pool has free. */
static void size_series(const struct session *session, const struct latency_plan *plan, struct latency_series *series)
{
    const uint64_t largest = plan->footprints[plan->footprint_count - 1];
    const struct backing *const backing = &series->backing;
    const int64_t free_pages = backing_free_pages(backing->page_bytes, session->options->numa_node);

    series->bytes = largest;
    series->granted_fraction = NAN;
    series->verdict = (struct verdict){.status = STATUS_OK};
    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (size_t point = 0; point < LATENCY_POINTS_MAX; point++) {
            for (unsigned round = 0; round < LATENCY_ROUNDS_MAX; round++) {
                series->cells[layout][point].round_ns[round] = NAN;
            }
        }
    }
    if (backing->kind != BACKING_HUGETLB) {
        return;
    }
    if (free_pages <= 0) {
        series->bytes = 0;
        verdict_set(&series->verdict, STATUS_NO_FREE_HUGEPAGES, "the pool of %s pages has no free page", backing->name);
    } else if (backing->page_bytes > session->memory_bytes) {
        series->bytes = 0;
        verdict_set(&series->verdict, STATUS_MEMORY_LIMIT, "one %s page is more than the %llu MiB that may be used",
                    backing->name, (unsigned long long)(session->memory_bytes / MIB));
    } else if ((uint64_t)free_pages * backing->page_bytes < largest) {
        series->bytes = (uint64_t)free_pages * backing->page_bytes;
        (void)snprintf(series->verdict.reason, sizeof(series->verdict.reason),
                       "the pool has %lld free pages: larger footprints were left out", (long long)free_pages);
    }
}

/* Seconds to map and touch a byte of base pages, from a small arena; 0 when that failed. */
static double touch_seconds_per_byte(const struct session *session, const struct backing *base)
{
    struct verdict verdict;
    struct arena arena;

    if (arena_open(&arena, base, PROBE_BYTES, session->options->numa_node, &verdict) != 0) {
        return 0;
    }
    const double seconds = arena.touch_seconds / (double)arena.bytes;

    arena_close(&arena);
    return seconds;
}

/* Largest footprint that all backings can have at the same time, and that leaves most of the time for measuring. */
static uint64_t shared_footprint(const struct session *session, const struct latency_plan *plan,
                                 const struct backing *base, size_t backings)
{
    const double per_byte = touch_seconds_per_byte(session, base) * (double)(backings * plan->rounds);
    const double allowed = MAP_SHARE * deadline_remaining_seconds(session->deadline);
    uint64_t bytes = FOOTPRINT_MIN_BYTES;

    while (2 * bytes * backings <= session->memory_bytes && 2 * bytes <= GIB &&
           per_byte * 2 * (double)bytes <= allowed) {
        bytes *= 2;
    }
    return bytes < plan->footprints[plan->footprint_count - 1] ? bytes : plan->footprints[plan->footprint_count - 1];
}

int latency_measure_curves(const struct session *session, struct latency_result *result)
{
    struct backing backings[SESSION_BACKINGS_MAX];
    struct work work = {.session = session, .result = result};

    *result = (struct latency_result){.pressure.verdict = {STATUS_SKIPPED, "the measurement did not come to it"}};
    make_plan(session, &work.plan);
    work.series_count = session_list_backings(session, backings);
    work.series = calloc(work.series_count, sizeof(*work.series));
    if (work.series == NULL || work.plan.footprint_count == 0) {
        free(work.series);
        verdict_set(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
        return work.series == NULL ? -1 : 0;
    }
    for (size_t index = 0; index < work.series_count; index++) {
        work.series[index].backing = backings[index];
        size_series(session, &work.plan, &work.series[index]);
    }
    work.start_ns = timing_now_ns();
    work.budget_seconds = deadline_remaining_seconds(session->deadline);
    work.shared_bytes = shared_footprint(session, &work.plan, &backings[0], work.series_count);
    if (measure_rounds(&work, &result->verdict) == 0) {
        result->verdict.status = STATUS_OK;
        session_report_progress(session, 1.0);
    }
    const int status = latency_collect(&work.plan, work.series, work.series_count, result);

    free(work.series);
    return status;
}
