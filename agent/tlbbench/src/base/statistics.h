/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics and intervals over small sets of timings. Pure functions; units are those of the samples. */
#pragma once

#include "base/std.h"

/* Statistics over the batches of one point, in nanoseconds per access. */
struct point_stats {
    double ns_min, ns_p10, ns_p50, ns_p90, ns_mad;
    unsigned batches; /* kept */
    unsigned dropped; /* rejected by the noise guard */
};

/* Sorts ascending, in place. */
void statistics_sort(double *values, size_t count);

/* Quantile `q` in [0, 1] of ascending values, linear between neighbours; NAN when there is none. */
double statistics_quantile(const double *sorted, size_t count, double q);

/* Median; sorts `values` in place. NAN when there is none. */
double statistics_median(double *values, size_t count);

/* Median absolute deviation of ascending values from `centre`. Returns NAN when there is none. */
double statistics_mad(const double *sorted, size_t count, double centre);

/* Fills `stats` from the kept batches, which are sorted in place; `dropped` batches were rejected before. */
void statistics_summarise(double *samples, size_t count, unsigned dropped, struct point_stats *stats);

struct mean_interval {
    double mean, low, high; /* NAN with fewer than two values */
};

/* Mean of paired differences with its 95 % interval (Student's t). */
struct mean_interval statistics_mean_interval(const double *values, size_t count);
