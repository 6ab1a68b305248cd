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
    COARSE_PAGES_MIN = 4,
    COARSE_PAGES_MAX = 384, /* in distinct lines 24 KiB: inside every first-level data cache, with room for conflicts */
    FINE_MARGIN_PAGES = 2,
    FINE_POINTS_MAX = 96,
    PASSES_MAX = 4,
    PASS_AGREEMENT_PAGES = 2,
    MAPS_KEPT_FREE = 2048, /* of vm.max_map_count, for everything else in this process */
};

#define COARSE_STEP 1.122462048 /* sixth root of 2 */

/* Of the time left to the part: the coarse ladder, then each pass. */
#define COARSE_SHARE 0.35
static const double PASS_SHARES[PASSES_MAX] = {0.4, 0.6, 0.7, 1.0};

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

/* --- first level ---------------------------------------------------------------------------------------------- */

/* Every number of pages between the coarse neighbours, behind five points of the plateau. */
static struct knee measure_fine(struct geometry_work *work, struct window *window, struct knee coarse, double share,
                                struct verdict *verdict)
{
    const uint64_t first = coarse.pages > FINE_MARGIN_PAGES ? coarse.pages - FINE_MARGIN_PAGES : 1;
    /* One coarse step further than the bracket: a disturbed coarse point may have closed it too early. */
    const uint64_t last = 2 * coarse.next_pages - coarse.pages + FINE_MARGIN_PAGES;
    const uint64_t step = (last - first) / FINE_POINTS_MAX + 1;

    geometry_start_ladder(work);
    const struct ladder_effort effort = geometry_effort(work, share);

    for (uint64_t eighth = 3; eighth <= 7; eighth++) {
        ladder_add_point(work->ladder, coarse.pages * eighth / 8);
    }
    for (uint64_t pages = first; pages <= last && pages <= window->pages_max; pages += step) {
        ladder_add_point(work->ladder, pages);
    }
    if (ladder_measure_window(work->ladder, window, &effort, work->session, verdict) != 0) {
        return (struct knee){.verdict = KNEE_UNCLEAR};
    }
    return geometry_read_knee(work, LADDER_MINIMUM);
}

/* Fine passes with new seeds until two agree. Passes that do not, or that noise or time cut short, leave an interval:
 * all that they saw, and the coarse bracket where there is no pass at all. Returns false only when stopped. */
static bool confirm_first_level(struct geometry_work *work, struct window *window, struct knee coarse,
                                struct geometry_first_level *found, struct verdict *verdict)
{
    uint64_t knees[PASSES_MAX];
    size_t count = 0;

    *found = (struct geometry_first_level){coarse.pages, coarse.pages, coarse.next_pages, coarse.plateau_ns, false};
    for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
        struct verdict pass_verdict = {.status = STATUS_OK};
        const struct knee fine = measure_fine(work, window, coarse, PASS_SHARES[pass], &pass_verdict);

        if (pass_verdict.status != STATUS_OK && pass_verdict.status != STATUS_NOISY) {
            *verdict = pass_verdict;
            return false;
        }
        if (fine.verdict != KNEE_FOUND) {
            continue;
        }
        for (size_t before = 0; before < count; before++) {
            const uint64_t low = knees[before] < fine.pages ? knees[before] : fine.pages;
            const uint64_t high = knees[before] < fine.pages ? fine.pages : knees[before];

            if (high - low <= PASS_AGREEMENT_PAGES) {
                /* A point that was given up leaves a gap behind the knee. */
                const uint64_t most = high + 1 > fine.next_pages ? high + 1 : fine.next_pages;

                *found = (struct geometry_first_level){low, low - 1, most, fine.plateau_ns, true};
                return true;
            }
        }
        /* Disturbances only take entries away, so the larger knee is the better one. */
        if (count == 0 || fine.pages > found->entries) {
            found->entries = fine.pages;
            found->plateau_ns = fine.plateau_ns;
        }
        found->entries_min = fine.pages < found->entries_min ? fine.pages : found->entries_min;
        found->entries_max = fine.next_pages > found->entries_max ? fine.next_pages : found->entries_max;
        knees[count++] = fine.pages;
    }
    return true;
}

int geometry_add_level(struct geometry_work *work, const struct tlb_level *level, struct verdict *verdict)
{
    if (tlb_levels_add(&work->result->levels, level) != 0) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    return 0;
}

static enum confidence first_level_confidence(const struct geometry_work *work,
                                              const struct geometry_first_level *found)
{
    const uint64_t width = found->entries_max - found->entries_min;

    return !found->agreed ? CONFIDENCE_LOW : width > 2 || work->held ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH;
}

static int store_first_level(struct geometry_work *work, const struct backing *backing,
                             const struct geometry_first_level *found, struct verdict *verdict)
{
    geometry_look(work);
    struct tlb_level level = {
        .level = 1,
        .kind = TLB_DATA,
        .page_bytes = backing->page_bytes,
        .entries = (unsigned)found->entries,
        .entries_min = (unsigned)found->entries_min,
        .entries_max = (unsigned)found->entries_max,
        .ways = TLB_WAYS_UNKNOWN,
        .source = SOURCE_MEASURED,
        .confidence = first_level_confidence(work, found),
    };

    if (!found->agreed) {
        (void)snprintf(level.note, sizeof(level.note),
                       "no two passes over single pages agreed: interval of all of them");
    }
    return geometry_add_level(work, &level, verdict);
}

static int climb_first_level(struct geometry_work *work, struct window *window, const struct backing *backing,
                             struct geometry_first_level *found, struct verdict *verdict)
{
    char name[64];

    geometry_start_ladder(work);
    const struct ladder_effort effort = geometry_effort(work, COARSE_SHARE);

    geometry_add_points(work->ladder, COARSE_PAGES_MIN, COARSE_PAGES_MAX);
    if (ladder_measure_window(work->ladder, window, &effort, work->session, verdict) != 0) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), "geometry first level %s", backing->name);
    geometry_keep_curve(work, name, backing, false, geometry_layout_name(work), verdict);
    const struct knee coarse = geometry_read_knee(work, LADDER_MINIMUM);

    if (coarse.verdict == KNEE_NONE) {
        return 0;
    }
    if (coarse.verdict == KNEE_UNCLEAR) {
        verdict_set(verdict, STATUS_NOISY, "no clear plateau in the first %d pages of %s", COARSE_PAGES_MAX,
                    backing->name);
        return -1;
    }
    if (!confirm_first_level(work, window, coarse, found, verdict)) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), "geometry first-level knee %s", backing->name);
    geometry_keep_curve(work, name, backing, false, geometry_layout_name(work), verdict);
    return store_first_level(work, backing, found, verdict);
}

int geometry_measure_first_level(struct geometry_work *work, const struct backing *backing,
                                 struct geometry_first_level *found, struct verdict *verdict)
{
    struct window window;

    *found = (struct geometry_first_level){0};
    if (geometry_open_window(work, backing, 1, (size_t)2 * COARSE_PAGES_MAX, &window, verdict) != 0) {
        return -1;
    }
    const int status = climb_first_level(work, &window, backing, found, verdict);

    window_close(&window);
    if (status == 0 && backing->kind == BACKING_BASE) {
        work->l1_entries = found->entries;
    }
    return status;
}
