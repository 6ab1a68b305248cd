/* SPDX-License-Identifier: Apache-2.0 */
#include "latency/result.h"

#include <stdlib.h>

const char *latency_curve_name(enum latency_curve curve)
{
    static const char *const names[LATENCY_CURVE_COUNT] = {[LAYOUT_LINE_PER_PAGE] = "line_per_page",
                                                           [LAYOUT_RANDOM_64B] = "random_64b",
                                                           [LAYOUT_PACKED] = "packed",
                                                           [LATENCY_PRESSURE] = "pressure"};

    return names[curve];
}

void latency_result_free(struct latency_result *result)
{
    curve_list_free(&result->curves);
    free(result->deltas);
    *result = (struct latency_result){0};
}
