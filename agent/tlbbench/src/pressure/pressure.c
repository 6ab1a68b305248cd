/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure/probe.h"
#include "pressure/series.h"

/* Shares of the time were set by hand; the budgets in docs/method-results.md hold with them. */
/* Part of the time left that may go into touching one mapping. Memory that the host has not given yet takes ten times
 * as long as other memory, and only touching it tells. */
#define MAP_SHARE 0.35
/* Part of a batch's time that goes into warming. */
#define WARM_SHARE 0.4
/* The rest of the time that the batches may plan with. */
#define PLAN_SHARE 0.9
/* Below this the large pages are too few to be named after. */
#define GRANTED_MIN 0.95

struct pressure_run {
    const struct session *session;
    struct pressure_plan plan;
    struct backing base;
    struct pressure_series *series; /* the large pages */
    size_t series_count;
    struct counter_scale scale;
    struct probe_region region;
    struct arena region_arena;
    struct arena base_arena;
    double weight_whole, weight_done; /* of all batches */
    double map_seconds;               /* of one mapping of everything */
    unsigned mappings_left;           /* after the one that is measured */
    struct pressure_result *result;
};

static double touch_seconds(const struct pressure_run *run)
{
    return MAP_SHARE * deadline_remaining_seconds(run->session->deadline) / run->plan.mappings;
}

/* The largest footprint up to `planned` that the arena holds; 0 = none. */
static uint64_t footprint_in(const struct arena *arena, uint64_t planned)
{
    uint64_t largest = 0;

    for (size_t index = 0; index < PRESSURE_FOOTPRINTS && pressure_footprint(index) <= planned; index++)
        largest = pressure_footprint(index) <= arena->bytes ? pressure_footprint(index) : largest;
    return largest;
}

/* Weighs all batches anew; false where there are none. */
static bool weigh(struct pressure_run *run)
{
    double weight = 0; /* of one mapping and pass */

    for (size_t index = 0; index < run->series_count; index++) {
        for (size_t slot = 0; slot < PRESSURE_SLOTS; slot++) {
            size_t depth = slot % PRESSURE_DEPTHS;
            bool has = pressure_plan_has(&run->plan, &run->series[index], slot / PRESSURE_DEPTHS, depth);

            weight += has ? 2 * PRESSURE_DEPTH[depth].weight : 0;
        }
    }
    run->weight_whole = weight * run->plan.passes * run->plan.mappings;
    return weight > 0;
}

/* What it will take to map the page sizes that this mapping has not come to: as long a byte as base pages took, and at
 * most what touch_seconds() will give them. */
static double pending_seconds(const struct pressure_run *run)
{
    double per_byte = run->base_arena.bytes > 0 ? run->base_arena.touch_seconds / (double)run->base_arena.bytes : 0;
    uint64_t bytes = 0;

    for (size_t index = 0; index < run->series_count; index++) {
        const struct pressure_series *series = &run->series[index];

        bytes += series->is_pending && series->bytes > 0 ? series->bytes + series->backing.page_bytes : 0;
    }
    return fmin(per_byte * (double)bytes, MAP_SHARE * deadline_remaining_seconds(run->session->deadline));
}

/* Time for a batch of weight 1: what is left, less the mappings to come. */
static double batch_seconds(const struct pressure_run *run)
{
    double seconds = deadline_remaining_seconds(run->session->deadline) - pending_seconds(run) -
                     run->map_seconds * run->mappings_left;
    double weight = run->weight_whole - run->weight_done;

    return seconds > 0 && weight > 0 ? PLAN_SHARE * seconds / weight : 0;
}

struct point {
    size_t footprint, depth;
};

static bool measure_batch(struct pressure_run *run, const struct arena *arena, struct point point, uint64_t seed,
                          uint64_t step, struct probe_time *time)
{
    const struct pressure_depth *depth = &PRESSURE_DEPTH[point.depth];
    double seconds = depth->weight * batch_seconds(run);
    struct probe probe = {
        .base = arena->base,
        .lines = pressure_footprint(point.footprint) / CACHE_LINE_BYTES,
        .region = &run->region,
        .lines_between = depth->lines_between,
        .wait_ticks = (uint64_t)(depth->wait_ns * run->scale.ticks_per_ns),
        .access = rng_new(seed, 0),
        .between = rng_new(seed, step), /* other lines than the batch before, whose lines a cache may still hold */
    };

    probe_warm_up(&probe, run->plan.warm_lines, WARM_SHARE * seconds);
    run->weight_done += depth->weight;
    return probe_measure(&probe, &run->scale, run->plan.accesses, (1 - WARM_SHARE) * seconds, time);
}

/* Base pages and large pages back to back, in turns which of them comes first. */
static int measure_pair(struct pressure_run *run, struct pressure_series *series, const struct arena *arena,
                        struct point point, unsigned turn, struct verdict *verdict)
{
    struct pressure_cell *cell = &series->cells[point.footprint][point.depth];
    uint64_t seed =
        rng_mix(run->session->seed * 1024 + turn) ^ rng_mix(0x9e55u + point.footprint * PRESSURE_DEPTHS + point.depth);
    struct probe_time times[2]; /* base, large */
    bool quiet = true;

