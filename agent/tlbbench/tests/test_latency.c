/* SPDX-License-Identifier: Apache-2.0 */
/* How far the footprints go, and when the paired differences are known well enough to end. */
#include "base/std.h"
#include "harness.h"
#include "latency/series.h"
#include "machine/tlb_levels.h"

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

/* The largest footprint of the full profile where a second level of so many entries holds 2M pages. */
static uint64_t largest_with(unsigned entries, enum tlb_kind kind)
{
    struct tlb_level_list priors = {0};
    struct tlb_level level = {.level = 2, .kind = kind, .page_bytes = 2 * MIB, .entries = entries};

    tlb_levels_add(&priors, &level);
    level.page_bytes = GIB; /* what holds 1G pages reaches further, and is not asked */
    level.entries = 1024;
    tlb_levels_add(&priors, &level);
    struct session session = {.full = true, .priors = &priors};

    return latency_largest_footprint(&session);
}

static void the_full_profile_goes_past_what_2m_pages_reach(struct harness *h)
{
    CHECK(largest_with(2048, TLB_UNIFIED) == 16 * GIB);
    CHECK(largest_with(3072, TLB_DATA) == 32 * GIB);
    CHECK(largest_with(1536, TLB_LOAD) == 16 * GIB);
    CHECK(largest_with(64, TLB_DATA) == 4 * GIB);
    CHECK(largest_with(1 << 20, TLB_DATA) == 64 * GIB);
    CHECK(largest_with(2048, TLB_INSTRUCTION) == 4 * GIB);
    CHECK(largest_with(TLB_ENTRIES_UNKNOWN, TLB_DATA) == 4 * GIB);
    struct session session = {.full = true};

    CHECK(latency_largest_footprint(&session) == 4 * GIB);
    session.full = false;
    CHECK(latency_largest_footprint(&session) == GIB);
}

static const struct harness_case CASES[] = {
    {"the full profile goes past what 2M pages reach", the_full_profile_goes_past_what_2m_pages_reach},
    {"close rounds are narrow", close_rounds_are_narrow},
    {"points without a figure are not narrow", points_without_a_figure_are_not_narrow},
    {"points that were not planned do not count", points_that_were_not_planned_do_not_count},
};

HARNESS_MAIN("latency", CASES)
