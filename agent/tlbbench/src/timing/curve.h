/* SPDX-License-Identifier: Apache-2.0 */
/* A measured series: what was varied, over which page size, and the statistics of each point. */
#pragma once

#include "timing/sweep.h"

struct curve_point {
    uint64_t x;
    struct point_stats stats;
};

struct curve {
    char name[64];
    const char *x_name; /* "footprint_bytes", "pages", "hot_lines" */
    struct backing backing;
    const char *layout;       /* "line_per_page", "random_64b", "aliased", "distinct", "packed", "scatter" */
    uint64_t footprint_bytes; /* of every point, where it is not what was varied; 0 = else */
    double granted_fraction;  /* part of the mapping that smaps proves to be of page_bytes; NAN = unknown */
    struct verdict verdict;
    struct curve_point *points;
    size_t point_count;
};

struct curve_list {
    struct curve *items;
    size_t count;
};

/* Appends a curve without points and returns it, or NULL when memory ran out. The caller gives it a name. */
struct curve *curve_list_add(struct curve_list *list, const struct backing *backing, const char *layout,
                             const struct verdict *verdict);
void curve_list_free(struct curve_list *list);

/* --- what a measured sweep is read as: points for the knee functions, curves for the document --------------------- */

/* Points as the knee functions want them: the control subtracted and `hit_ns` (an L1 hit) added back where there is a
 * control. The minimum stands for a point: replacement that is not exact LRU loses entries to some access permutations
 * and to other work on the core, and the best of many permutations is what the structure can hold. Returns the number
 * of points stored. */
size_t sweep_knee_points(const struct sweep *sweep, double hit_ns, struct knee_point points[SWEEP_POINTS_MAX]);

/* The interval of the sweep's rise behind `from_pages`. */
struct knee_interval sweep_find_interval(const struct sweep *sweep, double hit_ns, uint64_t from_pages);

/* Copies one side of the sweep into a curve. Returns 0, or -1 when memory ran out. */
int sweep_to_curve(const struct sweep *sweep, bool packed, struct curve *curve);
