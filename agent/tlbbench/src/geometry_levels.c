/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry_steps.h"

#include "statistics.h"
#include "tlb.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LADDER_PAGES_MAX = 16384,     /* four times the largest second level known (4096): room for the rise past it */
    HUGE_LADDER_PAGES_MAX = 8192, /* as above for the 2048 to 4096 entries that hold 2M; 16 TiB of addresses for 1G */
    COARSE_PAGES_MIN = 4,
    COARSE_PAGES_MAX = 384, /* in distinct lines 24 KiB: inside every first-level data cache, with room for conflicts */
    FINE_MARGIN_PAGES = 2,
    FINE_POINTS_MAX = 96,
    PASSES_MAX = 3,
    PASS_AGREEMENT_PAGES = 2,
    SHORT_LADDER_PAGES = 3072, /* shows a second level of 2048 entries whole, in 12 MiB of mapped aliases */
    MAPPINGS = 5,
    MAPS_KEPT_FREE = 2048, /* of vm.max_map_count, for everything else in this process */
};

/* The second plateau is clean from here on, also where the first level replaces at random. */
#define SECOND_PLATEAU_FROM 2
#define COARSE_STEP 1.122462048 /* sixth root of 2 */
/* A last step of the ladder that adds less than this share of the whole rise is past the steep part. */
#define WHOLE_CYCLE_ERROR 0.2 /* of an L1 hit; beyond it the calibration was disturbed */
#define STEEP_STEP_SHARE 0.15

static size_t aliases_allowed(void)
{
    unsigned long long maps = 65530; /* the kernel's default */
    FILE *const file = fopen("/proc/sys/vm/max_map_count", "re");

    if (file != NULL) {
        if (fscanf(file, "%llu", &maps) != 1) {
            maps = 65530;
        }
        (void)fclose(file);
    }
    return maps > 2ull * MAPS_KEPT_FREE ? (size_t)maps - MAPS_KEPT_FREE : MAPS_KEPT_FREE;
}

static int open_window(const struct geometry_work *work, const struct backing *backing, uint64_t stride_pages,
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

static struct knee read_knee(const struct geometry_work *work, enum ladder_statistic statistic)
{
    struct knee_point points[LADDER_POINTS_MAX];

    return knee_find(points, ladder_knee_points(work->ladder, statistic, work->l1_hit_ns, points));
}

static void add_geometric_points(struct ladder *ladder, double from, double to)
{
    double pages = from;

    while (pages <= to) {
        ladder_add_point(ladder, (uint64_t)llround(pages));
        pages *= COARSE_STEP;
    }
}

static const char *layout_name(const struct geometry_work *work)
{
    return work->slots == WINDOW_SLOTS_LINES ? "distinct" : "aliased";
}

/* Trades batches of a round for rounds: more visiting orders at the same cost. */
static void spread_rounds(struct ladder_effort *effort, unsigned batches)
{
    effort->rounds = effort->rounds * effort->batches / batches;
    effort->batches = batches;
}

/* --- first level ---------------------------------------------------------------------------------------------- */

/* Every number of pages between the coarse neighbours, behind five points of the plateau. */
static struct knee measure_fine(struct geometry_work *work, struct window *window, struct knee coarse,
                                struct verdict *verdict)
{
    const uint64_t first = coarse.pages > FINE_MARGIN_PAGES ? coarse.pages - FINE_MARGIN_PAGES : 1;
    /* One coarse step further than the bracket: a disturbed coarse point may have closed it too early. */
    const uint64_t last = 2 * coarse.next_pages - coarse.pages + FINE_MARGIN_PAGES;
    const uint64_t step = (last - first) / FINE_POINTS_MAX + 1;
    struct ladder_effort effort = work->effort;

    spread_rounds(&effort, 1);
    geometry_start_ladder(work);
    for (uint64_t eighth = 3; eighth <= 7; eighth++) {
        ladder_add_point(work->ladder, coarse.pages * eighth / 8);
    }
    for (uint64_t pages = first; pages <= last && pages <= window->pages_max; pages += step) {
        ladder_add_point(work->ladder, pages);
    }
    if (ladder_measure_window(work->ladder, window, &effort, work->session, verdict) != 0) {
        return (struct knee){.verdict = KNEE_UNCLEAR};
    }
    return read_knee(work, LADDER_MINIMUM);
}

struct first_level {
    uint64_t entries, entries_min, entries_max;
    double plateau_ns;
};

/* Fine passes with new seeds until two agree. */
static int confirm_first_level(struct geometry_work *work, struct window *window, struct knee coarse,
                               struct first_level *found, struct verdict *verdict)
{
    uint64_t knees[PASSES_MAX];
    size_t count = 0;

    for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
        const struct knee fine = measure_fine(work, window, coarse, verdict);

        if (verdict->status != STATUS_OK) {
            return -1;
        }
        if (fine.verdict != KNEE_FOUND) {
            continue;
        }
        for (size_t before = 0; before < count; before++) {
            const uint64_t low = knees[before] < fine.pages ? knees[before] : fine.pages;
            const uint64_t high = knees[before] < fine.pages ? fine.pages : knees[before];

            if (high - low <= PASS_AGREEMENT_PAGES) {
                *found = (struct first_level){low, low - 1, high + 1, fine.plateau_ns};
                return 0;
            }
        }
        knees[count++] = fine.pages;
    }
    verdict_set(verdict, STATUS_NOISY, "the first-level knee moved between passes; coarse bracket %llu to %llu pages",
                (unsigned long long)coarse.pages, (unsigned long long)coarse.next_pages);
    return -1;
}

