/* SPDX-License-Identifier: Apache-2.0 */
/* The second level: a soft rise, read as an interval over several fresh mappings; and what misses cost. */
#include "geometry_steps.h"

#include "statistics.h"
#include "zero_view.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SHORT_LADDER_PAGES = 3072, /* shows a second level of 2048 entries whole */
    HIT_LADDER_PAGES = 1100,   /* six steps past twice the largest first level; as a window 4.3 MiB of aliases */
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

/* Where a ladder of the second level is measured: a window of distinct frames, or pages of zeroes. */
struct climb {
    const struct backing *backing;
    bool over_zeroes;
    size_t pages_max;
    double reach; /* pages of the longest cycle that every mapping measures */
    bool extends; /* longer and longer until the rise is over */
    uint64_t from;
    double rise_min_ns; /* of a rise that is worth the name: a walk costs more than the hit before it */
    double hit_ns;      /* L1 hit; NAN until measured */
};

struct place {
    struct window window;
    struct zero_view zeroes;
};

/* An L1 hit of the same rounds, table and all. */
static double ladder_hit_ns(const struct ladder *ladder)
{
    return ladder->cells[0].packed.stats.ns_min;
}

/* True when the ladder has climbed past the steep part of the rise, so that longer cycles add nothing but time. */
static bool rise_is_over(const struct ladder *ladder, const struct climb *climb)
{
    struct knee_point points[LADDER_POINTS_MAX];
    const size_t count = ladder_knee_points(ladder, LADDER_MINIMUM, ladder_hit_ns(ladder), points);
    const struct knee_interval found = knee_find_interval(points, count, climb->from);

    if (found.verdict != KNEE_FOUND || points[count - 1].ns - found.plateau_ns < climb->rise_min_ns) {
        return false;
    }
    if (is_disturbed(ladder) && (double)points[count - 1].pages < WIDE_REACH * (double)found.half_rise_pages) {
        return false;
    }
    const double last_step = points[count - 1].ns - points[count - 2].ns;

    return last_step < STEEP_STEP_SHARE * (points[count - 1].ns - found.plateau_ns);
}

static int open_place(const struct geometry_work *work, const struct climb *climb, struct place *place,
                      struct verdict *verdict)
{
    return climb->over_zeroes
               ? zero_view_open(&place->zeroes, climb->backing->page_bytes, climb->pages_max, verdict)
               : geometry_open_window(work, climb->backing, 1, climb->pages_max, &place->window, verdict);
}

static void close_place(const struct climb *climb, struct place *place)
{
    if (climb->over_zeroes) {
        zero_view_close(&place->zeroes);
    } else {
        window_close(&place->window);
    }
}

static int climb_place(struct geometry_work *work, const struct climb *climb, struct place *place,
                       const struct ladder_effort *effort, double *reach, struct verdict *verdict)
{
    struct ladder *const ladder = work->ladder;
    int status = climb->over_zeroes
                     ? ladder_measure(ladder, zero_view_link, &place->zeroes, effort, work->session, verdict)
                     : ladder_measure_window(ladder, &place->window, effort, work->session, verdict);

    while (status == 0 && climb->extends && *reach * LADDER_STEP <= (double)climb->pages_max &&
           !rise_is_over(ladder, climb)) {
        *reach *= LADDER_STEP;
        const uint64_t pages = (uint64_t)llround(*reach);

        status = climb->over_zeroes
                     ? ladder_extend(ladder, pages, zero_view_link, &place->zeroes, effort, work->session, verdict)
                     : ladder_extend_window(ladder, pages, &place->window, effort, work->session, verdict);
    }
    return status;
}

/* Measures the ladder, if it extends until its rise is over. Every mapping takes part in some conflict of its own
 * (addresses, page tables), so several fresh ones are measured and the best of each point counts. */
static int climb_ladder(struct geometry_work *work, const struct climb *climb, struct verdict *verdict)
{
    struct ladder_effort effort = work->effort;
    double reach = fmin(climb->reach, (double)climb->pages_max);
    int status = 0;

    effort.control = true;
    geometry_spread_rounds(&effort, 1);
    effort.rounds = effort.rounds / MAPPINGS;
    geometry_start_ladder(work);
    geometry_add_points(work->ladder, (double)climb->from, reach);
    reach = (double)work->ladder->cells[work->ladder->count - 1].pages;
    for (unsigned mapping = 0; mapping < MAPPINGS && status == 0; mapping++) {
        struct place place;

        if (open_place(work, climb, &place, verdict) != 0) {
            return -1;
        }
        work->ladder->seed = ++work->stream;
        status = climb_place(work, climb, &place, &effort, &reach, verdict);
        close_place(climb, &place);
    }
    return status;
}

