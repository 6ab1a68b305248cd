/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sweep_curve.h"

#include <stdlib.h>

size_t sweep_knee_points(const struct sweep *sweep, double hit_ns, struct knee_point points[SWEEP_POINTS_MAX])
{
    for (size_t index = 0; index < sweep->count; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];
        double control_ns = cell->packed.stats.batches > 0 ? cell->packed.stats.ns_min - hit_ns : 0;

        points[index] = (struct knee_point){.pages = cell->pages, .ns = cell->view.stats.ns_min - control_ns};
    }
    return sweep->count;
}

int sweep_to_curve(const struct sweep *sweep, bool packed, struct curve *curve)
{
    curve->x_name = "pages";
    curve->points = calloc(sweep->count, sizeof(*curve->points));
    if (curve->points == NULL)
        return -1;
    curve->point_count = sweep->count;
    for (size_t index = 0; index < sweep->count; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];

        curve->points[index].x = cell->pages;
        curve->points[index].stats = packed ? cell->packed.stats : cell->view.stats;
    }
    return 0;
}
