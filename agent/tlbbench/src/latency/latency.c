/* SPDX-License-Identifier: Apache-2.0 */
#include "latency/latency.h"

#include "base/clock.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "base/verdict.h"
#include "engine/tlb_flush.h"
#include "latency/series.h"
#include "machine/caches.h"
#include "memory/arena.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 64,
    POINTS_MIN = 4,             /* of every plan, however slow the machine is */
    PLACED_NODES_MAX = 1 << 14, /* cycles up to this length are linked anew, at another place, for every batch */
    QUICK_SLOW_POINTS = 10, /* of a plan at most: cycles that a last-level cache may hold or not take laps to settle */
    FULL_SLOW_POINTS = 24,
};

/* The rest of the time that the rounds may plan with: linking and faults vary. */
#define PLAN_SHARE 0.9
/* Part of the time that may go into walking cycles until they are steady. */
#define WARM_SHARE 0.25
/* At most, of a round's time, for mapping what it measures. */
#define MAP_SHARE 0.4
/* Part of the whole time that one mapping may take where its footprint was requested. */
#define ASKED_MAP_SHARE 0.25

/* --- rounds ----------------------------------------------------------------------------------------------------- */

struct work {
    const struct session *session;
    const struct latency_request *request;
    struct latency_plan plan;
    struct latency_series *series;
    size_t series_count;
    struct latency_result *result;
    struct arena arenas[SESSION_BACKINGS_MAX]; /* base NULL = not mapped */
    uint64_t cache_bytes;                      /* of the last level */
    uint64_t shared_bytes;                     /* footprints up to this are measured with all backings mapped at once */
    uint64_t start_ns;                         /* of the first round, its memory mapped */
    double round_seconds;                      /* that the first round may measure for */
    double budget_seconds;                     /* of all rounds */
};

static double seconds_since(uint64_t start_ns)
{
    return (double)(clock_now_ns() - start_ns) / 1e9;
}

/* What a mapping may take of the first round. Memory that the host of a guest has not given yet is slow to touch: such
 * a backing gets smaller footprints, instead of leaving no time for any. */
static double touch_seconds(const struct work *work, const struct latency_series *series)
{
    if (work->request->footprint_count > 0)
        return ASKED_MAP_SHARE * work->budget_seconds;
    return isnan(series->granted_fraction)
               ? work->budget_seconds /
                     (double)(work->plan.rounds * (latency_live_series(work->series, work->series_count) + 1))
               : INFINITY;
}

static uint64_t mapped_bytes(const struct work *work)
{
    uint64_t bytes = 0;

    for (size_t index = 0; index < work->series_count; index++)
        bytes += work->arenas[index].base != NULL ? work->arenas[index].bytes : 0;
    return bytes;
}

/* Maps a fresh arena for a series. A backing that is not available is lost with its reason, the others go on; -1 =
 * stop.
 */
static int open_arena(struct work *work, size_t index, uint64_t bytes, struct verdict *verdict)
{
    struct latency_series *series = &work->series[index];
    struct arena *arena = &work->arenas[index];
    struct verdict found;

    if (series->bytes == 0)
        return 0;
    if (!session_allows(work->session, &series->backing, mapped_bytes(work),
                        latency_round_up(bytes, series->backing.page_bytes), &series->verdict)) {
        series->bytes = 0;
        return 0;
    }
    if (arena_open_within(arena, &series->backing, (size_t)bytes, work->session->numa_node, touch_seconds(work, series),
                          &found) != 0) {
        if (found.status == STATUS_STOPPED) {
            *verdict = found;
            return -1;
        }
        series->verdict = found;
        series->bytes = 0;
        return 0;
    }
    if (found.status != STATUS_OK)
        series->verdict = found;
    while (arena->bytes < bytes && series->bytes > arena->bytes) {
        series->bytes /= 2;
        (void)snprintf(series->verdict.reason, sizeof(series->verdict.reason),
                       "touching memory is slow here: larger footprints were left out");
    }
    if (isnan(series->granted_fraction) || arena->granted_fraction < series->granted_fraction)
        series->granted_fraction = arena->granted_fraction;
    return 0;
}

static void close_arenas(struct work *work)
{
    uint64_t bytes = mapped_bytes(work);

    for (size_t index = 0; index < work->series_count; index++)
        arena_close(&work->arenas[index]);
    if (bytes > work->result->peak_mapped_bytes)
        work->result->peak_mapped_bytes = bytes;
}

/* Places of `footprint` bytes that every backing which has the point can offer. */
static uint64_t common_places(const struct work *work, enum latency_curve layout, size_t point)
{
    uint64_t footprint = work->plan.footprints[point];
    uint64_t bytes = footprint <= work->shared_bytes ? work->shared_bytes : UINT64_MAX;

    for (size_t index = 0; index < work->series_count; index++) {
        const struct latency_series *series = &work->series[index];

        if (latency_plan_has(&work->plan, layout, point, series->bytes) && series->bytes < bytes)
            bytes = series->bytes;
    }
    return bytes / footprint;
}

