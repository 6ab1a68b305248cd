/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"

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
