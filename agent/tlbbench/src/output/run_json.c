/* SPDX-License-Identifier: Apache-2.0 */
#include "output/json.h"
#include "output/run_result.h"
#include "output/to_json.h"

void run_to_json(struct json *j, const struct run_result *result)
{
    if (result->rss_outside_bytes > 0)
        json_u64(j, "rss_outside_bytes", result->rss_outside_bytes);
    if (result->reservation != NULL)
        reservation_to_json(j, "reservation", result->reservation);
    if (result->geometry != NULL)
        geometry_to_json(j, "geometry", result->geometry);
    if (result->latency != NULL)
        latency_to_json(j, "latency", result->latency, result->pressure);
    if (result->rows != NULL)
        rows_to_json(j, "rows", result->rows);
    if (result->scatter != NULL)
        scatter_to_json(j, "scatter", result->scatter);
}
