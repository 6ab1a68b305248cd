/* SPDX-License-Identifier: Apache-2.0 */
/* The document's results: a member per section that ran. */
#include "base/units.h"
#include "output/to_json.h"
#include "pressure/probe.h"

static void backing_to_json(struct json *j, const struct backing *backing)
{
    json_string(j, "backing", backing->name);
    json_string(j, "backing_kind", BACKING_KIND_NAMES[backing->kind]);
    json_u64(j, "page_bytes", backing->page_bytes);
}

static void point_to_json(struct json *j, const struct curve_point *point)
{
    json_begin_object(j, NULL);
    json_u64(j, "x", point->x);
    json_double(j, "ns_min", point->stats.ns_min);
    json_double(j, "ns_p10", point->stats.ns_p10);
    json_double(j, "ns_p50", point->stats.ns_p50);
    json_double(j, "ns_p90", point->stats.ns_p90);
    json_double(j, "ns_mad", point->stats.ns_mad);
    json_u64(j, "batches", point->stats.batches);
    json_u64(j, "dropped", point->stats.dropped);
    json_end_object(j);
}

static void curves_to_json(struct json *j, const struct curve_list *curves)
{
    json_begin_array(j, "curves");
    for (size_t index = 0; index < curves->count; index++) {
        const struct curve *curve = &curves->items[index];

        json_begin_object(j, NULL);
        json_string(j, "name", curve->name);
        json_string(j, "x_name", curve->x_name);
        backing_to_json(j, &curve->backing);
        json_string(j, "layout", curve->layout);
        if (curve->footprint_bytes > 0)
            json_u64(j, "footprint_bytes", curve->footprint_bytes);
        json_double(j, "granted_fraction", curve->granted_fraction);
        verdict_to_json(&curve->verdict, j);
        json_begin_array(j, "points");
        for (size_t point = 0; point < curve->point_count; point++)
            point_to_json(j, &curve->points[point]);
        json_end_array(j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void penalties_to_json(struct json *j, const struct geometry_result *result)
{
    json_begin_array(j, "penalty");
    for (size_t index = 0; index < result->penalty_count; index++) {
        const struct penalty *penalty = &result->penalties[index];

        json_begin_object(j, NULL);
        json_string(j, "level", penalty->level);
        json_u64(j, "page_bytes", penalty->page_bytes);
        json_duration(j, "ns", penalty->ns);
        json_duration(j, "ns_min", penalty->ns_min);
        json_duration(j, "ns_max", penalty->ns_max);
        json_duration(j, "cycles", penalty->cycles);
        json_end_object(j);
    }
    json_end_array(j);
}

static void granules_to_json(struct json *j, const struct geometry_result *result)
{
    json_begin_array(j, "effective_granule");
    for (size_t index = 0; index < result->effective_page_count; index++) {
        const struct effective_page *effective_page = &result->effective_pages[index];

        json_begin_object(j, NULL);
        backing_to_json(j, &effective_page->backing);
        json_u64_or_null(j, "granule_bytes", effective_page->entry_bytes, 0);
        verdict_to_json(&effective_page->verdict, j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void witness_to_json(struct json *j, const struct walk_witness *witness)
{
    json_begin_object(j, "counted_walks");
    verdict_to_json(&witness->verdict, j);
    json_u64_or_null(j, "held_pages", witness->held_pages, 0);
    json_double(j, "held_fraction", witness->held_fraction);
    json_u64_or_null(j, "missed_pages", witness->missed_pages, 0);
    json_double(j, "missed_fraction", witness->missed_fraction);
    json_end_object(j);
}

static void geometry_to_json(struct json *j, const struct geometry_result *result)
{
    json_begin_object(j, "geometry");
    verdict_to_json(&result->verdict, j);
    json_string(j, "method", ALIAS_METHOD_NAMES[result->method]);
    json_double(j, "alias_cost_ns", result->alias_cost_ns);
    json_bool(j, "coalescing_seen", result->coalescing_seen);
    json_text_or_null(j, "coalescing", result->coalescing);
    json_double(j, "core_alone_fraction", result->core_alone_fraction);
    tlb_levels_to_json(&result->levels, j);
    granules_to_json(j, result);
    penalties_to_json(j, result);
    json_begin_object(j, "clock");
    json_double(j, "core_hz", result->clock.core_hz);
    json_double(j, "l1_hit_ns", result->clock.l1_hit_ns);
    json_double(j, "l1_hit_cycles", result->clock.l1_hit_cycles);
    json_end_object(j);
    witness_to_json(j, &result->witness);
    tlb_disagreements_to_json(&result->disagreements, j);
    curves_to_json(j, &result->curves);
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}

static void pressure_to_json(struct json *j, const struct pressure_result *result)
{
    json_begin_object(j, "pressure");
    verdict_to_json(&result->verdict, j);
    json_u64(j, "region_bytes", result->region_bytes);
    json_text_or_null(j, "region_backing", result->region_backing);
    json_u64(j, "lines_per_page", PROBE_LINES_PER_PAGE);
    json_begin_array(j, "points");
    for (size_t index = 0; index < result->point_count; index++) {
        const struct pressure_point *point = &result->points[index];

        json_begin_object(j, NULL);
        backing_to_json(j, &point->backing);
        json_u64(j, "footprint_bytes", point->footprint_bytes);
        json_u64(j, "lines_between", point->lines_between);
        json_u64(j, "wait_ns", point->wait_ns);
        json_double(j, "period_ns", point->period_ns);
        json_duration(j, "base_ns_p50", point->base_ns_p50);
        json_duration(j, "ns_p50", point->ns_p50);
        json_double(j, "delta_ns", point->delta_ns);
        json_double(j, "ci95_low_ns", point->ci95_low_ns);
        json_double(j, "ci95_high_ns", point->ci95_high_ns);
        json_u64(j, "pairs", point->pairs);
        json_end_object(j);
    }
    json_end_array(j);
    json_double(j, "duration_seconds", result->duration_seconds);
    json_end_object(j);
}

static void walks_to_json(struct json *j, const struct walks_result *result)
{
    json_begin_object(j, "walks");
    verdict_to_json(&result->verdict, j);
    json_i64_or_null(j, "cpu_node", result->cpu_node);
    curves_to_json(j, &result->curves);
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
    json_begin_array(j, "paired_deltas");
    for (size_t index = 0; index < result->delta_count; index++) {
        const struct paired_delta *delta = &result->deltas[index];

        json_begin_object(j, NULL);
        json_string(j, "backing", delta->backing);
        json_string(j, "layout", delta->layout);
        json_u64(j, "x", delta->x);
        json_double(j, "delta_ns", delta->delta_ns);
        json_double(j, "ci95_low_ns", delta->ci95_low_ns);
        json_double(j, "ci95_high_ns", delta->ci95_high_ns);
        json_u64(j, "pairs", delta->pairs);
        json_end_object(j);
    }
    json_end_array(j);
    pressure_to_json(j, run->pressure);
    walks_to_json(j, run->walks);
    note_peak(&peak, run->pressure->peak_mapped_bytes);
    note_peak(&peak, run->walks->peak_mapped_bytes);
    json_u64(j, "peak_mapped_bytes", peak);
    json_end_object(j);
}

static void measurement_to_json(struct json *j, const struct row_measurement *measurement)
{
    json_begin_object(j, NULL);
    json_u64(j, "row_bytes", measurement->spec.row_bytes);
    json_string(j, "keys", ROW_KEYS_NAMES[measurement->spec.keys]);
    json_string(j, "read", ROW_READ_NAMES[measurement->spec.read]);
    json_u64(j, "workers", measurement->spec.workers);
    json_string(j, "mode", ROW_MODE_NAMES[measurement->spec.mode]);
    backing_to_json(j, &measurement->backing);
    json_u64(j, "segment_bytes", measurement->segment_bytes);
    json_double(j, "rows_per_second", measurement->median.rows_per_second);
    json_double(j, "ns_p50", measurement->median.ns_p50);
    json_double(j, "ns_p90", measurement->median.ns_p90);
    json_double(j, "ns_p99", measurement->median.ns_p99);
    json_double(j, "cpu_share", measurement->median.cpu_share);
    json_double(j, "ratio_to_base", measurement->ratio);
    json_double(j, "ratio_ci95_low", measurement->ratio_low);
    json_double(j, "ratio_ci95_high", measurement->ratio_high);
    json_u64(j, "pairs", measurement->pairs);
    json_u64_or_null(j, "vm_pte_bytes_per_process", measurement->vm_pte_bytes_per_process, UINT64_MAX);
    json_u64_or_null(j, "vm_pte_bytes_total", measurement->vm_pte_bytes_total, UINT64_MAX);
    json_double(j, "first_touch_seconds", measurement->first_touch_seconds);
    json_double(j, "first_touch_cpu_seconds", measurement->first_touch_cpu_seconds);
    verdict_to_json(&measurement->verdict, j);
    json_end_object(j);
}

static void rows_to_json(struct json *j, const struct rows_result *result)
{
    json_begin_object(j, "rows");
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
    json_begin_array(j, "pools");
    for (size_t index = 0; index < reservation->pool_count; index++) {
        const struct reserve_pool *pool = &reservation->pools[index];

        json_begin_object(j, NULL);
        json_u64(j, "page_bytes", pool->page_bytes);
        json_i64_or_null(j, "node", pool->node);
        json_i64(j, "former_pages", pool->previous);
        json_i64(j, "target_pages", pool->target);
        json_i64_or_null(j, "got_pages", pool->got);
        json_end_object(j);
    }
    json_end_array(j);
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
