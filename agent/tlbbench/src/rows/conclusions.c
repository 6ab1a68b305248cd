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

/* Page-table bytes of one process that touched the whole segment; UINT64_MAX when not measured. */
static uint64_t tables_of(const struct rows_result *result, enum backing_kind kind, uint64_t page_bytes)
{
    for (size_t index = 0; index < result->measurement_count; index++) {
        const struct row_measurement *item = &result->measurements[index];

        if (item->backing.kind == kind && item->backing.page_bytes == page_bytes && item->spec.mode == MODE_PROCESSES &&
            item->vm_pte_bytes_per_process != UINT64_MAX)
            return item->vm_pte_bytes_per_process;
    }
    return UINT64_MAX;
}

int64_t rows_break_even_connections(uint64_t held_bytes, uint64_t saved_bytes)
{
    return (int64_t)(held_bytes / saved_bytes + 1);
}

static void fill(const struct rows_result *result, const struct rows_segment *segment, uint64_t base_page_bytes,
                 struct break_even *item)
{
    uint64_t base = tables_of(result, BACKING_BASE, base_page_bytes);
    uint64_t huge = tables_of(result, BACKING_HUGETLB, segment->backing.page_bytes);

    *item = (struct break_even){.page_bytes = segment->backing.page_bytes,
                                .segment_bytes = segment->bytes,
                                .connections = -1,
                                .connections_per_idle_page = -1,
                                .rounding_bytes = segment->mapped_bytes - segment->bytes,
                                .idle_pool_bytes = segment->idle_pool_bytes,
                                .saved_bytes_per_connection = UINT64_MAX};
    if (base == UINT64_MAX || huge == UINT64_MAX || base <= huge) {
        (void)snprintf(item->text, sizeof(item->text),
                       "unknown: page tables of processes were not measured for %s and base pages",
                       segment->backing.name);
        return;
    }
    item->saved_bytes_per_connection = base - huge;
    item->connections = rows_break_even_connections(item->rounding_bytes + item->idle_pool_bytes, base - huge);
    item->connections_per_idle_page = rows_break_even_connections(item->page_bytes - 1, base - huge);
    (void)snprintf(
        item->text, sizeof(item->text),
        "%s pages save %llu KiB of page tables per connection; rounding and idle pages hold %llu KiB, paid back "
        "from %lld on; one more idle page takes %lld",
        segment->backing.name, (unsigned long long)((base - huge) >> 10),
        (unsigned long long)((item->rounding_bytes + item->idle_pool_bytes) >> 10), (long long)item->connections,
        (long long)item->connections_per_idle_page);
}

int rows_find_break_even(struct rows_result *result, const struct rows_segment *segments, size_t segment_count,
                         uint64_t base_page_bytes)
{
    result->break_evens = calloc(segment_count > 0 ? segment_count : 1, sizeof(*result->break_evens));
    if (result->break_evens == NULL)
        return -1;
    for (size_t index = 0; index < segment_count; index++)
        if (segments[index].backing.kind == BACKING_HUGETLB && segments[index].verdict.status == STATUS_OK)
            fill(result, &segments[index], base_page_bytes, &result->break_evens[result->break_even_count++]);
    return 0;
}