    for (unsigned step = 0; step < 2; step++) {
        unsigned side = (step + turn) % 2;

        if (session_must_stop(run->session, verdict))
            return -1;
        quiet = measure_batch(run, side == 0 ? &run->base_arena : arena, point, seed, step + 1, &times[side]) && quiet;
    }
    if (quiet && cell->pairs < PRESSURE_PAIRS_MAX) {
        cell->mapping[cell->pairs] = (unsigned char)(turn / run->plan.passes);
        cell->base_ns[cell->pairs] = times[0].ns;
        cell->ns[cell->pairs] = times[1].ns;
        cell->period_ns[cell->pairs++] = (times[0].period_ns + times[1].period_ns) / 2;
    } else {
        cell->dropped++;
    }
    session_report_progress(run->session, run->weight_done / run->weight_whole);
    return 0;
}

static int measure_pass(struct pressure_run *run, struct pressure_series *series, const struct arena *arena,
                        unsigned turn, struct verdict *verdict)
{
    uint32_t order[PRESSURE_SLOTS];
    struct rng rng = rng_new(run->session->seed, 0x9e550000u + turn);
    size_t count = 0;

    for (uint32_t slot = 0; slot < PRESSURE_SLOTS; slot++)
        if (pressure_plan_has(&run->plan, series, slot / PRESSURE_DEPTHS, slot % PRESSURE_DEPTHS))
            order[count++] = slot;
    permutation_shuffle(order, count, &rng);
    for (size_t step = 0; step < count; step++) {
        struct point point = {order[step] / PRESSURE_DEPTHS, order[step] % PRESSURE_DEPTHS};

        if (measure_pair(run, series, arena, point, turn, verdict) != 0)
            return -1;
    }
    return 0;
}

static void lose_series(struct pressure_run *run, struct pressure_series *series, const struct verdict *verdict)
{
    series->verdict = *verdict;
    series->bytes = 0;
    (void)weigh(run);
}

static struct arena_request request_arena(const struct pressure_run *run, const struct backing *backing, uint64_t bytes)
{
    uint64_t mapped = (run->base_arena.base != NULL ? run->base_arena.bytes : 0) +
                      (run->region_arena.base != NULL ? run->region_arena.bytes : 0);
    struct arena_request request = session_arena(run->session, backing, bytes, mapped);

    request.may_be_cut = true;
    request.seconds = touch_seconds(run);
    return request;
}

/* A backing that is not available is lost with its reason, the others go on; -1 = stop. */
static int measure_series(struct pressure_run *run, struct pressure_series *series, unsigned mapping,
                          struct verdict *verdict)
{
    struct arena_request request = request_arena(run, &series->backing, series->bytes);
    struct verdict found;
    struct arena arena;
    int status = 0;

    series->is_pending = false;
    if (arena_open(&arena, &request, &found) != 0) {
        lose_series(run, series, &found);
        *verdict = found.status == STATUS_STOPPED ? found : *verdict;
        return found.status == STATUS_STOPPED ? -1 : 0;
    }
    series->bytes = footprint_in(&arena, series->bytes);
    run->map_seconds += mapping == 0 ? arena.touch_seconds : 0;
    note_peak(&run->result->peak_mapped_bytes, run->region_arena.bytes + run->base_arena.bytes + arena.bytes);
    (void)weigh(run);
    if (found.status != STATUS_OK && arena.granted_fraction < GRANTED_MIN)
        lose_series(run, series, &found);
    for (unsigned pass = 0; pass < run->plan.passes && series->bytes > 0 && status == 0; pass++)
        status = measure_pass(run, series, &arena, mapping * run->plan.passes + pass, verdict);
    arena_close(&arena);
    return status;
}

/* No footprint is larger than the base pages that there was time to touch. */
static void limit_to_base(struct pressure_run *run, unsigned mapping)
{
    run->plan.base_bytes = footprint_in(&run->base_arena, run->plan.base_bytes);
    for (size_t index = 0; index < run->series_count; index++) {
        struct pressure_series *series = &run->series[index];

        series->bytes = series->bytes < run->plan.base_bytes ? series->bytes : run->plan.base_bytes;
    }
    run->map_seconds += mapping == 0 ? run->base_arena.touch_seconds : 0;
}

static int measure_mapping(struct pressure_run *run, unsigned mapping, struct verdict *verdict)
{
    struct arena_request request = request_arena(run, &run->base, run->plan.base_bytes);
    int status = 0;

    run->mappings_left--;
    if (arena_open(&run->base_arena, &request, verdict) != 0)
        return -1;
    limit_to_base(run, mapping);
    for (size_t index = 0; index < run->series_count; index++)
        run->series[index].is_pending = true;
    for (size_t step = 0; step < run->series_count && status == 0; step++) {
        struct pressure_series *series = &run->series[(step + mapping) % run->series_count];

        if (session_must_stop(run->session, verdict))
            status = -1;
        else if (series->bytes > 0)
            status = measure_series(run, series, mapping, verdict);
    }
    arena_close(&run->base_arena);
    return status;
}

