/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry_steps.h"

#include "statistics.h"
#include "tlb.h"
#include "tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LADDER_PAGES_MAX = 16384,     /* four times the largest second level known (4096): room for the rise past it */
    HUGE_LADDER_PAGES_MAX = 8192, /* as above for the 2048 to 4096 entries that hold 2M; 16 TiB of addresses for 1G */
    MAPS_KEPT_FREE = 2048,        /* of vm.max_map_count, for everything else in this process */
};

#define COARSE_STEP 1.122462048 /* sixth root of 2 */

size_t geometry_pages_max(const struct backing *backing)
{
    const size_t wanted = backing->kind == BACKING_BASE ? LADDER_PAGES_MAX : HUGE_LADDER_PAGES_MAX;
    const int64_t listed = tree_read_number("", "/proc/sys/vm/max_map_count");
    const unsigned long long maps = listed > 0 ? (unsigned long long)listed : 65530; /* the kernel's default */
    const size_t allowed = maps > 2ull * MAPS_KEPT_FREE ? (size_t)maps - MAPS_KEPT_FREE : MAPS_KEPT_FREE;

    return wanted < allowed ? wanted : allowed;
}

int geometry_open_window(const struct geometry_work *work, const struct backing *backing, uint64_t stride_pages,
                         size_t pages_max, struct window *window, struct verdict *verdict)
{
    const struct window_request request = {.page_bytes = backing->page_bytes,
                                           .base_bytes = work->session->base_page_bytes,
                                           .stride_pages = stride_pages,
                                           .pages_max = pages_max,
                                           .slots = work->slots};

    if (window_open(window, &request, verdict) != 0) {
        return -1;
    }
    if (window_frame_bytes(window) > work->result->peak_mapped_bytes) {
        work->result->peak_mapped_bytes = window_frame_bytes(window);
    }
    return 0;
}

struct knee geometry_read_knee(const struct geometry_work *work, enum ladder_statistic statistic)
{
    struct knee_point points[LADDER_POINTS_MAX];

    return knee_find(points, ladder_knee_points(work->ladder, statistic, work->l1_hit_ns, points));
}

void geometry_add_points(struct ladder *ladder, double from, double to)
{
    double pages = from;

    while (pages <= to) {
        ladder_add_point(ladder, (uint64_t)llround(pages));
        pages *= COARSE_STEP;
    }
}

const char *geometry_layout_name(const struct geometry_work *work)
{
    return work->slots == WINDOW_SLOTS_LINES ? "distinct" : "aliased";
}

int geometry_add_level(struct geometry_work *work, const struct tlb_level *level, struct verdict *verdict)
{
    if (tlb_levels_add(&work->result->levels, level) != 0) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    return 0;
}