static int judge_ladder(const struct geometry_work *work, const struct climb *climb, const struct knee_interval *found,
                        struct verdict *verdict)
{
    if (ladder_dropped_share(work->ladder) > DROPPED_SHARE_MAX) {
        verdict_set(verdict, STATUS_NOISY,
                    "other work held the core for %.0f %% of the batches: it takes second-level entries between them",
                    100 * ladder_dropped_share(work->ladder));
        return -1;
    }
    if (found->verdict == KNEE_UNCLEAR) {
        verdict_set(verdict, STATUS_NOISY, "no clear second plateau past %llu pages of %s",
                    (unsigned long long)climb->from, climb->backing->name);
        return -1;
    }
    return 0;
}

static void keep_curves(struct geometry_work *work, const struct climb *climb, const char *what,
                        const struct verdict *verdict)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "geometry %s %s", what, climb->backing->name);
    geometry_keep_curve(work, name, climb->backing, false, climb->over_zeroes ? "zeroes" : geometry_layout_name(work),
                        verdict);
    (void)snprintf(name, sizeof(name), "geometry %s %s, control", what, climb->backing->name);
    geometry_keep_curve(work, name, climb->backing, true, "packed", verdict);
}

/* What a hit of the second level costs, from the plateau of the ladder in `work`. */
static void store_hit(struct geometry_work *work, const struct climb *climb, const struct knee_interval *found,
                      double first_plateau_ns)
{
    const double penalty_ns = found->plateau_ns - first_plateau_ns;

    add_penalty(work, "l2_hit", climb->backing->page_bytes, penalty_ns,
                plateau_margin(work->ladder, climb->from, found->soft_start_pages), ladder_hit_ns(work->ladder));
    if (climb->backing->kind == BACKING_BASE) {
        work->l2_penalty_ns = penalty_ns;
    }
}

/* Base pages: the plateau of a short ladder over a window, where pages have lines of their own, says what a hit costs.
 * Pages of zeroes then show where the level ends, however long that takes. */
static int measure_hit(struct geometry_work *work, struct climb *climb, double first_plateau_ns,
                       struct verdict *verdict)
{
    struct knee_point points[LADDER_POINTS_MAX];
    const struct climb hit = {.backing = climb->backing,
                              .pages_max = climb->pages_max,
                              .reach = fmax(HIT_LADDER_PAGES, 4.0 * (double)climb->from),
                              .from = climb->from};

    if (climb_ladder(work, &hit, verdict) != 0) {
        return -1;
    }
    keep_curves(work, &hit, "second-level hit", verdict);
    const size_t count = ladder_knee_points(work->ladder, LADDER_MINIMUM, first_plateau_ns, points);
    const struct knee_interval found = knee_find_interval(points, count, hit.from);

    if (judge_ladder(work, &hit, &found, verdict) != 0) {
        return -1;
    }
    store_hit(work, &hit, &found, first_plateau_ns);
    climb->rise_min_ns = found.plateau_ns - first_plateau_ns;
    climb->hit_ns = ladder_hit_ns(work->ladder);
    return 0;
}

int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing, size_t pages_max,
                                  const struct geometry_first_level *first, struct verdict *verdict)
{
    struct knee_point points[LADDER_POINTS_MAX];
    const bool whole = work->session->options->profile == PROFILE_FULL;
    struct climb climb = {.backing = backing,
                          .over_zeroes = backing->kind == BACKING_BASE,
                          .pages_max = pages_max,
                          .reach = whole ? (double)pages_max : SHORT_LADDER_PAGES,
                          .extends = true,
                          .from = SECOND_PLATEAU_FROM * first->entries,
                          .hit_ns = NAN};

    if (climb.over_zeroes && measure_hit(work, &climb, first->plateau_ns, verdict) != 0) {
        return -1;
    }
    if (climb_ladder(work, &climb, verdict) != 0) {
        return -1;
    }
    keep_curves(work, &climb, "second level", verdict);
    const double base_ns = climb.over_zeroes ? ladder_hit_ns(work->ladder) : first->plateau_ns;
    const size_t count = ladder_knee_points(work->ladder, LADDER_MINIMUM, base_ns, points);
    const struct knee_interval found = knee_find_interval(points, count, climb.from);

    if (judge_ladder(work, &climb, &found, verdict) != 0) {
        return -1;
    }
    if (!climb.over_zeroes) {
        store_hit(work, &climb, &found, first->plateau_ns);
    }
    if (found.verdict == KNEE_NONE) {
        return 0;
    }
    /* A miss costs what it adds to a hit of the second level, and that hit. */
    const double hit_penalty_ns = climb.over_zeroes ? climb.rise_min_ns : found.plateau_ns - first->plateau_ns;

    add_penalty(work, "walk", backing->page_bytes, found.top_ns - found.plateau_ns + hit_penalty_ns,
                plateau_margin(work->ladder, found.half_rise_pages, UINT64_MAX),
                climb.over_zeroes ? climb.hit_ns : ladder_hit_ns(work->ladder));
    return store_second_level(work, backing, &found, verdict);
}