/* Times one placement of a point on every backing that is mapped, in random order: the pairs lie milliseconds apart. */
static int measure_placement(struct work *work, enum latency_curve layout, size_t point, unsigned batches,
                             uint64_t seed, struct rng *rng, struct verdict *verdict)
{
    uint64_t footprint = work->plan.footprints[point];
    uint64_t node_bytes = layout == LAYOUT_RANDOM_64B ? LINE_BYTES : work->session->base_page_bytes;
    uint64_t offset = seed % common_places(work, layout, point) * footprint;
    uint32_t order[SESSION_BACKINGS_MAX];

    for (uint32_t index = 0; index < work->series_count; index++)
        order[index] = index;
    permutation_shuffle(order, work->series_count, rng);
    for (size_t step = 0; step < work->series_count; step++) {
        struct latency_series *series = &work->series[order[step]];
        const struct arena *arena = &work->arenas[order[step]];

        if (session_must_stop(work->session, verdict))
            return -1;
        if (arena->base != NULL && latency_plan_has(&work->plan, layout, point, series->bytes)) {
            char *base = arena->base + offset;
            uint64_t nodes = footprint / node_bytes;

            tlb_flush();
            void *start = latency_link(base, footprint, work->session->base_page_bytes, layout, seed);

            /* A cycle within a shared cache has two steady states: fast laps keep its lines, in slow ones the
             * neighbours replace them before they are used again. Like any program that runs for long it starts in the
             * cache, and leaves it only where it cannot stay. */
            if (nodes * LINE_BYTES <= work->cache_bytes)
                latency_visit(base, footprint, work->session->base_page_bytes, layout, seed);
            latency_measure_cell(&series->cells[layout][point], &work->plan, batches, start, nodes);
        }
    }
    return 0;
}

/* One layout and footprint. Which physical pages a short cycle got decides which cache sets its lines share, and freed
 * pages come back in the next round: so its place in the arena changes, and with every batch. */
static int measure_point(struct work *work, enum latency_curve layout, size_t point, unsigned round, struct rng *rng,
                         struct verdict *verdict)
{
    uint64_t node_bytes = layout == LAYOUT_RANDOM_64B ? LINE_BYTES : work->session->base_page_bytes;
    bool is_short = work->plan.footprints[point] / node_bytes <= PLACED_NODES_MAX;
    unsigned placements = is_short ? work->plan.batches : 1;
    size_t first[SESSION_BACKINGS_MAX] = {0};
    int status = 0;

    for (size_t index = 0; index < work->series_count; index++)
        first[index] = work->series[index].cells[layout][point].count;
    for (unsigned placement = 0; placement < placements && status == 0; placement++) {
        uint64_t seed =
            rng_mix(work->session->seed * 64 + round) ^ rng_mix(((uint64_t)layout * 1000 + point) * 64 + placement);

        status = measure_placement(work, layout, point, work->plan.batches / placements, seed, rng, verdict);
    }
    for (size_t index = 0; index < work->series_count; index++)
        latency_end_round(&work->series[index].cells[layout][point], first[index], round);
    return status;
}

/* Called when the memory of the first round is mapped. That takes longest the first time, when a hypervisor may have to
 * find the memory, too; so it is not held against the round. */
static void start_clock(struct work *work, double map_seconds)
{
    double left = PLAN_SHARE * deadline_remaining_seconds(work->session->deadline) / work->plan.rounds;

    work->start_ns = clock_now_ns();
    work->round_seconds = left - fmin(map_seconds, MAP_SHARE * left);
}

/* True when the first round has measured for longer than its share of the section's time. */
static bool is_too_slow(const struct work *work)
{
    return seconds_since(work->start_ns) > work->round_seconds;
}

/* Leaves out the footprints from `point` on: a few rounds of less are a measurement, one round of all is none. */
static void cut_plan(struct work *work, size_t point)
{
    uint64_t largest = work->plan.footprints[point - 1];

    (void)snprintf(work->result->verdict.reason, sizeof(work->result->verdict.reason),
                   "the time limit was reached at %llu MiB: larger footprints were left out",
                   (unsigned long long)(largest >> 20));
    work->plan.footprint_count = point;
    work->shared_bytes = work->shared_bytes < largest ? work->shared_bytes : largest;
    for (size_t index = 0; index < work->series_count; index++) {
        struct latency_series *series = &work->series[index];

        series->bytes = series->bytes < largest ? series->bytes : largest;
    }
}

/* The points of a range of footprints, in random order. */
static int measure_points(struct work *work, uint64_t above_bytes, uint64_t up_to_bytes, unsigned round,
                          struct rng *rng, struct verdict *verdict)
{
    uint32_t order[LAYOUT_COUNT * LATENCY_POINTS_MAX];
    const struct latency_plan *plan = &work->plan;
    size_t count = 0;

