/* SPDX-License-Identifier: Apache-2.0 */
#include "output/json.h"
#include "output/to_json.h"
#include "rows/result.h"

static void measurement_to_json(struct json *j, const struct row_measurement *measurement)
{
    json_begin_object(j, NULL);
    json_u64(j, "row_bytes", measurement->row_bytes);
    json_string(j, "keys", row_keys_name(measurement->keys));
    json_string(j, "read", row_read_name(measurement->read));
    json_u64(j, "workers", measurement->workers);
    json_string(j, "mode", row_mode_name(measurement->mode));
    backing_to_json(j, measurement->backing, measurement->kind, measurement->page_bytes);
    json_u64(j, "segment_bytes", measurement->segment_bytes);
    json_double(j, "rows_per_second", measurement->rows_per_second);
    json_double(j, "ns_p50", measurement->ns_p50);
    json_double(j, "ns_p90", measurement->ns_p90);
    json_double(j, "ns_p99", measurement->ns_p99);
    json_u64_or_null(j, "vm_pte_bytes_per_process", measurement->vm_pte_bytes_per_process, UINT64_MAX);
    json_u64_or_null(j, "vm_pte_bytes_total", measurement->vm_pte_bytes_total, UINT64_MAX);
    json_double(j, "first_touch_seconds", measurement->first_touch_seconds);
    json_double(j, "first_touch_cpu_seconds", measurement->first_touch_cpu_seconds);
    verdict_to_json(&measurement->verdict, j);
    json_end_object(j);
}

void rows_to_json(struct json *j, const char *key, const struct rows_result *result)
{
    json_begin_object(j, key);
    verdict_to_json(&result->verdict, j);
    json_begin_array(j, "measurements");
    for (size_t index = 0; index < result->measurement_count; index++)
        measurement_to_json(j, &result->measurements[index]);
    json_end_array(j);
    json_begin_array(j, "break_even");
    for (size_t index = 0; index < result->break_even_count; index++) {
        const struct break_even *item = &result->break_evens[index];

        json_begin_object(j, NULL);
        json_u64(j, "page_bytes", item->page_bytes);
        json_u64(j, "segment_bytes", item->segment_bytes);
        json_i64_or_null(j, "connections", item->connections);
        json_i64_or_null(j, "connections_per_idle_page", item->connections_per_idle_page);
        json_u64(j, "rounding_bytes", item->rounding_bytes);
        json_u64(j, "idle_pool_bytes", item->idle_pool_bytes);
        json_u64_or_null(j, "saved_bytes_per_connection", item->saved_bytes_per_connection, UINT64_MAX);
        json_string(j, "text", item->text);
        json_end_object(j);
    }
    json_end_array(j);
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}
