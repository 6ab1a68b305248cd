/* SPDX-License-Identifier: Apache-2.0 */
/* The second level: a soft rise, read as an interval over several fresh mappings; and what misses cost. */
#include "geometry_steps.h"

#include "statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SHORT_LADDER_PAGES = 3072, /* shows a second level of 2048 entries whole, in 12 MiB of mapped aliases */
    MAPPINGS = 5,
};

/* The second plateau is clean from here on, also where the first level replaces at random. */
#define SECOND_PLATEAU_FROM 2
/* One step of the ladder, as in geometry_add_points(). */
#define LADDER_STEP 1.122462048
/* Whoever shares the core evicts entries that a cycle of thousands of pages does not win back within a batch: the rise
 * then looks softer and earlier than it is, also in the batches that ran undisturbed. */
#define DROPPED_SHARE_MAX 0.25
/* From here on the upper end of the interval is the end of the ladder, not the half of a rise that began too early. */
#define DROPPED_SHARE_WIDE 0.05
#define WIDE_REACH 1.5
/* A last step of the ladder that adds less than this share of the whole rise is past the steep part. */
#define STEEP_STEP_SHARE 0.15
/* Of an L1 hit's cycles from a whole number; beyond it the calibration was disturbed. */
#define WHOLE_CYCLE_ERROR 0.2

/* `hit_ns` is an L1 hit timed in the same rounds as `ns`: a hit takes a whole number of cycles, so their ratio gives
 * cycles whatever the clock did since the calibration. */
static double cycles_of(const struct geometry_work *work, double ns, double hit_ns)
{
    const double hit_cycles = round(work->result->clock.l1_hit_cycles);

    return fabs(work->result->clock.l1_hit_cycles - hit_cycles) <= WHOLE_CYCLE_ERROR
               ? ns / hit_ns * hit_cycles
               : ns * work->result->clock.core_hz / 1e9;
}

static void add_penalty(struct geometry_work *work, const char *level, uint64_t page_bytes, double ns, double margin_ns,
                        double hit_ns)
{
    struct geometry_result *const result = work->result;
    struct penalty *const grown = realloc(result->penalties, (result->penalty_count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return;
    }
    result->penalties = grown;
    grown[result->penalty_count++] = (struct penalty){
        .level = level,
        .page_bytes = page_bytes,
        .ns = ns,
        .ns_min = ns - margin_ns,
        .ns_max = ns + margin_ns,
        .cycles = cycles_of(work, ns, hit_ns),
    };
}

/* Median of three MADs over the points of a range: how far a repeated median may fall. */
static double plateau_margin(const struct ladder *ladder, uint64_t from, uint64_t to)
{
    double margins[LADDER_POINTS_MAX];
    size_t count = 0;

    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        if (cell->pages >= from && cell->pages <= to && cell->view.count > 0) {
            margins[count++] = 3 * cell->view.stats.ns_mad;
        }
    }
    return count > 0 ? statistics_median(margins, count) : NAN;
}

static bool is_disturbed(const struct ladder *ladder)
{
    return ladder_dropped_share(ladder) > DROPPED_SHARE_WIDE;
}

static int store_second_level(struct geometry_work *work, const struct backing *backing,
                              const struct knee_interval *found, struct verdict *verdict)
{
    struct tlb_level level = {
        .level = 2,
        .kind = TLB_DATA,
        .page_bytes = backing->page_bytes,
        .entries = (unsigned)found->estimate_pages,
        .entries_min = (unsigned)found->soft_start_pages,
        .entries_max = (unsigned)found->half_rise_pages,
        .ways = TLB_WAYS_UNKNOWN,
        .source = SOURCE_MEASURED,
    };
    const double width = (double)found->half_rise_pages / (double)found->soft_start_pages;

    level.confidence = width <= 1.35 ? CONFIDENCE_HIGH : width <= 2.5 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
    (void)snprintf(level.note, sizeof(level.note),
                   "interval from the soft start of the rise to its half; estimate at 15 %% of it");
    if (is_disturbed(work->ladder)) {
        level.confidence = CONFIDENCE_LOW;
        level.entries_max = (unsigned)work->ladder->cells[work->ladder->count - 1].pages;
        (void)snprintf(level.note, sizeof(level.note),
                       "other work held the core at times: interval from the soft start to the end of the ladder");
    }
    return geometry_add_level(work, &level, verdict);
}

/* True when the ladder has climbed past the steep part of a rise that is worth the name, so that longer cycles add
 * nothing but memory. A walk costs at least as much as the second-level hit before it. */
