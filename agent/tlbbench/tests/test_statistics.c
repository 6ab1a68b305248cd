/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/statistics.h"
#include "harness.h"

#include <math.h>

static bool near(double left, double right)
{
    return fabs(left - right) < 1e-9;
}

static void quantiles(struct harness *h)
{
    const double values[] = {1, 2, 3, 4};

    CHECK(near(statistics_quantile(values, 4, 0.5), 2.5));
    CHECK(near(statistics_quantile(values, 4, 0), 1));
    CHECK(near(statistics_quantile(values, 4, 1), 4));
    CHECK(near(statistics_quantile(values, 1, 0.9), 1));
    CHECK(isnan(statistics_quantile(values, 0, 0.5)));
}

/* The plain definition: sort the deviations, take their median. */
static double slow_mad(const double *values, size_t count, double centre)
{
    double deviations[64];

    for (size_t index = 0; index < count; index++)
        deviations[index] = fabs(values[index] - centre);
    return statistics_median(deviations, count);
}

static void mad_is_the_median_of_deviations(struct harness *h)
{
    struct rng rng = rng_new(11, 0);

    for (size_t count = 1; count < 40; count++) {
        double values[64];

        for (size_t index = 0; index < count; index++)
            values[index] = (double)rng_below(&rng, 20); /* with ties */
        double median = statistics_median(values, count);

        CHECK(near(statistics_mad(values, count, median), slow_mad(values, count, median)));
        CHECK(near(statistics_mad(values, count, -5), slow_mad(values, count, -5)));
        CHECK(near(statistics_mad(values, count, 99), slow_mad(values, count, 99)));
    }
    CHECK(isnan(statistics_mad(NULL, 0, 0)));
}

static void summary_of_nothing_is_unknown(struct harness *h)
{
    struct point_stats stats;

    statistics_summarise(NULL, 0, 7, &stats);
    CHECK(isnan(stats.ns_min) && isnan(stats.ns_p50) && isnan(stats.ns_mad));
    CHECK_U64(stats.batches, 0);
    CHECK_U64(stats.dropped, 7);
}

static void interval_of_known_values(struct harness *h)
{
    /* Mean 3, standard deviation 1.5811, error 0.7071, t(4) = 2.776. */
    const double values[] = {1, 2, 3, 4, 5};
    struct mean_interval interval = statistics_mean_interval(values, 5);

    CHECK(near(interval.mean, 3));
    CHECK(fabs(interval.low - (3 - 2.776 * 0.70710678)) < 1e-3);
    CHECK(fabs(interval.high - (3 + 2.776 * 0.70710678)) < 1e-3);
    CHECK(isnan(statistics_mean_interval(values, 1).mean));
}

/* A 95 % interval must hold the true mean about 95 times of 100. */
static void interval_covers_the_mean(struct harness *h)
{
    struct rng rng = rng_new(5, 5);
    unsigned covered = 0;

    for (unsigned trial = 0; trial < 2000; trial++) {
        double values[5];

        for (unsigned index = 0; index < 5; index++) {
            values[index] = -6;
            for (unsigned draw = 0; draw < 12; draw++)
                values[index] += rng_unit(&rng); /* close to normal */
        }
        struct mean_interval interval = statistics_mean_interval(values, 5);

        covered += interval.low <= 0 && interval.high >= 0 ? 1 : 0;
    }
    CHECK(covered > 1860 && covered < 1940);
}

static const struct harness_case CASES[] = {
    {"quantiles", quantiles},
    {"the MAD is the median of the deviations", mad_is_the_median_of_deviations},
    {"a summary of nothing is unknown", summary_of_nothing_is_unknown},
    {"interval of known values", interval_of_known_values},
    {"the interval covers the mean", interval_covers_the_mean},
};

HARNESS_MAIN("statistics", CASES)
