/* SPDX-License-Identifier: Apache-2.0 */
/* Which footprints are measured on which backing, and what is mapped at once. */
#include "latency/series.h"

enum {
    FOOTPRINT_MIN_BYTES = 64 << 10,
    PROBE_BYTES = 16 << 20,
    REACHES = 4, /* a page of 2M and one of 1G differ only where the entries for 2M have long run out */
};

#define FULL_BYTES (4 * GIB)
#define FULL_MOST_BYTES (64 * GIB)

/* Linking every line of 4 GiB takes ten seconds, of every page size in every round: only where there is this much time.
 */
#define LONG_SECONDS 600.0

/* Part of the time that may go into mapping and touching. Set by hand, as the shares of latency.c. */
#define MAP_SHARE 0.4

static uint64_t round_up(uint64_t bytes, uint64_t page_bytes)
{
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

uint64_t latency_largest_footprint(const struct session *session)
{
    const struct tlb_level_list *priors = session->priors;
    uint64_t reach = 0;
    uint64_t largest = FULL_BYTES;

    if (!session->full)
        return GIB;
    for (size_t index = 0; priors != NULL && index < priors->count; index++) {
        const struct tlb_level *level = &priors->items[index];

        if (level->page_bytes == 2 * MIB && tlb_is_data_side(level->kind) && level->entries * (2 * MIB) > reach)
            reach = level->entries * (2 * MIB);
    }
    while (largest < REACHES * reach && largest < FULL_MOST_BYTES)
        largest *= 2;
    return largest;
}

static void list_footprints(const struct session *session, const struct latency_request *request,
                            struct latency_plan *plan)
{
    for (size_t index = 0; index < request->footprints.count; index++) {
        if (request->footprints.items[index] > session->memory_bytes) {
            plan->left_out_bytes = request->footprints.items[index];
            break;
        }
        plan->footprints[plan->footprint_count++] = request->footprints.items[index];
    }
    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
        plan->layout_max_bytes[layout] = UINT64_MAX;
        plan->layout_every[layout] = 1;
    }
}

void latency_make_plan(const struct session *session, const struct latency_request *request, struct latency_plan *plan)
{
    bool full = session->full;
    uint64_t largest = latency_largest_footprint(session);
    uint64_t random = full ? FULL_BYTES : 128 * MIB;

    if (full && deadline_remaining_seconds(session->deadline) <= LONG_SECONDS)
        random = GIB;
    *plan = (struct latency_plan){
        .layout_max_bytes = {largest, random, largest},
        .layout_every = {1, full ? 1 : 2, full ? 2 : 4},
        .rounds = 5,
        .batches = 3,
        .batch_seconds = full ? 2e-3 : 1.2e-3,
    };
    if (request->footprints.count > 0)
        list_footprints(session, request, plan);
    else
        for (uint64_t bytes = FOOTPRINT_MIN_BYTES; bytes <= largest && bytes <= session->memory_bytes; bytes *= 2)
            plan->footprints[plan->footprint_count++] = bytes;
    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
        if ((request->curves & SET_BIT(layout)) == 0)
            plan->layout_max_bytes[layout] = 0;
}

void latency_size_series(const struct session *session, const struct latency_plan *plan, struct latency_series *series)
{
    uint64_t largest = plan->footprints[plan->footprint_count - 1];
    const struct backing *backing = &series->backing;

    series->bytes = largest;
    series->granted_fraction = NAN;
    series->verdict = (struct verdict){.status = STATUS_OK};
    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (size_t point = 0; point < LATENCY_POINTS_MAX; point++)
            for (unsigned round = 0; round < LATENCY_ROUNDS_MAX; round++)
                series->cells[layout][point].round_ns[round] = NAN;
    }
    uint64_t pool_bytes = session_pool_bytes(session, backing, &series->verdict);

    if (pool_bytes == 0 || (backing->kind == BACKING_HUGETLB &&
                            !session_allows(session, backing, 0, backing->page_bytes, &series->verdict))) {
        series->bytes = 0;
    } else if (pool_bytes < largest) {
        series->bytes = pool_bytes;
        (void)snprintf(series->verdict.reason, sizeof(series->verdict.reason),
                       "the pool has %" PRIu64 " free %s: larger footprints were left out",
                       (pool_bytes / backing->page_bytes), pool_bytes == backing->page_bytes ? "page" : "pages");
    }
}

