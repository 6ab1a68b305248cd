/* SPDX-License-Identifier: Apache-2.0 */
#include "base/statistics.h"
#include "rows/parts.h"

/* Workers that got less of the CPUs shared them with other work: their rates are its rates, too. */
#define CPU_SHARE_MIN 0.9

static bool is_quiet(const struct rows_round *round)
{
    return round->cpu_share >= CPU_SHARE_MIN && !isnan(round->rows_per_second);
}

/* Member by member: the median round of one figure need not be that of another. */
static struct rows_round median_of(const struct rows_round *rounds, bool quiet)
{
    double rates[ROWS_ROUNDS_MAX], p50[ROWS_ROUNDS_MAX], p90[ROWS_ROUNDS_MAX], p99[ROWS_ROUNDS_MAX];
    double shares[ROWS_ROUNDS_MAX];
    size_t count = 0;

    for (unsigned round = 0; round < ROWS_ROUNDS_MAX; round++) {
        if (isnan(rounds[round].rows_per_second) || (quiet && !is_quiet(&rounds[round])))
            continue;
        rates[count] = rounds[round].rows_per_second;
        p50[count] = rounds[round].ns_p50;
        p90[count] = rounds[round].ns_p90;
        p99[count] = rounds[round].ns_p99;
        shares[count++] = rounds[round].cpu_share;
    }
    return (struct rows_round){statistics_median(rates, count), statistics_median(p50, count),
                               statistics_median(p90, count), statistics_median(p99, count),
                               statistics_median(shares, count)};
}

static void compare(struct row_measurement *measurement, const struct row_measurement *base)
{
    double logarithms[ROWS_ROUNDS_MAX];

    measurement->pairs = 0;
    for (unsigned round = 0; base != NULL && round < ROWS_ROUNDS_MAX; round++)
        if (is_quiet(&measurement->rounds[round]) && is_quiet(&base->rounds[round]))
            logarithms[measurement->pairs++] =
                log(measurement->rounds[round].rows_per_second / base->rounds[round].rows_per_second);
    struct mean_interval interval = statistics_mean_interval(logarithms, measurement->pairs);

    measurement->ratio = exp(interval.mean);
    measurement->ratio_low = exp(interval.low);
    measurement->ratio_high = exp(interval.high);
}

/* The same rows in base pages, or NULL. */
static const struct row_measurement *find_base(const struct rows_result *result, const struct rows_spec *spec)
{
    for (size_t index = 0; index < result->measurement_count; index++) {
        const struct row_measurement *found = &result->measurements[index];

        if (found->backing.kind == BACKING_BASE && found->spec.row_bytes == spec->row_bytes &&
            found->spec.keys == spec->keys && found->spec.read == spec->read && found->spec.mode == spec->mode &&
            found->spec.workers == spec->workers)
            return found;
    }
    return NULL;
}

void rows_conclude_rounds(struct rows_result *result)
{
    for (size_t index = 0; index < result->measurement_count; index++) {
        struct row_measurement *measurement = &result->measurements[index];
        bool is_base = measurement->backing.kind == BACKING_BASE;

        measurement->median = median_of(measurement->rounds, true);
        if (isnan(measurement->median.rows_per_second)) {
            measurement->median = median_of(measurement->rounds, false);
            if (measurement->verdict.status == STATUS_OK)
                verdict_set(&measurement->verdict, STATUS_OK,
                            "CPU contention: other work left the workers %.0f %% of the CPUs in every round",
                            100 * measurement->median.cpu_share);
        }
        compare(measurement, is_base ? NULL : find_base(result, &measurement->spec));
    }
}
