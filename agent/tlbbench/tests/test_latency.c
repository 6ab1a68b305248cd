/* SPDX-License-Identifier: Apache-2.0 */
/* When the paired differences of the latency section are known well enough to end. */
#include "harness.h"
#include "latency/series.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 5 };

static const struct latency_plan PLAN = {.footprints = {1u << 20, 2u << 20},
                                         .footprint_count = 2,
                                         .layout_max_bytes = {UINT64_MAX, 0, 0},
                                         .layout_every = {1, 1, 1},
                                         .rounds = ROUNDS};

/* Base pages and another backing, 100 and 90 ns at every point, each round off by up to 0.2. */
static struct latency_series *make_series(void)
{
    struct latency_series *series = calloc(2, sizeof(*series));

    for (unsigned index = 0; index < 2; index++) {
        series[index].bytes = 2u << 20;
        for (unsigned point = 0; point < 2; point++)
            for (unsigned round = 0; round < ROUNDS; round++)
                series[index].cells[0][point].round_ns[round] = 100 - 10.0 * index + 0.1 * ((round + index) % 3);
    }
    return series;
}

static void close_rounds_are_narrow(struct harness *h)
{
    struct latency_series *series = make_series();

    CHECK(latency_is_narrow(&PLAN, series, 2));
    series[1].cells[0][1].round_ns[2] += 30;
    CHECK(!latency_is_narrow(&PLAN, series, 2));
    free(series);
}

static void points_without_a_figure_are_not_narrow(struct harness *h)
{
    struct latency_series *series = make_series();

    series[0].cells[0][1].round_ns[0] = NAN; /* the first round of base pages had no quiet batch */
    series[1].cells[0][1].round_ns[2] += 30;
    CHECK(!latency_is_narrow(&PLAN, series, 2));
    for (unsigned round = 0; round < ROUNDS; round++)
        series[1].cells[0][1].round_ns[round] = NAN;
    CHECK(!latency_is_narrow(&PLAN, series, 2));
    free(series);
}

static void points_that_were_not_planned_do_not_count(struct harness *h)
{
    struct latency_series *series = make_series();

    series[1].bytes = 1u << 20; /* the pool is smaller */
    for (unsigned round = 0; round < ROUNDS; round++)
        series[1].cells[0][1].round_ns[round] = NAN;
    CHECK(latency_is_narrow(&PLAN, series, 2));
    series[1].bytes = 0;
    CHECK(latency_is_narrow(&PLAN, series, 2));
    free(series);
}

static const struct harness_case CASES[] = {
    {"close rounds are narrow", close_rounds_are_narrow},
    {"points without a figure are not narrow", points_without_a_figure_are_not_narrow},
    {"points that were not planned do not count", points_that_were_not_planned_do_not_count},
};

HARNESS_MAIN("latency", CASES)
