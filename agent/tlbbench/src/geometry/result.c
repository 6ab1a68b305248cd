/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry/result.h"

#include <stdlib.h>

const char *alias_method_name(enum alias_method method)
{
    static const char *const names[] = {[METHOD_ALIASED] = "aliased", [METHOD_DISTINCT_LINES] = "distinct_lines"};

    return names[method];
}

struct tlb_level *geometry_find_measured(struct geometry_result *result, unsigned level, uint64_t page_bytes)
{
    for (size_t index = 0; index < result->levels.count; index++) {
        struct tlb_level *item = &result->levels.items[index];

        if (item->source == SOURCE_MEASURED && item->level == level && item->page_bytes == page_bytes)
            return item;
    }
    return NULL;
}

void geometry_result_free(struct geometry_result *result)
{
    tlb_levels_free(&result->levels);
    curve_list_free(&result->curves);
    free(result->effective_pages);
    free(result->penalties);
    free(result->disagreements);
    *result = (struct geometry_result){0};
}
