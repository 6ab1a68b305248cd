/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"
#include "engine/curve.h"
#include "memory/backing.h"
#include "output/json.h"
#include "output/to_json.h"

void verdict_to_json(const struct verdict *verdict, struct json *j)
{
    json_string(j, "status", status_name(verdict->status));
    json_text_or_null(j, "reason", verdict->reason);
}

void backing_to_json(struct json *j, const char *name, enum backing_kind kind, uint64_t page_bytes)
{
    json_string(j, "backing", name);
    json_string(j, "backing_kind", backing_kind_name(kind));
    json_u64(j, "page_bytes", page_bytes);
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

void curves_to_json(struct json *j, const struct curve_list *curves)
{
    json_begin_array(j, "curves");
    for (size_t index = 0; index < curves->count; index++) {
        const struct curve *curve = &curves->items[index];

        json_begin_object(j, NULL);
        json_string(j, "name", curve->name);
        json_string(j, "x_name", curve->x_name);
        backing_to_json(j, curve->backing, curve->kind, curve->page_bytes);
        json_string(j, "layout", curve->layout);
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
