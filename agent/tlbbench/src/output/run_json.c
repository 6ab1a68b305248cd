/* SPDX-License-Identifier: Apache-2.0 */
/* The document's results: a member per section that ran. */
#include "output/to_json.h"
#include "pressure/probe.h"

static void backing_to_json(struct json *j, const struct backing *backing)
{
    json_string(j, "backing", backing->name);
    json_string(j, "backing_kind", BACKING_KIND_NAMES[backing->kind]);
    json_u64(j, "page_bytes", backing->page_bytes);
}

static void curves_to_json(struct json *j, const struct curve_list *curves)
{
    for (size_t index = json_begin_list(j, "curves"); json_next(j, index, curves->count); index++) {
        const struct curve *curve = &curves->items[index];

        JSON_MEMBERS(j, curve, name, x_name);
        backing_to_json(j, &curve->backing);
        JSON_MEMBERS(j, curve, layout);
        if (curve->footprint_bytes > 0)
            JSON_MEMBERS(j, curve, footprint_bytes);
        JSON_MEMBERS(j, curve, granted_fraction);
        verdict_to_json(&curve->verdict, j);
        for (size_t point = json_begin_list(j, "points"); json_next(j, point, curve->point_count); point++) {
            JSON_MEMBERS(j, &curve->points[point], x);
            JSON_MEMBERS(j, &curve->points[point].stats, ns_min, ns_p10, ns_p50, ns_p90, ns_mad, batches, dropped);
        }
    }
}

static void penalties_to_json(struct json *j, const struct geometry_result *result)
{
    for (size_t index = json_begin_list(j, "penalty"); json_next(j, index, result->penalty_count); index++) {
        const struct penalty *penalty = &result->penalties[index];

        JSON_MEMBERS(j, penalty, level, page_bytes);
        json_duration(j, "ns", penalty->ns);
        json_duration(j, "ns_min", penalty->ns_min);
        json_duration(j, "ns_max", penalty->ns_max);
        json_duration(j, "cycles", penalty->cycles);
    }
}

static void granules_to_json(struct json *j, const struct geometry_result *result)
{
    for (size_t index = json_begin_list(j, "effective_granule"); json_next(j, index, result->effective_page_count);
         index++) {
        const struct effective_page *effective_page = &result->effective_pages[index];

        backing_to_json(j, &effective_page->backing);
        json_u64_or_null(j, "granule_bytes", effective_page->entry_bytes, 0);
        verdict_to_json(&effective_page->verdict, j);
    }
}

static void geometry_to_json(struct json *j, const struct geometry_result *result)
{
    json_begin_object(j, "geometry");
    verdict_to_json(&result->verdict, j);
    json_string(j, "method", ALIAS_METHOD_NAMES[result->method]);
    JSON_MEMBERS(j, result, alias_cost_ns, coalescing_seen, coalescing, core_alone_fraction);
    tlb_levels_to_json(&result->levels, j);
    granules_to_json(j, result);
    penalties_to_json(j, result);
    json_begin_object(j, "clock");
    JSON_MEMBERS(j, &result->clock, core_hz, l1_hit_ns, l1_hit_cycles);
    json_end_object(j);
    witness_to_json(&result->witness, j);
    tlb_disagreements_to_json(&result->disagreements, j);
    curves_to_json(j, &result->curves);
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}

static void pressure_to_json(struct json *j, const struct pressure_result *result)
{
    json_begin_object(j, "pressure");
    verdict_to_json(&result->verdict, j);
    JSON_MEMBERS(j, result, region_bytes, region_backing);
    json_u64(j, "lines_per_page", PROBE_LINES_PER_PAGE);
    for (size_t index = json_begin_list(j, "points"); json_next(j, index, result->point_count); index++) {
        const struct pressure_point *point = &result->points[index];

        backing_to_json(j, &point->backing);
        JSON_MEMBERS(j, point, footprint_bytes, lines_between, wait_ns, period_ns);
        json_duration(j, "base_ns_p50", point->base_ns_p50);
        json_duration(j, "ns_p50", point->ns_p50);
        JSON_MEMBERS(j, point, delta_ns, ci95_low_ns, ci95_high_ns, pairs);
    }
    json_double(j, "duration_seconds", result->duration_seconds);
    json_end_object(j);
}

