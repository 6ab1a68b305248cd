/* SPDX-License-Identifier: Apache-2.0 */
/* A measured series: what was varied, over which page size, and the statistics of each point. */
#pragma once

#include "base/statistics.h"
#include "base/verdict.h"
#include "memory/backing.h"

#include <stddef.h>
#include <stdint.h>

struct curve_point {
    uint64_t x;
    struct point_stats stats;
};

struct curve {
    char name[64];
    const char *x_name; /* "footprint_bytes", "pages", "hot_lines" */
    struct backing backing;
    const char *layout;      /* "line_per_page", "random_64b", "aliased", "distinct", "packed", "scatter" */
    double granted_fraction; /* part of the mapping that smaps proves to be of page_bytes; NAN = unknown */
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
