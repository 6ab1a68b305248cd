/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry/result.h"
#include "output/json.h"
#include "output/to_json.h"

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
        backing_to_json(j, effective_page->backing, effective_page->kind, effective_page->page_bytes);
        json_u64_or_null(j, "granule_bytes", effective_page->entry_bytes, 0);
        verdict_to_json(&effective_page->verdict, j);
        json_end_object(j);
    }
    json_end_array(j);
}

void geometry_to_json(struct json *j, const char *key, const struct geometry_result *result)
{
    json_begin_object(j, key);
    verdict_to_json(&result->verdict, j);
    json_string(j, "method", alias_method_name(result->method));
    json_double(j, "alias_cost_ns", result->alias_cost_ns);
    json_bool(j, "coalescing_seen", result->coalescing_seen);
    json_text_or_null(j, "coalescing", result->coalescing);
    json_double(j, "core_alone_fraction", result->core_alone_fraction);
    tlb_levels_to_json(&result->levels, j, "levels");
    granules_to_json(j, result);
    penalties_to_json(j, result);
    json_begin_object(j, "clock");
    json_double(j, "core_hz", result->clock.core_hz);
    json_double(j, "l1_hit_ns", result->clock.l1_hit_ns);
    json_double(j, "l1_hit_cycles", result->clock.l1_hit_cycles);
    json_end_object(j);
    tlb_disagreements_to_json(result->disagreements, result->disagreement_count, j, "disagreements");
    curves_to_json(j, &result->curves);
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}
