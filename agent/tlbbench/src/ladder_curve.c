/* SPDX-License-Identifier: Apache-2.0 */
/* What a measured ladder is read as: points for the knee functions, curves for the document. */
#include "ladder.h"

#include <math.h>
#include <stdlib.h>

static double chosen(const struct point_stats *stats, enum ladder_statistic statistic)
{
    return statistic == LADDER_MEDIAN ? stats->ns_p50 : stats->ns_min;
}

size_t ladder_knee_points(const struct ladder *ladder, enum ladder_statistic statistic, double hit_ns,
                          struct knee_point points[LADDER_POINTS_MAX])
{
    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];
        const double control_ns = cell->packed.stats.batches > 0 ? chosen(&cell->packed.stats, statistic) - hit_ns : 0;

        points[index] = (struct knee_point){
            .pages = cell->pages,
            .ns = chosen(&cell->view.stats, statistic) - control_ns,
            .mad = statistic == LADDER_MEDIAN ? cell->view.stats.ns_mad : 0,
        };
    }
    return ladder->count;
}

double ladder_dropped_share(const struct ladder *ladder)
{
    size_t kept = 0;
    size_t dropped = 0;

    for (size_t index = 0; index < ladder->count; index++) {
        kept += ladder->cells[index].view.count + ladder->cells[index].view.shared_count;
        kept += ladder->cells[index].packed.count + ladder->cells[index].packed.shared_count;
        dropped += ladder->cells[index].view.dropped + ladder->cells[index].packed.dropped;
    }
    return kept + dropped > 0 ? (double)dropped / (double)(kept + dropped) : 0;
}

int ladder_to_curve(const struct ladder *ladder, bool packed, struct curve *curve)
{
    curve->x_name = "pages";
    curve->points = calloc(ladder->count, sizeof(*curve->points));
    if (curve->points == NULL) {
        return -1;
    }
    curve->point_count = ladder->count;
    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        curve->points[index].x = cell->pages;
        curve->points[index].stats = packed ? cell->packed.stats : cell->view.stats;
    }
    return 0;
}

struct curve *curve_list_add(struct curve_list *list)
{
    struct curve *const grown = realloc(list->items, (list->count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return NULL;
    }
    list->items = grown;
    grown[list->count] = (struct curve){.x_name = "pages", .layout = "", .granted_fraction = NAN};
    return &grown[list->count++];
}

void curve_list_free(struct curve_list *list)
{
    for (size_t index = 0; index < list->count; index++) {
        free(list->items[index].points);
    }
    free(list->items);
    *list = (struct curve_list){0};
}
