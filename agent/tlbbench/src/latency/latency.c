/* SPDX-License-Identifier: Apache-2.0 */
#include "latency/series.h"

enum {
    POINTS_MIN = 4,             /* of every plan, however slow the machine is */
    PLACED_NODES_MAX = 1 << 14, /* cycles up to this length are linked anew, at another place, for every batch */
    QUICK_SLOW_POINTS = 10, /* of a plan at most: cycles that a last-level cache may hold or not take laps to settle */
    FULL_SLOW_POINTS = 24,
};

/* Shares of the time were set by hand; the budgets in docs/method-results.md hold with them. */
/* The rest of the time that the rounds may plan with: linking and faults vary. */
#define PLAN_SHARE 0.9
/* Part of the time that may go into walking cycles until they are steady. */
#define WARM_SHARE 0.25
/* At most, of a round's time, for mapping what it measures. */
#define MAP_SHARE 0.4
/* Part of the whole time that one mapping may take where its footprint was requested. */
#define ASKED_MAP_SHARE 0.25

struct latency_run {
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
static double touch_seconds(const struct latency_run *run, const struct latency_series *series)
{
    if (run->request->footprints.count > 0)
        return ASKED_MAP_SHARE * run->budget_seconds;
    return isnan(series->granted_fraction)
               ? run->budget_seconds /
                     (double)(run->plan.rounds * (latency_live_series(run->series, run->series_count) + 1))
               : INFINITY;
}

static uint64_t mapped_bytes(const struct latency_run *run)
{
    uint64_t bytes = 0;

    for (size_t index = 0; index < run->series_count; index++)
        bytes += run->arenas[index].base != NULL ? run->arenas[index].bytes : 0;
    return bytes;
}

/* Maps a fresh arena for a series. A backing that is not available is lost with its reason, the others go on. -1: stop.
 */
static int open_arena(struct latency_run *run, size_t index, uint64_t bytes, struct verdict *verdict)
{
    struct latency_series *series = &run->series[index];
    struct arena *arena = &run->arenas[index];
    struct verdict found;

    if (series->bytes == 0)
        return 0;
    struct arena_request request = session_arena(run->session, &series->backing, bytes, mapped_bytes(run));

    request.may_be_cut = true;
    request.seconds = touch_seconds(run, series);
    if (arena_open(arena, &request, &found) != 0) {
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

static void close_arenas(struct latency_run *run)
{
    note_peak(&run->result->peak_mapped_bytes, mapped_bytes(run));
    for (size_t index = 0; index < run->series_count; index++)
        arena_close(&run->arenas[index]);
}

/* Places of `footprint` bytes that every backing which has the point can offer. */
static uint64_t common_places(const struct latency_run *run, enum latency_curve layout, size_t point)
{
    uint64_t footprint = run->plan.footprints[point];
    uint64_t bytes = footprint <= run->shared_bytes ? run->shared_bytes : UINT64_MAX;

    for (size_t index = 0; index < run->series_count; index++) {
        const struct latency_series *series = &run->series[index];

        if (latency_plan_has(&run->plan, layout, point, series->bytes) && series->bytes < bytes)
            bytes = series->bytes;
    }
    return bytes / footprint;
}

/* A cycle of a point, at one place of the arenas. */
struct placement {
    enum latency_curve layout;
    size_t point;
    unsigned batches;
    uint64_t seed; /* of the place, the nodes and their permutation */
};

/* Times one placement of a point on every backing that is mapped, in random order: the pairs lie milliseconds apart. */
static int measure_placement(struct latency_run *run, const struct placement *placed, struct rng *rng,
                             struct verdict *verdict)
{
    enum latency_curve layout = placed->layout;
    size_t point = placed->point;
    uint64_t footprint = run->plan.footprints[point];
    uint64_t offset = placed->seed % common_places(run, layout, point) * footprint;
    uint32_t order[SESSION_BACKINGS_MAX];

    permutation_fill(order, run->series_count, rng);
    for (size_t step = 0; step < run->series_count; step++) {
        struct latency_series *series = &run->series[order[step]];
        const struct arena *arena = &run->arenas[order[step]];

        if (session_must_stop(run->session, verdict))
            return -1;
        if (arena->base != NULL && latency_plan_has(&run->plan, layout, point, series->bytes)) {
            struct latency_cycle cycle = {arena->base + offset, footprint, run->session->base_page_bytes, layout,
                                          placed->seed};
            uint64_t nodes = latency_node_count(&cycle);

            tlb_flush();
            struct chase chase = {.position = latency_link(&cycle)};

            /* A cycle within a shared cache has two steady states: fast laps keep its lines, in slow ones the
             * neighbours replace them before they are used again. Like any program that runs for long it starts in the
             * cache, and leaves it only where it cannot stay. */
            if (nodes * CACHE_LINE_BYTES <= run->cache_bytes)
                latency_visit(&cycle);
            latency_measure_cell(&series->cells[layout][point], &run->plan, placed->batches, &chase, nodes);
        }
    }
    return 0;
}

/* One layout and footprint. Which physical pages a short cycle got decides which cache sets its lines share, and freed
 * pages come back in the next round: so its place in the arena changes, and with every batch. */
static int measure_point(struct latency_run *run, enum latency_curve layout, size_t point, unsigned round,
                         struct rng *rng, struct verdict *verdict)
{
    struct latency_cycle cycle = {NULL, run->plan.footprints[point], run->session->base_page_bytes, layout, 0};
    bool is_short = latency_node_count(&cycle) <= PLACED_NODES_MAX;
    unsigned placements = is_short ? run->plan.batches : 1;
    size_t first[SESSION_BACKINGS_MAX] = {0};
    int status = 0;

    for (size_t index = 0; index < run->series_count; index++)
        first[index] = run->series[index].cells[layout][point].count;
    for (unsigned placement = 0; placement < placements && status == 0; placement++) {
        uint64_t seed =
            rng_mix(run->session->seed * 64 + round) ^ rng_mix(((uint64_t)layout * 1000 + point) * 64 + placement);

        struct placement placed = {layout, point, run->plan.batches / placements, seed};

        status = measure_placement(run, &placed, rng, verdict);
    }
    for (size_t index = 0; index < run->series_count; index++)
        latency_end_round(&run->series[index].cells[layout][point], first[index], round);
    return status;
}

/* Called when the memory of the first round is mapped. That takes longest the first time, when a hypervisor may have to
 * find the memory, too; so it is not held against the round. */
static void start_clock(struct latency_run *run, double map_seconds)
{
    double left = PLAN_SHARE * deadline_remaining_seconds(run->session->deadline) / run->plan.rounds;

    run->start_ns = clock_now_ns();
    run->round_seconds = left - fmin(map_seconds, MAP_SHARE * left);
}

/* Leaves out the footprints from `point` on: a few rounds of less are a measurement, one round of all is none. */
static void cut_plan(struct latency_run *run, size_t point)
{
    uint64_t largest = run->plan.footprints[point - 1];
    char size[PAGE_TEXT_BYTES];

    (void)snprintf(run->result->verdict.reason, sizeof(run->result->verdict.reason),
                   "the time limit was reached at %s: larger footprints were left out", page_text(largest, size));
    run->plan.footprint_count = point;
    run->shared_bytes = run->shared_bytes < largest ? run->shared_bytes : largest;
    for (size_t index = 0; index < run->series_count; index++) {
        struct latency_series *series = &run->series[index];

        series->bytes = series->bytes < largest ? series->bytes : largest;
    }
}

static int measure_points(struct latency_run *run, uint64_t above_bytes, uint64_t up_to_bytes, unsigned round,
                          struct rng *rng, struct verdict *verdict)
{
    uint32_t order[LAYOUT_COUNT * LATENCY_POINTS_MAX];
    const struct latency_plan *plan = &run->plan;
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
        session_report_progress(run->session, ((double)round + (double)step / (double)count) / (double)plan->rounds);
        size_t point = order[step] / LAYOUT_COUNT;

        /* Longer than its share of the section's time. */
        if (round == 0 && point >= POINTS_MIN && seconds_since(run->start_ns) > run->round_seconds) {
            cut_plan(run, point);
            return 0;
        }
        if (measure_point(run, order[step] % LAYOUT_COUNT, point, round, rng, verdict) != 0)
            return -1;
    }
    return 0;
}

/* Fresh mappings for every round. What fits is mapped at once; larger footprints one backing after the other. */
static int measure_round(struct latency_run *run, unsigned round, struct verdict *verdict)
{
    struct rng rng = rng_new(run->session->seed, 0x1a7e0000u + round);
    uint64_t largest = run->plan.footprints[run->plan.footprint_count - 1];
    size_t first = (size_t)rng_below(&rng, run->series_count);
    uint64_t start_ns = clock_now_ns();
    bool has_shared = run->plan.footprints[0] <= run->shared_bytes;
    int status = 0;

    for (size_t index = 0; has_shared && index < run->series_count && status == 0; index++) {
        uint64_t bytes = run->series[index].bytes;

        status = open_arena(run, index, bytes < run->shared_bytes ? bytes : run->shared_bytes, verdict);
    }
    if (round == 0)
        start_clock(run, seconds_since(start_ns));
    if (status == 0)
        status = measure_points(run, 0, run->shared_bytes, round, &rng, verdict);
    close_arenas(run);
    for (size_t step = 0; step < run->series_count && largest > run->shared_bytes && status == 0; step++) {
        size_t index = (first + step) % run->series_count;

        if (run->series[index].bytes > run->shared_bytes) {
            status = open_arena(run, index, run->series[index].bytes, verdict);
            if (status == 0)
                status = measure_points(run, run->shared_bytes, largest, round, &rng, verdict);
            close_arenas(run);
        }
    }
    return status;
}

/* The planned rounds, or as many whole ones as the time allows; then more while a paired difference is uncertain. */
static int measure_rounds(struct latency_run *run, struct verdict *verdict)
{
    unsigned planned = run->plan.rounds;

    for (unsigned round = 0; round < LATENCY_ROUNDS_MAX; round++) {
        uint64_t start_ns = clock_now_ns();

        run->plan.rounds = round < planned ? planned : round + 1;
        if (measure_round(run, round, verdict) != 0)
            return -1;
        bool is_last = seconds_since(start_ns) > PLAN_SHARE * deadline_remaining_seconds(run->session->deadline);

        if (round + 1 < planned && is_last) {
            run->plan.rounds = round + 1;
            (void)snprintf(verdict->reason, sizeof(verdict->reason), "the time limit allowed %u of %u rounds",
                           round + 1, planned);
        }
        if (is_last || (round + 1 >= planned && latency_is_narrow(&run->plan, run->series, run->series_count)))
            break;
    }
    return 0;
}

static unsigned slow_points(const struct latency_run *run)
{
    unsigned most = run->session->full ? FULL_SLOW_POINTS : QUICK_SLOW_POINTS;
    unsigned count = 0;

    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
        for (size_t point = 0; point < run->plan.footprint_count; point++)
            count += latency_plan_has(&run->plan, layout, point, UINT64_MAX) ? 1 : 0;
    return count == 0 ? 1 : count < most ? count : most;
}

int latency_measure(const struct session *session, const struct latency_request *request, struct latency_result *result)
{
    struct latency_run run = {.session = session, .request = request, .result = result};

    *result = (struct latency_result){0};
    latency_make_plan(session, request, &run.plan);
    run.series_count = session->backing_count;
    run.series = calloc(run.series_count, sizeof(*run.series));
    if (run.series == NULL)
        return FAILED(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
    if (run.plan.left_out_bytes > 0) {
        verdict_set(&result->verdict, STATUS_MEMORY_LIMIT,
                    "footprints from %" PRIu64 " MiB on exceed the memory budget of %" PRIu64 " MiB",
                    (run.plan.left_out_bytes >> 20), (session->memory_bytes >> 20));
    }
    if (run.plan.footprint_count == 0) {
        free(run.series);
        return 0;
    }
    for (size_t index = 0; index < run.series_count; index++) {
        run.series[index].backing = session->backings[index];
        latency_size_series(session, &run.plan, &run.series[index]);
    }
    run.cache_bytes = cache_last_level_bytes(session->environment);
    run.budget_seconds = deadline_remaining_seconds(session->deadline);
    run.plan.warm_seconds = WARM_SHARE * run.budget_seconds / run.plan.rounds / slow_points(&run) /
                            (double)latency_live_series(run.series, run.series_count);
    run.shared_bytes = latency_shared_footprint(session, request, &run.plan, run.series, run.series_count);
    if (measure_rounds(&run, &result->verdict) == 0)
        session_report_progress(session, 1.0);
    int status = latency_collect(&run.plan, run.series, run.series_count, result);

    free(run.series);
    return status;
}
