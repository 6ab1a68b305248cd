/* SPDX-License-Identifier: Apache-2.0 */
#include "latency/result.h"
#include "output/json.h"
#include "output/to_json.h"
#include "pressure/probe.h"
#include "pressure/result.h"

static void pressure_to_json(struct json *j, const char *key, const struct pressure_result *result)
{
    json_begin_object(j, key);
    verdict_to_json(&result->verdict, j);
    json_u64(j, "region_bytes", result->region_bytes);
    json_text_or_null(j, "region_backing", result->region_backing);
    json_u64(j, "lines_per_page", PROBE_LINES_PER_PAGE);
    json_begin_array(j, "points");
    for (size_t index = 0; index < result->point_count; index++) {
        const struct pressure_point *point = &result->points[index];

        json_begin_object(j, NULL);
        backing_to_json(j, point->backing, point->kind, point->page_bytes);
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

void latency_to_json(struct json *j, const char *key, const struct latency_result *result,
                     const struct pressure_result *pressure)
{
    json_begin_object(j, key);
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
    pressure_to_json(j, "pressure", pressure);
    json_u64(j, "peak_mapped_bytes",
             result->peak_mapped_bytes > pressure->peak_mapped_bytes ? result->peak_mapped_bytes
                                                                     : pressure->peak_mapped_bytes);
    json_end_object(j);
}
