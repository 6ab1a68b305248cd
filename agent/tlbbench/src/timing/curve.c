/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/curve.h"

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

/* --- what a measured sweep is read as ----------------------------------------------------------------------------- */

size_t sweep_knee_points(const struct sweep *sweep, double hit_ns, struct knee_point points[SWEEP_POINTS_MAX])
{
    for (size_t index = 0; index < sweep->count; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];
        double control_ns = cell->packed.stats.batches > 0 ? cell->packed.stats.ns_min - hit_ns : 0;

        points[index] = (struct knee_point){.pages = cell->pages, .ns = cell->view.stats.ns_min - control_ns};
    }
    return sweep->count;
}

struct knee_interval sweep_find_interval(const struct sweep *sweep, double hit_ns, uint64_t from_pages)
{
    struct knee_point points[SWEEP_POINTS_MAX];
    double medians[SWEEP_POINTS_MAX];
    size_t count = sweep_knee_points(sweep, hit_ns, points);

    for (size_t index = 0; index < count; index++) {
        const struct point_stats *stats = &sweep->cells[index].view.stats;

        medians[index] = points[index].ns + stats->ns_p50 - stats->ns_min;
    }
    return knee_find_interval(points, medians, count, from_pages);
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