static void size_series(const struct pressure_run *run, struct pressure_series *series)
{
    const struct session *session = run->session;
    uint64_t pool_bytes = session_pool_bytes(session, &series->backing, &series->verdict);

    series->bytes =
        pressure_largest_footprint(&run->plan, session->memory_bytes, series->backing.page_bytes, pool_bytes);
    if (series->bytes == 0 && pool_bytes > 0)
        verdict_set(&series->verdict,
                    pool_bytes < pressure_footprint(0) ? STATUS_NO_FREE_HUGEPAGES : STATUS_MEMORY_LIMIT,
                    "%s pages: no footprint of %" PRIu64 " MiB or more fits into the pool and the memory allowed",
                    series->backing.name, (pressure_footprint(0) / MIB));
}

/* Large pages keep the page tables of the region itself small. The pool's only where it can spare them. */
static int open_region(struct pressure_run *run, struct verdict *verdict)
{
    const struct environment *environment = run->session->environment;
    int node = run->session->numa_node;
    uint64_t large = environment->thp_bytes;
    struct backing tries[3];
    size_t count = 0;

    for (size_t index = 0; index < run->series_count; index++) {
        const struct pressure_series *series = &run->series[index];
        int64_t free_pages = backing_free_pages("/sys", series->backing.page_bytes, node);

        if (series->backing.kind == BACKING_HUGETLB && series->backing.page_bytes == large && free_pages > 0 &&
            (uint64_t)free_pages * large >= series->bytes + run->plan.region_bytes)
            tries[count++] = series->backing;
    }
    if (environment->thp.enabled[0] != '\0' && large > 0)
        tries[count++] = (struct backing){.kind = BACKING_THP, .page_bytes = large, .name = "THP"};
    tries[count++] = run->base;
    for (size_t index = 0; index < count; index++) {
        struct arena *arena = &run->region_arena;
        struct arena_request request = request_arena(run, &tries[index], run->plan.region_bytes);

        if (arena_open(arena, &request, verdict) != 0) {
            if (verdict->status == STATUS_STOPPED)
                return -1;
            continue;
        }
        if (verdict->status == STATUS_OK || arena->granted_fraction >= GRANTED_MIN) {
            run->result->region_bytes = footprint_in(arena, run->plan.region_bytes);
            run->region = (struct probe_region){arena->base, run->result->region_bytes / PROBE_PIECE_BYTES};
            memcpy(run->result->region_backing, tries[index].name, sizeof(run->result->region_backing));
            return 0;
        }
        arena_close(arena);
    }
    return -1;
}

/* Leaves the reason in the result where nothing can be measured. */
static bool prepare(struct pressure_run *run)
{
    const struct session *session = run->session;
    struct verdict *verdict = &run->result->verdict;

    if (run->series_count == 0)
        return REFUSED(verdict, STATUS_SKIPPED, "no larger page size was requested");
    if (session_must_stop(session, verdict))
        return false;
    if (run->plan.base_bytes == 0)
        return REFUSED(verdict, STATUS_MEMORY_LIMIT,
                       "the memory budget of %" PRIu64 " MiB holds no region larger than the last cache (%" PRIu64
                       " MiB) besides the pages",
                       (session->memory_bytes / MIB), (cache_last_level_bytes(session->environment) / MIB));
    if (!counter_calibrate(&run->scale))
        return REFUSED(verdict, STATUS_UNSUPPORTED, "this processor has no time counter that can be read in order");
    for (size_t index = 0; index < run->series_count; index++)
        size_series(run, &run->series[index]);
    return weigh(run);
}

static int measure(struct pressure_run *run)
{
    struct verdict *verdict = &run->result->verdict;

    if (prepare(run) && open_region(run, verdict) == 0) {
        run->mappings_left = run->plan.mappings;
        verdict->status = STATUS_OK;
        verdict->reason[0] = '\0';
        for (unsigned mapping = 0; mapping < run->plan.mappings; mapping++)
            if (measure_mapping(run, mapping, verdict) != 0)
                break;
        arena_close(&run->region_arena);
    }
    return pressure_collect(&run->plan, run->series, run->series_count, run->result);
}

int pressure_measure(const struct session *session, struct pressure_result *result)
{
    uint64_t start_ns = clock_now_ns();
    const struct backing *backings = session->backings;
    size_t count = session->backing_count;
    struct pressure_run run = {
        .session = session,
        .plan = pressure_make_plan(session->full, session->memory_bytes, cache_last_level_bytes(session->environment)),
        .base = backings[0],
        .series = calloc(count, sizeof(*run.series)),
        .series_count = count - 1,
        .result = result,
    };

    *result = (struct pressure_result){.verdict = {.status = STATUS_OK}};
    if (run.series == NULL)
        return FAILED(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
    for (size_t index = 0; index < run.series_count; index++)
        run.series[index].backing = backings[index + 1];
    int status = measure(&run);

    free(run.series);
    result->duration_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    return status;
}
