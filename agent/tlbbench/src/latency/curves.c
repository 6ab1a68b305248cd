/* SPDX-License-Identifier: Apache-2.0 */
#include "latency/series.h"

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

void latency_result_free(struct latency_result *result)
{
    curve_list_free(&result->curves);
    free(result->deltas);
    *result = (struct latency_result){0};
}
