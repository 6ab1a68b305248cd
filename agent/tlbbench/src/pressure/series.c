/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure/series.h"
#include "base/signals.h"
#include "base/statistics.h"
#include "pressure/probe.h"

/* Set by hand: at least twice most last caches; region_bytes() doubles it for a larger one, up to the second. */
#define REGION_BYTES (512 * MIB)
#define REGION_MAX_BYTES GIB
#define REGION_MIN_BYTES (16 * MIB)
#define FOOTPRINT_MIN_BYTES (16 * MIB)

/* With nothing between, the walk needs long to fill the caches. */
const struct pressure_depth PRESSURE_DEPTH[PRESSURE_DEPTHS] = {
    {0, 0, 2}, {16, 0, 1}, {64, 0, 1}, {256, 0, 2}, {1024, 0, 4}, {16, 2000, 2}, {16, 8000, 3}, {16, 20000, 5},
};

/* Bits of struct pressure_plan. */
enum {
    FULL_FOOTPRINTS = 1u << 1 | 1u << 3 | 1u << 5 | 1u << 7, /* 32, 128, 512 MiB, 2 GiB */
    QUICK_FOOTPRINTS = 1u << 2 | 1u << 5,                    /* 64, 512 MiB */
    FULL_DEPTHS = 0xff,
    QUICK_DEPTHS = 0xfd, /* not 16 without a wait */
};

/* Larger footprints have no page-table line in a cache after any of the waits. */
#define WAIT_FOOTPRINT_MAX_BYTES (512 * MIB)

/* Replacement is not exact: one visit of as many lines as the cache has leaves some of the old ones. */
#define WARM_CACHES 1.5

uint64_t pressure_footprint(size_t index)
{
    return FOOTPRINT_MIN_BYTES << index;
}

/* Twice the last cache, so that most of its lines are somewhere else; a quarter of the memory allowed at most. */
static uint64_t region_bytes(uint64_t memory_bytes, uint64_t last_cache_bytes)
{
    uint64_t wanted = REGION_BYTES;

    while (wanted < 2 * last_cache_bytes && wanted < REGION_MAX_BYTES)
        wanted *= 2;
    while (wanted > memory_bytes / 4)
        wanted /= 2;
    return wanted < REGION_MIN_BYTES || wanted < last_cache_bytes ? 0 : wanted;
}

struct pressure_plan pressure_make_plan(bool full, uint64_t memory_bytes, uint64_t last_cache_bytes)
{
    struct pressure_plan plan = {
        .region_bytes = region_bytes(memory_bytes, last_cache_bytes),
        .footprint_mask = full ? FULL_FOOTPRINTS : QUICK_FOOTPRINTS,
        .depth_mask = full ? FULL_DEPTHS : QUICK_DEPTHS,
        .mappings = full ? 6 : 3,
        .passes = 2,
        .accesses = full ? 8000 : 5000,
        .warm_lines = (uint64_t)(WARM_CACHES * (double)last_cache_bytes) / CACHE_LINE_BYTES,
    };

    for (size_t index = 0; index < PRESSURE_FOOTPRINTS && plan.region_bytes > 0; index++)
        if (2 * pressure_footprint(index) + plan.region_bytes <= memory_bytes)
            plan.base_bytes = pressure_footprint(index);
    return plan;
}

uint64_t pressure_largest_footprint(const struct pressure_plan *plan, uint64_t memory_bytes, uint64_t page_bytes,
                                    uint64_t pool_bytes)
{
    uint64_t largest = 0;

    for (size_t index = 0; index < PRESSURE_FOOTPRINTS; index++) {
        uint64_t footprint = pressure_footprint(index);
        uint64_t mapped = (footprint + page_bytes - 1) / page_bytes * page_bytes;

        if (footprint <= plan->base_bytes && mapped <= pool_bytes &&
            mapped + plan->base_bytes + plan->region_bytes <= memory_bytes)
            largest = footprint;
    }
    return largest;
}

bool pressure_plan_has(const struct pressure_plan *plan, const struct pressure_series *series, size_t footprint,
                       size_t depth)
{
    uint64_t bytes = pressure_footprint(footprint);

    return (plan->depth_mask >> depth & 1) != 0 &&
           (PRESSURE_DEPTH[depth].wait_ns == 0 || bytes <= WAIT_FOOTPRINT_MAX_BYTES) &&
           (bytes == series->bytes || (bytes < series->bytes && (plan->footprint_mask >> footprint & 1) != 0));
}

