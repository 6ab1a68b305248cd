/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/curve.h"

#include <math.h>
#include <stdlib.h>

struct curve *curve_list_add(struct curve_list *list, const struct backing *backing, const char *layout,
                             const struct verdict *verdict)
{
    struct curve *grown = realloc(list->items, (list->count + 1) * sizeof(*grown));

    if (grown == NULL)
        return NULL;
    list->items = grown;
    grown[list->count] = (struct curve){
        .x_name = "pages", .backing = *backing, .layout = layout, .granted_fraction = NAN, .verdict = *verdict};
    return &grown[list->count++];
}

void curve_list_free(struct curve_list *list)
{
    for (size_t index = 0; index < list->count; index++)
        free(list->items[index].points);
    free(list->items);
    *list = (struct curve_list){0};
}