static void latency_to_json(struct json *j, const struct run_result *run)
{
    const struct latency_result *result = run->latency;
    uint64_t peak = result->peak_mapped_bytes;

    json_begin_object(j, "latency");
    verdict_to_json(&result->verdict, j);
    curves_to_json(j, &result->curves);
    for (size_t index = json_begin_list(j, "paired_deltas"); json_next(j, index, result->delta_count); index++)
        JSON_MEMBERS(j, &result->deltas[index], backing, layout, x, delta_ns, ci95_low_ns, ci95_high_ns, pairs);
    pressure_to_json(j, run->pressure);
    json_begin_object(j, "walks");
    verdict_to_json(&run->walks->verdict, j);
    JSON_MEMBERS(j, run->walks, cpu_node);
    curves_to_json(j, &run->walks->curves);
    JSON_MEMBERS(j, run->walks, duration_seconds);
    json_end_object(j);
    note_peak(&peak, run->pressure->peak_mapped_bytes);
    note_peak(&peak, run->walks->peak_mapped_bytes);
    json_u64(j, "peak_mapped_bytes", peak);
    json_end_object(j);
}

static void measurement_to_json(struct json *j, const struct row_measurement *measurement)
{
    JSON_MEMBERS(j, &measurement->spec, row_bytes);
    json_string(j, "keys", ROW_KEYS_NAMES[measurement->spec.keys]);
    json_string(j, "read", ROW_READ_NAMES[measurement->spec.read]);
    JSON_MEMBERS(j, &measurement->spec, workers);
    json_string(j, "mode", ROW_MODE_NAMES[measurement->spec.mode]);
    backing_to_json(j, &measurement->backing);
    JSON_MEMBERS(j, measurement, segment_bytes);
    JSON_MEMBERS(j, &measurement->median, rows_per_second, ns_p50, ns_p90, ns_p99, cpu_share);
    json_double(j, "ratio_to_base", measurement->ratio);
    json_double(j, "ratio_ci95_low", measurement->ratio_low);
    json_double(j, "ratio_ci95_high", measurement->ratio_high);
    JSON_MEMBERS(j, measurement, pairs);
    json_u64_or_null(j, "vm_pte_bytes_per_process", measurement->vm_pte_bytes_per_process, UINT64_MAX);
    json_u64_or_null(j, "vm_pte_bytes_total", measurement->vm_pte_bytes_total, UINT64_MAX);
    JSON_MEMBERS(j, measurement, first_touch_seconds, first_touch_cpu_seconds);
    verdict_to_json(&measurement->verdict, j);
}

static void rows_to_json(struct json *j, const struct rows_result *result)
{
    json_begin_object(j, "rows");
    verdict_to_json(&result->verdict, j);
    for (size_t index = json_begin_list(j, "measurements"); json_next(j, index, result->measurement_count); index++)
        measurement_to_json(j, &result->measurements[index]);
    for (size_t index = json_begin_list(j, "break_even"); json_next(j, index, result->break_even_count); index++) {
        const struct break_even *item = &result->break_evens[index];

        JSON_MEMBERS(j, item, page_bytes, segment_bytes, connections, connections_per_idle_page, rounding_bytes,
                     idle_pool_bytes);
        json_u64_or_null(j, "saved_bytes_per_connection", item->saved_bytes_per_connection, UINT64_MAX);
        JSON_MEMBERS(j, item, text);
    }
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}

static void scatter_to_json(struct json *j, const struct scatter_result *result)
{
    json_begin_object(j, "scatter");
    verdict_to_json(&result->verdict, j);
    json_begin_object(j, "crossing");
    json_i64_or_null(j, "hot_lines", result->crossing_hot_lines);
    json_string(j, "status", STATUS_TEXTS[result->crossing_status].name);
    json_text_or_null(j, "backing", result->crossing_backing);
    json_u64_or_null(j, "tested_min", result->tested_min, 0); /* a test begins at one line or more */
    json_u64_or_null(j, "tested_max", result->tested_max, 0);
    json_end_object(j);
    curves_to_json(j, &result->curves);
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}

static void reservation_to_json(struct json *j, const struct reservation *reservation)
{
    json_begin_object(j, "reservation");
    verdict_to_json(&reservation->verdict, j);
    for (size_t index = json_begin_list(j, "pools"); json_next(j, index, reservation->pool_count); index++) {
        const struct reserve_pool *pool = &reservation->pools[index];

        JSON_MEMBERS(j, pool, page_bytes, node);
        json_i64(j, "former_pages", pool->previous);
        json_i64(j, "target_pages", pool->target);
        json_i64_or_null(j, "got_pages", pool->got);
    }
    json_end_object(j);
}

void run_to_json(struct json *j, const struct run_result *result)
{
    if (result->rss_outside_bytes > 0)
        json_u64(j, "rss_outside_bytes", result->rss_outside_bytes);
    if (result->reservation != NULL)
        reservation_to_json(j, result->reservation);
    if (result->geometry != NULL)
        geometry_to_json(j, result->geometry);
    if (result->latency != NULL)
        latency_to_json(j, result);
    if (result->rows != NULL)
        rows_to_json(j, result->rows);
    if (result->scatter != NULL)
        scatter_to_json(j, result->scatter);
}