static bool rise_is_over(const struct ladder *ladder, uint64_t from, double first_plateau_ns)
{
    struct knee_point points[LADDER_POINTS_MAX];
    const size_t count = ladder_knee_points(ladder, LADDER_MINIMUM, first_plateau_ns, points);
    const struct knee_interval found = knee_find_interval(points, count, from);

    if (found.verdict != KNEE_FOUND || points[count - 1].ns - found.plateau_ns < found.plateau_ns - first_plateau_ns) {
        return false;
    }
    if (is_disturbed(ladder) && (double)points[count - 1].pages < WIDE_REACH * (double)found.half_rise_pages) {
        return false;
    }
    const double last_step = points[count - 1].ns - points[count - 2].ns;

    return last_step < STEEP_STEP_SHARE * (points[count - 1].ns - found.plateau_ns);
}

/* Measures the ladder of the second level, longer and longer until its rise is over. Every mapping takes part in some
 * conflict of its own (addresses, page tables), so several fresh ones are measured and the best of each point counts.
 */
static int climb_second_level(struct geometry_work *work, const struct backing *backing, size_t pages_max,
                              const struct geometry_first_level *first, struct verdict *verdict)
{
    struct ladder_effort effort = work->effort;
    const uint64_t from = SECOND_PLATEAU_FROM * first->entries;
    const bool whole = work->session->options->profile == PROFILE_FULL;
    double reach = whole ? (double)pages_max : fmin(SHORT_LADDER_PAGES, (double)pages_max);
    int status = 0;

    effort.control = true;
    geometry_spread_rounds(&effort, 1);
    effort.rounds = effort.rounds / MAPPINGS;
    geometry_start_ladder(work);
    geometry_add_points(work->ladder, (double)from, reach);
    reach = (double)work->ladder->cells[work->ladder->count - 1].pages;
    for (unsigned mapping = 0; mapping < MAPPINGS && status == 0; mapping++) {
        struct window window;

        if (geometry_open_window(work, backing, 1, pages_max, &window, verdict) != 0) {
            return -1;
        }
        work->ladder->seed = ++work->stream;
        status = ladder_measure_window(work->ladder, &window, &effort, work->session, verdict);
        while (status == 0 && reach * LADDER_STEP <= (double)pages_max &&
               !rise_is_over(work->ladder, from, first->plateau_ns)) {
            reach *= LADDER_STEP;
            status =
                ladder_extend_window(work->ladder, (uint64_t)llround(reach), &window, &effort, work->session, verdict);
        }
        window_close(&window);
    }
    return status;
}

int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing, size_t pages_max,
                                  const struct geometry_first_level *first, struct verdict *verdict)
{
    struct knee_point points[LADDER_POINTS_MAX];
    const uint64_t from = SECOND_PLATEAU_FROM * first->entries;
    char name[64];

    if (climb_second_level(work, backing, pages_max, first, verdict) != 0) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), "geometry second level %s", backing->name);
    geometry_keep_curve(work, name, backing, false, geometry_layout_name(work), verdict);
    (void)snprintf(name, sizeof(name), "geometry second level %s, control", backing->name);
    geometry_keep_curve(work, name, backing, true, "packed", verdict);

    const size_t count = ladder_knee_points(work->ladder, LADDER_MINIMUM, first->plateau_ns, points);
    const struct knee_interval found = knee_find_interval(points, count, from);

    if (ladder_dropped_share(work->ladder) > DROPPED_SHARE_MAX) {
        verdict_set(verdict, STATUS_NOISY,
                    "other work held the core for %.0f %% of the batches: it takes second-level entries between them",
                    100 * ladder_dropped_share(work->ladder));
        return -1;
    }
    if (found.verdict == KNEE_UNCLEAR) {
        verdict_set(verdict, STATUS_NOISY, "no clear second plateau past %llu pages of %s", (unsigned long long)from,
                    backing->name);
        return -1;
    }
    const double penalty_ns = found.plateau_ns - first->plateau_ns;
    const double hit_ns = work->ladder->cells[0].packed.stats.ns_min;

    add_penalty(work, "l2_hit", backing->page_bytes, penalty_ns,
                plateau_margin(work->ladder, from, found.soft_start_pages), hit_ns);
    if (backing->kind == BACKING_BASE) {
        work->l2_penalty_ns = penalty_ns;
    }
    if (found.verdict == KNEE_NONE) {
        return 0;
    }
    add_penalty(work, "walk", backing->page_bytes, found.top_ns - first->plateau_ns,
                plateau_margin(work->ladder, found.half_rise_pages, UINT64_MAX), hit_ns);
    return store_second_level(work, backing, &found, verdict);
}