static int add_level(struct geometry_work *work, const struct tlb_level *level, struct verdict *verdict)
{
    if (tlb_levels_add(&work->result->levels, level) != 0) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    return 0;
}

/* Returns 0 with found->entries == 0 when the ladder is flat. */
static int measure_first_level(struct geometry_work *work, struct window *window, const struct backing *backing,
                               struct first_level *found, struct verdict *verdict)
{
    char name[64];

    *found = (struct first_level){0};
    geometry_start_ladder(work);
    add_geometric_points(work->ladder, COARSE_PAGES_MIN, COARSE_PAGES_MAX);
    if (ladder_measure_window(work->ladder, window, &work->effort, work->session, verdict) != 0) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), "geometry first level %s", backing->name);
    geometry_keep_curve(work, name, backing, false, layout_name(work), verdict);
    const struct knee coarse = read_knee(work, LADDER_MINIMUM);

    if (coarse.verdict == KNEE_NONE) {
        return 0;
    }
    if (coarse.verdict == KNEE_UNCLEAR) {
        verdict_set(verdict, STATUS_NOISY, "no clear plateau in the first %d pages of %s", COARSE_PAGES_MAX,
                    backing->name);
        return -1;
    }
    if (confirm_first_level(work, window, coarse, found, verdict) != 0) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), "geometry first-level knee %s", backing->name);
    geometry_keep_curve(work, name, backing, false, layout_name(work), verdict);
    const struct tlb_level level = {
        .level = 1,
        .kind = TLB_DATA,
        .page_bytes = backing->page_bytes,
        .entries = (unsigned)found->entries,
        .entries_min = (unsigned)found->entries_min,
        .entries_max = (unsigned)found->entries_max,
        .ways = TLB_WAYS_UNKNOWN,
        .source = SOURCE_MEASURED,
        .confidence = found->entries_max - found->entries_min <= 2 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM,
    };
    return add_level(work, &level, verdict);
}

/* --- second level --------------------------------------------------------------------------------------------- */

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
    return add_level(work, &level, verdict);
}

/* True when the ladder has climbed past the steep part of a rise that is worth the name, so that longer cycles add
 * nothing but memory. A walk costs at least as much as the second-level hit before it. */
static bool rise_is_over(const struct knee_point *points, size_t count, uint64_t from, double first_plateau_ns)
{
    const struct knee_interval found = knee_find_interval(points, count, from);

    if (found.verdict != KNEE_FOUND || points[count - 1].ns - found.plateau_ns < found.plateau_ns - first_plateau_ns) {
        return false;
    }
    const double last_step = points[count - 1].ns - points[count - 2].ns;

    return last_step < STEEP_STEP_SHARE * (points[count - 1].ns - found.plateau_ns);
}

/* Measures the ladder of the second level, longer and longer until its rise is over. Every mapping takes part in some
 * conflict of its own (addresses, page tables), so several fresh ones are measured and the best of each point counts.
 */
static int climb_second_level(struct geometry_work *work, const struct backing *backing, size_t pages_max,
                              const struct first_level *first, struct verdict *verdict)
{
    struct knee_point points[LADDER_POINTS_MAX];
    struct ladder_effort effort = work->effort;
    const uint64_t from = SECOND_PLATEAU_FROM * first->entries;
    const bool whole = work->session->options->profile == PROFILE_FULL;
    double reach = whole ? (double)pages_max : fmin(SHORT_LADDER_PAGES, (double)pages_max);
    int status = 0;

    effort.control = true;
    spread_rounds(&effort, 1);
    effort.rounds = effort.rounds / MAPPINGS;
    geometry_start_ladder(work);
    add_geometric_points(work->ladder, (double)from, reach);
    reach = (double)work->ladder->cells[work->ladder->count - 1].pages;
    for (unsigned mapping = 0; mapping < MAPPINGS && status == 0; mapping++) {
        struct window window;

        if (open_window(work, backing, 1, pages_max, &window, verdict) != 0) {
            return -1;
        }
        work->ladder->seed = ++work->stream;
        status = ladder_measure_window(work->ladder, &window, &effort, work->session, verdict);
        while (status == 0 && reach * COARSE_STEP <= (double)pages_max &&
               !rise_is_over(points, ladder_knee_points(work->ladder, LADDER_MINIMUM, first->plateau_ns, points), from,
                             first->plateau_ns)) {
            reach *= COARSE_STEP;
            status =
                ladder_extend_window(work->ladder, (uint64_t)llround(reach), &window, &effort, work->session, verdict);
        }
        window_close(&window);
    }
    return status;
}

