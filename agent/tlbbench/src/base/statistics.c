/* SPDX-License-Identifier: Apache-2.0 */
#include "base/statistics.h"

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

void statistics_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof(*values), compare_doubles);
}

double statistics_quantile(const double *sorted, size_t count, double q)
{
    if (count == 0)
        return NAN;
    double position = q * (double)(count - 1);
    size_t below = (size_t)position;

    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

double statistics_median(double *values, size_t count)
{
    statistics_sort(values, count);
    return statistics_quantile(values, count, 0.5);
}

/* The deviations of sorted values from a centre are two sorted runs; merging them outward needs no second array. */
double statistics_mad(const double *sorted, size_t count, double centre)
{
    size_t right = 0;

    if (count == 0)
        return NAN;
    while (right < count && sorted[right] < centre)
        right++;
    size_t left = right; /* sorted[left - 1] is the nearest value below the centre */
    double previous = 0;
    double current = 0;

    for (size_t taken = 0; taken <= count / 2; taken++) {
        previous = current;
        if (left > 0 && (right >= count || centre - sorted[left - 1] <= sorted[right] - centre)) {
            left--;
            current = centre - sorted[left];
        } else {
            current = sorted[right] - centre;
            right++;
        }
    }
    return count % 2 == 1 ? current : (previous + current) / 2;
}

void statistics_summarise(double *samples, size_t count, unsigned dropped, struct point_stats *stats)
{
    statistics_sort(samples, count);
    stats->ns_min = count > 0 ? samples[0] : NAN;
    stats->ns_p10 = statistics_quantile(samples, count, 0.1);
    stats->ns_p50 = statistics_quantile(samples, count, 0.5);
    stats->ns_p90 = statistics_quantile(samples, count, 0.9);
    stats->ns_mad = statistics_mad(samples, count, stats->ns_p50);
    stats->batches = (unsigned)count;
    stats->dropped = dropped;
}

/* Two-sided 95 % points of Student's t for 1 .. 30 degrees of freedom. */
static double student_t95(size_t degrees)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                   2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    size_t rows = sizeof(table) / sizeof(table[0]);

    return degrees <= rows ? table[degrees - 1] : 1.960 + 2.5 / (double)degrees;
}

struct mean_interval statistics_mean_interval(const double *values, size_t count)
{
    double sum = 0;
    double squares = 0;

    if (count < 2)
        return (struct mean_interval){NAN, NAN, NAN};
    for (size_t index = 0; index < count; index++)
        sum += values[index];
    double mean = sum / (double)count;

    for (size_t index = 0; index < count; index++)
        squares += (values[index] - mean) * (values[index] - mean);
    double error = sqrt(squares / (double)(count - 1) / (double)count) * student_t95(count - 1);

    return (struct mean_interval){mean, mean - error, mean + error};
}
