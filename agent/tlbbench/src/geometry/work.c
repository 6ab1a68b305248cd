/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry/work.h"

#include "base/tree.h"
#include "timing/core_probe.h"

enum {
    SWEEP_PAGES_MAX = 16384,     /* four times the largest second level known (4096): room for the rise past it */
    HUGE_SWEEP_PAGES_MAX = 8192, /* as above for the 2048 to 4096 entries that hold 2M; 16 TiB of addresses for 1G */
    MAPS_KEPT_FREE = 2048,       /* of vm.max_map_count, for everything else in this process */
};

size_t geometry_pages_max(const struct backing *backing)
{
    size_t wanted = backing->kind == BACKING_BASE ? SWEEP_PAGES_MAX : HUGE_SWEEP_PAGES_MAX;
    int64_t listed = tree_read_number("", "/proc/sys/vm/max_map_count");
    unsigned long long maps = listed > 0 ? (unsigned long long)listed : 65530; /* the kernel's default */
    size_t allowed = maps > 2ull * MAPS_KEPT_FREE ? (size_t)maps - MAPS_KEPT_FREE : MAPS_KEPT_FREE;

    return wanted < allowed ? wanted : allowed;
}

int geometry_open_window(const struct geometry_work *work, const struct backing *backing, uint64_t stride_pages,
                         size_t pages_max, struct window *window, struct verdict *verdict)
{
    struct window_request request = {.page_bytes = backing->page_bytes,
                                     .base_bytes = work->session->base_page_bytes,
                                     .stride_pages = stride_pages,
                                     .pages_max = pages_max,
                                     .slots = work->slots};

    if (session_pool_bytes(work->session, backing, verdict) < backing->page_bytes ||
        window_open(window, &request, verdict) != 0)
        return -1;
    note_peak(&work->result->peak_mapped_bytes, window->packed_bytes);
    return 0;
}

struct knee geometry_read_knee(const struct geometry_work *work)
{
    struct knee_point points[SWEEP_POINTS_MAX];

    return knee_find(points, sweep_knee_points(work->sweep, work->l1_hit_ns, points), work->l1_hit_ns);
}

void geometry_add_points(struct sweep *sweep, double from, double to)
{
    double pages = from;

    while (pages <= to) {
        sweep_add_point(sweep, (uint64_t)llround(pages));
        pages *= GEOMETRY_STEP;
    }
}

const char *geometry_layout_name(const struct geometry_work *work)
{
    return work->slots == WINDOW_SLOTS_LINES ? "distinct" : "aliased";
}

/* An L1 hit that is faster by more was disturbed when the clock was first taken: it is taken again. */
#define HIT_STEP_SHARE 0.03

static struct curve *find_curve(const struct curve_list *list, const char *name)
{
    for (size_t index = 0; index < list->count; index++)
        if (strcmp(list->items[index].name, name) == 0)
            return &list->items[index];
    return NULL;
}

void geometry_keep_curve(struct geometry_work *work, const char *name, const struct backing *backing, bool packed,
                         const char *layout, const struct verdict *verdict)
{
    struct curve *curve = find_curve(&work->result->curves, name);

    if (work->sweep->count == 0 && verdict->status == STATUS_OK)
        return; /* it ended before its first point: the section's verdict says why */
    if (curve == NULL)
        curve = curve_list_add(&work->result->curves, backing, layout, verdict);
    if (curve == NULL)
        return;
    (void)snprintf(curve->name, sizeof(curve->name), "%s", name);
    free(curve->points); /* of an attempt that came to nothing */
    curve->points = NULL;
    curve->point_count = 0;
    curve->layout = layout;
    curve->verdict = *verdict;
    (void)sweep_to_curve(work->sweep, packed, curve);
}

void geometry_note_hit(struct geometry_work *work, double ns)
{
    struct core_clock *clock = &work->result->clock;

    if (!(ns < work->l1_hit_ns))
        return;
    if (ns < (1 - HIT_STEP_SHARE) * work->l1_hit_ns)
        clock->core_hz = fmax(clock->core_hz, core_clock_hz());
    work->l1_hit_ns = ns;
    clock->l1_hit_ns = ns;
    clock->l1_hit_cycles = ns * clock->core_hz / 1e9;
}

const char *const ALIAS_METHOD_NAMES[] = {[METHOD_ALIASED] = "aliased", [METHOD_DISTINCT_LINES] = "distinct_lines"};

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
    curve_list_free(&result->curves);
    memset(result, 0, sizeof(*result));
}