static int measure_second_level(struct geometry_work *work, const struct backing *backing, size_t pages_max,
                                const struct first_level *first, struct verdict *verdict)
{
    struct knee_point points[LADDER_POINTS_MAX];
    const uint64_t from = SECOND_PLATEAU_FROM * first->entries;
    char name[64];

    if (climb_second_level(work, backing, pages_max, first, verdict) != 0) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), "geometry second level %s", backing->name);
    geometry_keep_curve(work, name, backing, false, layout_name(work), verdict);
    (void)snprintf(name, sizeof(name), "geometry second level %s, control", backing->name);
    geometry_keep_curve(work, name, backing, true, "packed", verdict);

    const size_t count = ladder_knee_points(work->ladder, LADDER_MINIMUM, first->plateau_ns, points);
    const struct knee_interval found = knee_find_interval(points, count, from);

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

int geometry_measure_levels(struct geometry_work *work, const struct backing *backing, struct verdict *verdict)
{
    const size_t wanted = backing->kind == BACKING_BASE ? LADDER_PAGES_MAX : HUGE_LADDER_PAGES_MAX;
    const size_t allowed = aliases_allowed();
    const size_t pages_max = wanted < allowed ? wanted : allowed;
    struct first_level first;
    struct window window;

    if (open_window(work, backing, 1, pages_max, &window, verdict) != 0) {
        return -1;
    }
    const int status = measure_first_level(work, &window, backing, &first, verdict);

    if (status == 0 && first.entries > 0) {
        if (backing->kind == BACKING_BASE) {
            work->l1_entries = first.entries;
        }
        window_close(&window);
        return measure_second_level(work, backing, pages_max, &first, verdict);
    }
    window_close(&window);
    return status;
}

/* --- ways ----------------------------------------------------------------------------------------------------- */

enum { WAYS_STRIDES = 8 }; /* strides of 1 to 128 pages: enough for 128 sets */

static void add_ways_points(struct ladder *ladder, uint64_t entries, unsigned doublings)
{
    for (uint64_t pages = 1; pages <= 16; pages++) {
        ladder_add_point(ladder, pages);
    }
    add_geometric_points(ladder, 16, 1.3 * (double)entries);
    for (unsigned half = 0; half <= doublings; half++) {
        const uint64_t capacity = entries >> half;

        ladder_add_point(ladder, capacity);
        ladder_add_point(ladder, capacity + 1);
        ladder_add_point(ladder, capacity + 2);
    }
}

/* Knees at all strides. Disturbances only bring a knee down, so a second look keeps the larger one. */
static int measure_capacities(struct geometry_work *work, uint64_t capacity[WAYS_STRIDES], struct verdict *verdict)
{
    const struct backing base = {.kind = BACKING_BASE, .page_bytes = work->session->base_page_bytes};
    const size_t pages_max = (size_t)work->l1_entries * 3 / 2 + 16;
    struct ladder_effort effort = work->effort;

    spread_rounds(&effort, 1);
    effort.rounds = effort.rounds / 2 + 1;
    effort.batch_seconds /= 2;
    for (unsigned doublings = 1; doublings < WAYS_STRIDES; doublings++) {
        struct window window;

        if (open_window(work, &base, 1u << doublings, pages_max, &window, verdict) != 0) {
            return -1;
        }
        geometry_start_ladder(work);
        add_ways_points(work->ladder, work->l1_entries, doublings);
        const int status = ladder_measure_window(work->ladder, &window, &effort, work->session, verdict);
        const struct knee knee = read_knee(work, LADDER_MINIMUM);

        window_close(&window);
        if (status != 0) {
            return -1;
        }
        if (knee.verdict == KNEE_FOUND && knee.pages > capacity[doublings]) {
            capacity[doublings] = knee.pages;
        }
    }
    return 0;
}

int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict)
{
    struct tlb_level *const level = geometry_find_measured(work->result, 1, work->session->base_page_bytes);
    uint64_t capacity[WAYS_STRIDES] = {work->l1_entries};
    int ways = KNEE_WAYS_UNKNOWN;

    for (unsigned look = 0; look < 2 && ways == KNEE_WAYS_UNKNOWN; look++) {
        if (measure_capacities(work, capacity, verdict) != 0) {
            return -1;
        }
        ways = knee_find_ways(capacity, WAYS_STRIDES);
    }
    if (level != NULL) {
        level->ways = ways == KNEE_WAYS_FULL ? TLB_WAYS_FULL : ways;
        (void)snprintf(level->note, sizeof(level->note), "knee at page strides 1..128: %u %u %u %u %u %u %u %u",
                       (unsigned)capacity[0], (unsigned)capacity[1], (unsigned)capacity[2], (unsigned)capacity[3],
                       (unsigned)capacity[4], (unsigned)capacity[5], (unsigned)capacity[6], (unsigned)capacity[7]);
    }
    return 0;
}
