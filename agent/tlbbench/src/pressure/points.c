/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"
#include "base/statistics.h"
#include "pressure/series.h"

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
