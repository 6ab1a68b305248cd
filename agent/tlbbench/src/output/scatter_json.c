/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"
#include "output/json.h"
#include "output/to_json.h"
#include "scatter/scatter.h"

void scatter_to_json(struct json *j, const char *key, const struct scatter_result *result)
{
    json_begin_object(j, key);
    verdict_to_json(&result->verdict, j);
    json_begin_object(j, "crossing");
    json_i64_or_null(j, "hot_lines", result->crossing_hot_lines);
    json_string(j, "status", status_name(result->crossing_status));
    json_text_or_null(j, "backing", result->crossing_backing);
    json_u64_or_null(j, "tested_min", result->tested_min, 0); /* a test begins at one line or more */
    json_u64_or_null(j, "tested_max", result->tested_max, 0);
    json_end_object(j);
    curves_to_json(j, &result->curves);
    json_u64(j, "peak_mapped_bytes", result->peak_mapped_bytes);
    json_end_object(j);
}