/* Which frames a mapping got shifts all of its pairs together, so that it is what repeats, not the pair: the interval
 * is that of the mappings' mean differences. */
static struct mean_interval interval_over_mappings(const struct pressure_cell *cell)
{
    double means[PRESSURE_PAIRS_MAX];
    size_t count = 0;

    for (unsigned pair = 0; pair < cell->pairs;) {
        unsigned first = pair;
        double sum = 0;

        for (; pair < cell->pairs && cell->mapping[pair] == cell->mapping[first]; pair++)
            sum += cell->ns[pair] - cell->base_ns[pair];
        means[count++] = sum / (pair - first);
    }
    struct mean_interval interval = statistics_mean_interval(means, count);

    if (count == 1)
        interval.mean = means[0];
    return interval;
}

/* The medians sort the cell, so the pairs' differences are taken before. */
static void add_point(struct pressure_series *series, size_t footprint, size_t depth, struct pressure_result *result)
{
    struct pressure_cell *cell = &series->cells[footprint][depth];
    struct mean_interval interval = interval_over_mappings(cell);

    result->points[result->point_count++] =
        (struct pressure_point){.backing = series->backing,
                                .footprint_bytes = pressure_footprint(footprint),
                                .lines_between = PRESSURE_DEPTH[depth].lines_between,
                                .wait_ns = PRESSURE_DEPTH[depth].wait_ns,
                                .period_ns = statistics_median(cell->period_ns, cell->pairs),
                                .base_ns_p50 = statistics_median(cell->base_ns, cell->pairs),
                                .ns_p50 = statistics_median(cell->ns, cell->pairs),
                                .delta_ns = interval.mean,
                                .ci95_low_ns = interval.low,
                                .ci95_high_ns = interval.high,
                                .pairs = cell->pairs};
}

/* What the points that are missing, or short of pairs, mean for the whole. */
struct shortage {
    size_t points;  /* planned */
    size_t noisy;   /* tried and rejected too often */
    size_t partial; /* fewer pairs than planned */
};

static void judge(const struct pressure_series *series, size_t series_count, const struct shortage *shortage,
                  struct pressure_result *result)
{
    if (shortage->points == 0) {
        if (result->verdict.status == STATUS_OK && series_count > 0)
            result->verdict = series[0].verdict;
        return;
    }
    /* The time ran out after everything that was needed. */
    if (result->verdict.status == STATUS_STOPPED && shortage->partial == 0 && !signals_stop_requested())
        result->verdict = (struct verdict){.status = STATUS_OK};
    if (result->verdict.status == STATUS_OK && shortage->noisy > 0) {
        verdict_set(&result->verdict, STATUS_NOISY,
                    "CPU contention: %zu of %zu points have no quiet figure and were left out", shortage->noisy,
                    shortage->points);
    }
}

int pressure_collect(const struct pressure_plan *plan, struct pressure_series *series, size_t series_count,
                     struct pressure_result *result)
{
    struct shortage shortage = {0};

    result->points = calloc(series_count + 1, PRESSURE_SLOTS * sizeof(*result->points));
    if (result->points == NULL)
        return -1;
    for (size_t index = 0; index < series_count; index++) {
        for (size_t footprint = 0; footprint < PRESSURE_FOOTPRINTS; footprint++) {
            for (size_t depth = 0; depth < PRESSURE_DEPTHS; depth++) {
                const struct pressure_cell *cell = &series[index].cells[footprint][depth];

                if (!pressure_plan_has(plan, &series[index], footprint, depth))
                    continue;
                shortage.points++;
                shortage.partial += cell->pairs + cell->dropped < PRESSURE_PAIRS_FULL ? 1 : 0;
                shortage.noisy += cell->pairs < PRESSURE_PAIRS_MIN && cell->dropped > 0 ? 1 : 0;
                if (cell->pairs >= PRESSURE_PAIRS_MIN)
                    add_point(&series[index], footprint, depth, result);
            }
        }
    }
    judge(series, series_count, &shortage, result);
    return 0;
}

void pressure_result_free(struct pressure_result *result)
{
    free(result->points);
    *result = (struct pressure_result){0};
}