    for (uint32_t slot = 0; slot < LAYOUT_COUNT * plan->footprint_count; slot++) {
        uint64_t footprint = plan->footprints[slot / LAYOUT_COUNT];

        if (footprint > above_bytes && footprint <= up_to_bytes)
            order[count++] = slot;
    }
    /* The first round ascends, so that it can be cut short where it turns out too long. */
    if (round > 0)
        permutation_shuffle(order, count, rng);
    for (size_t step = 0; step < count; step++) {
        session_report_progress(work->session, ((double)round + (double)step / (double)count) / (double)plan->rounds);
        size_t point = order[step] / LAYOUT_COUNT;

        if (round == 0 && point >= POINTS_MIN && is_too_slow(work)) {
            cut_plan(work, point);
            return 0;
        }
        if (measure_point(work, order[step] % LAYOUT_COUNT, point, round, rng, verdict) != 0)
            return -1;
    }
    return 0;
}

/* Fresh mappings for every round. What fits is mapped at once; larger footprints one backing after the other. */
static int measure_round(struct work *work, unsigned round, struct verdict *verdict)
{
    struct rng rng = rng_new(work->session->seed, 0x1a7e0000u + round);
    uint64_t largest = work->plan.footprints[work->plan.footprint_count - 1];
    size_t first = (size_t)rng_below(&rng, work->series_count);
    uint64_t start_ns = clock_now_ns();
    bool has_shared = work->plan.footprints[0] <= work->shared_bytes;
    int status = 0;

    for (size_t index = 0; has_shared && index < work->series_count && status == 0; index++) {
        uint64_t bytes = work->series[index].bytes;

        status = open_arena(work, index, bytes < work->shared_bytes ? bytes : work->shared_bytes, verdict);
    }
    if (round == 0)
        start_clock(work, seconds_since(start_ns));
    if (status == 0)
        status = measure_points(work, 0, work->shared_bytes, round, &rng, verdict);
    close_arenas(work);
    for (size_t step = 0; step < work->series_count && largest > work->shared_bytes && status == 0; step++) {
        size_t index = (first + step) % work->series_count;

        if (work->series[index].bytes > work->shared_bytes) {
            status = open_arena(work, index, work->series[index].bytes, verdict);
            if (status == 0)
                status = measure_points(work, work->shared_bytes, largest, round, &rng, verdict);
            close_arenas(work);
        }
    }
    return status;
}

/* The planned rounds, or as many whole ones as the time allows; then more while a paired difference is uncertain. */
static int measure_rounds(struct work *work, struct verdict *verdict)
{
    unsigned planned = work->plan.rounds;

    for (unsigned round = 0; round < LATENCY_ROUNDS_MAX; round++) {
        uint64_t start_ns = clock_now_ns();

        work->plan.rounds = round < planned ? planned : round + 1;
        if (measure_round(work, round, verdict) != 0)
            return -1;
        bool is_last = seconds_since(start_ns) > PLAN_SHARE * deadline_remaining_seconds(work->session->deadline);

        if (round + 1 < planned && is_last) {
            work->plan.rounds = round + 1;
            (void)snprintf(verdict->reason, sizeof(verdict->reason), "the time limit allowed %u of %u rounds",
                           round + 1, planned);
        }
        if (is_last || (round + 1 >= planned && latency_is_narrow(&work->plan, work->series, work->series_count)))
            break;
    }
    return 0;
}

/* Points of the plan that may take long to settle. */
static unsigned slow_points(const struct work *work)
{
    unsigned most = work->session->full ? FULL_SLOW_POINTS : QUICK_SLOW_POINTS;
    unsigned count = 0;

    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
        for (size_t point = 0; point < work->plan.footprint_count; point++)
            count += latency_plan_has(&work->plan, layout, point, UINT64_MAX) ? 1 : 0;
    return count == 0 ? 1 : count < most ? count : most;
}

int latency_measure(const struct session *session, const struct latency_request *request, struct latency_result *result)
{
    struct work work = {.session = session, .request = request, .result = result};

    *result = (struct latency_result){0};
    latency_make_plan(session, request, &work.plan);
    work.series_count = session->backing_count;
    work.series = calloc(work.series_count, sizeof(*work.series));
    if (work.series == NULL) {
        verdict_set(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    if (work.plan.left_out_bytes > 0) {
        verdict_set(
            &result->verdict, STATUS_MEMORY_LIMIT, "footprints from %llu MiB on exceed the memory budget of %llu MiB",
            (unsigned long long)(work.plan.left_out_bytes >> 20), (unsigned long long)(session->memory_bytes >> 20));
    }
    if (work.plan.footprint_count == 0) {
        free(work.series);
        return 0;
    }
    for (size_t index = 0; index < work.series_count; index++) {
        work.series[index].backing = session->backings[index];
        latency_size_series(session, &work.plan, &work.series[index]);
    }
    work.cache_bytes = cache_last_level_bytes();
    work.budget_seconds = deadline_remaining_seconds(session->deadline);
    work.plan.warm_seconds = WARM_SHARE * work.budget_seconds / work.plan.rounds / slow_points(&work) /
                             (double)latency_live_series(work.series, work.series_count);
    work.shared_bytes = latency_shared_footprint(session, &work.plan, work.series, work.series_count);
    if (measure_rounds(&work, &result->verdict) == 0)
        session_report_progress(session, 1.0);
    int status = latency_collect(&work.plan, work.series, work.series_count, result);

    free(work.series);
    return status;
}