/* Seconds to map and touch a byte of base pages, from a small arena; 0 when that failed. The first touch of memory that
 * a hypervisor has yet to find is slower than all later ones, so the second counts. */
static double touch_seconds_per_byte(const struct session *session, const struct backing *base)
{
    double seconds = 0;

    for (unsigned touch = 0; touch < 2; touch++) {
        struct verdict verdict;
        struct arena arena;
        struct arena_request request = session_arena(session, base, PROBE_BYTES, 0);

        if (arena_open(&arena, &request, &verdict) != 0)
            return 0;
        seconds = arena.touch_seconds / (double)arena.bytes;
        arena_close(&arena);
    }
    return seconds;
}

/* What a footprint takes on every backing at once: a page of 1G is mapped whole for the smallest of them. */
static uint64_t all_bytes(const struct latency_series *series, size_t series_count, uint64_t footprint)
{
    uint64_t bytes = 0;

    for (size_t index = 0; index < series_count; index++) {
        uint64_t wanted = series[index].bytes < footprint ? series[index].bytes : footprint;

        bytes += round_up(wanted, series[index].backing.page_bytes);
    }
    return bytes;
}

size_t latency_live_series(const struct latency_series *series, size_t series_count)
{
    size_t live = 0;

    for (size_t index = 0; index < series_count; index++)
        live += series[index].bytes > 0 ? 1 : 0;
    return live;
}

uint64_t latency_shared_footprint(const struct session *session, const struct latency_request *request,
                                  const struct latency_plan *plan, const struct latency_series *series,
                                  size_t series_count)
{
    uint64_t largest = plan->footprints[plan->footprint_count - 1];
    double per_byte = touch_seconds_per_byte(session, &series[0].backing) *
                      (double)(latency_live_series(series, series_count) * plan->rounds);
    double allowed = MAP_SHARE * deadline_remaining_seconds(session->deadline);
    uint64_t most = request->footprints.count > 0 ? largest : GIB;
    uint64_t bytes = FOOTPRINT_MIN_BYTES;

    while (bytes < most && all_bytes(series, series_count, 2 * bytes) <= session->memory_bytes &&
           per_byte * 2 * (double)bytes <= allowed)
        bytes *= 2;
    return bytes < largest ? bytes : largest;
}

enum {
    SAMPLES_MIN = 3,
    PAIRS_MIN = 3,
};

/* A paired difference is narrow when its half interval is below this share of the base latency. */
#define NARROW_SHARE 0.05

bool latency_plan_has(const struct latency_plan *plan, enum latency_curve layout, size_t point, uint64_t bytes)
{
    uint64_t footprint = plan->footprints[point];

    return footprint <= bytes && footprint <= plan->layout_max_bytes[layout] && point % plan->layout_every[layout] == 0;
}

static int add_curve(const struct latency_plan *plan, struct latency_series *series, enum latency_curve layout,
                     struct latency_result *result)
{
    struct curve *curve =
        curve_list_add(&result->curves, &series->backing, LATENCY_CURVE_NAMES[layout], &series->verdict);

    if (curve == NULL)
        return -1;
    (void)snprintf(curve->name, sizeof(curve->name), "latency %s %s", LATENCY_CURVE_NAMES[layout],
                   series->backing.name);
    curve->x_name = "footprint_bytes";
    curve->granted_fraction = series->granted_fraction;
    return latency_fill_curve(curve, plan->footprints, series->cells[layout], plan->footprint_count);
}

int latency_fill_curve(struct curve *curve, const uint64_t *x, struct latency_cell *cells, size_t count)
{
    size_t noisy = 0;

    curve->points = calloc(count, sizeof(*curve->points));
    if (curve->points == NULL)
        return -1;
    for (size_t point = 0; point < count; point++) {
        struct latency_cell *cell = &cells[point];

        if (cell->count + cell->dropped == 0)
            continue;
        if (cell->count < SAMPLES_MIN) {
            noisy++;
            continue;
        }
        curve->points[curve->point_count].x = x[point];
        statistics_summarise(cell->samples, cell->count, cell->dropped, &curve->points[curve->point_count++].stats);
    }
    if (noisy > 0 && curve->verdict.status == STATUS_OK) {
        verdict_set(&curve->verdict, STATUS_NOISY, "CPU contention: %zu points have no quiet figure and were left out",
                    noisy);
    } else if (curve->point_count == 0 && curve->verdict.status == STATUS_OK) {
        verdict_set(&curve->verdict, STATUS_STOPPED, "the time ended before a point of it was measured");
    }
    return 0;
}

/* Differences of the rounds that both backings have; returns their number. */
static size_t pair_rounds(const struct latency_plan *plan, const struct latency_cell *cell,
                          const struct latency_cell *base, double differences[LATENCY_ROUNDS_MAX])
{
    size_t count = 0;

    for (unsigned round = 0; round < plan->rounds; round++)
        if (!isnan(cell->round_ns[round]) && !isnan(base->round_ns[round]))
            differences[count++] = cell->round_ns[round] - base->round_ns[round];
    return count;
}

/* Without enough rounds, or without a quiet batch in them, the interval is NaN: that is not narrow. */
static bool is_narrow_at(const struct latency_plan *plan, const struct latency_cell *cell,
                         const struct latency_cell *base)
{
    double differences[LATENCY_ROUNDS_MAX];
    double rounds[LATENCY_ROUNDS_MAX];
    size_t count = pair_rounds(plan, cell, base, differences);
    struct mean_interval interval = statistics_mean_interval(differences, count);

    count = 0;
    for (unsigned round = 0; round < plan->rounds; round++)
        if (!isnan(base->round_ns[round]))
            rounds[count++] = base->round_ns[round];
    return interval.high - interval.mean <= NARROW_SHARE * statistics_median(rounds, count);
}

bool latency_is_narrow(const struct latency_plan *plan, const struct latency_series *series, size_t series_count)
{
    for (size_t index = 1; index < series_count; index++) {
        uint64_t bytes = series[index].bytes < series[0].bytes ? series[index].bytes : series[0].bytes;

        for (unsigned layout = 0; layout < LAYOUT_PACKED; layout++)
            for (size_t point = 0; point < plan->footprint_count; point++)
                if (latency_plan_has(plan, layout, point, bytes) &&
                    !is_narrow_at(plan, &series[index].cells[layout][point], &series[0].cells[layout][point]))
                    return false;
    }
    return true;
}

static void add_delta(const struct latency_plan *plan, const struct latency_series *base,
                      const struct latency_series *series, enum latency_curve layout, size_t point,
                      struct latency_result *result)
{
    double differences[LATENCY_ROUNDS_MAX];
    size_t count = pair_rounds(plan, &series->cells[layout][point], &base->cells[layout][point], differences);

    /* Base pages where THP was requested: the difference would be reported under the wrong name. */
    if (count < PAIRS_MIN || series->verdict.status == STATUS_THP_NOT_GRANTED)
        return;
    struct mean_interval interval = statistics_mean_interval(differences, count);
    struct paired_delta *delta = &result->deltas[result->delta_count++];

    *delta = (struct paired_delta){.layout = LATENCY_CURVE_NAMES[layout],
                                   .x = plan->footprints[point],
                                   .delta_ns = interval.mean,
                                   .ci95_low_ns = interval.low,
                                   .ci95_high_ns = interval.high,
                                   .pairs = (unsigned)count};
    memcpy(delta->backing, series->backing.name, sizeof(delta->backing));
}

int latency_collect(const struct latency_plan *plan, struct latency_series *series, size_t series_count,
                    struct latency_result *result)
{
    result->deltas = calloc(series_count * LAYOUT_COUNT, plan->footprint_count * sizeof(*result->deltas));
    if (result->deltas == NULL)
        return -1;
    for (size_t index = 1; index < series_count; index++) {
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
            for (size_t point = 0; point < plan->footprint_count; point++)
                add_delta(plan, &series[0], &series[index], layout, point, result);
    }
    /* Summarising sorts the samples, so the curves come last. */
    for (size_t index = 0; index < series_count; index++) {
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
            if (plan->layout_max_bytes[layout] > 0 && add_curve(plan, &series[index], layout, result) != 0)
                return -1;
    }
    return 0;
}

const char *const LATENCY_CURVE_NAMES[LATENCY_CURVE_COUNT] = {[LAYOUT_LINE_PER_PAGE] = "line_per_page",
                                                              [LAYOUT_RANDOM_64B] = "random_64b",
                                                              [LAYOUT_PACKED] = "packed",
                                                              [LATENCY_PRESSURE] = "pressure",
                                                              [LATENCY_WALKS] = "walks"};
