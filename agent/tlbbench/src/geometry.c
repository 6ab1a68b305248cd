/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry_steps.h"

#include "statistics.h"
#include "tlb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Effort of a ladder: every round has a new order of visits, which is what medians differ by; batches are as short as
 * the clocks allow, so that a busy core cuts few of them. */
static const struct ladder_effort QUICK_EFFORT = {
    .rounds = 10, .rounds_max = 24, .alone_rounds = 100, .batches = 1, .batch_seconds = 0.25e-3, .control = false};
static const struct ladder_effort FULL_EFFORT = {.rounds = 25,
                                                 .rounds_max = 60,
                                                 .alone_rounds = 10000,
                                                 .alone_wanted = 12,
                                                 .batches = 1,
                                                 .batch_seconds = 0.5e-3,
                                                 .control = false};

/* An L1 hit that is faster by more was disturbed when the clock was first taken: it is taken again. */
#define HIT_STEP_SHARE 0.03

/* For a sibling thread to pause at least once. */
#define QUICK_LEARN_SECONDS 0.03
#define FULL_LEARN_SECONDS 0.5

/* Less time left is better spent on reporting. */
#define RETRY_SECONDS 0.3

/* Sharing a line counts as costly from here: twice what placement noise does to an L1 hit. */
#define SHARED_LINE_COST_SHARE 0.10

enum {
    ATTEMPTS = 4,
    CALIBRATION_PAGES = 32, /* below every first-level TLB in the catalogue, above what one cache line holds */
};

static struct curve *find_curve(const struct curve_list *list, const char *name)
{
    for (size_t index = 0; index < list->count; index++) {
        if (strcmp(list->items[index].name, name) == 0) {
            return &list->items[index];
        }
    }
    return NULL;
}

void geometry_keep_curve(struct geometry_work *work, const char *name, const struct backing *backing, bool packed,
                         const char *layout, const struct verdict *verdict)
{
    struct curve *curve = find_curve(&work->result->curves, name);

    if (curve != NULL) {
        free(curve->points); /* of an attempt that came to nothing */
        curve->points = NULL;
        curve->point_count = 0;
    } else {
        curve = curve_list_add(&work->result->curves);
    }
    if (curve == NULL) {
        return;
    }
    (void)snprintf(curve->name, sizeof(curve->name), "%s", name);
    memcpy(curve->backing, backing->name, sizeof(curve->backing));
    curve->kind = backing->kind;
    curve->page_bytes = backing->page_bytes;
    curve->layout = layout;
    curve->verdict = *verdict;
    (void)ladder_to_curve(work->ladder, packed, curve);
    /* A ladder that ended before its first point says nothing, and the section's verdict says why. */
    if (curve->point_count == 0 && curve->verdict.status == STATUS_OK &&
        curve == &work->result->curves.items[work->result->curves.count - 1]) {
        free(curve->points);
        work->result->curves.count--;
    }
}

struct tlb_level *geometry_find_measured(struct geometry_result *result, unsigned level, uint64_t page_bytes)
{
    for (size_t index = 0; index < result->levels.count; index++) {
        struct tlb_level *const item = &result->levels.items[index];

        if (item->source == SOURCE_MEASURED && item->level == level && item->page_bytes == page_bytes) {
            return item;
        }
    }
    return NULL;
}

/* Least ns of one cycle of CALIBRATION_PAGES pages with these slots, and of its packed view: neighbours only add. */
static int time_calibration(struct geometry_work *work, enum window_slots slots, double *view_ns, double *packed_ns,
                            struct verdict *verdict)
{
    const uint64_t base = work->session->base_page_bytes;
    const struct window_request request = {
        .page_bytes = base, .base_bytes = base, .stride_pages = 1, .pages_max = CALIBRATION_PAGES, .slots = slots};
    struct window window;

    if (window_open(&window, &request, verdict) != 0) {
        return -1;
    }
    geometry_start_ladder(work);
    struct ladder_effort effort = geometry_effort(work, 0.5);

    ladder_add_point(work->ladder, CALIBRATION_PAGES);
    effort.control = true;
    const int result = ladder_measure_window(work->ladder, &window, &effort, work->session, verdict);

    *view_ns = work->ladder->cells[0].view.stats.ns_min;
    *packed_ns = work->ladder->cells[0].packed.stats.ns_min;
    window_close(&window);
    return result;
}

void geometry_note_hit(struct geometry_work *work, double ns)
{
    struct core_clock *const clock = &work->result->clock;

    if (!(ns < work->l1_hit_ns)) {
        return;
    }
    if (ns < (1 - HIT_STEP_SHARE) * work->l1_hit_ns) {
        clock->core_hz = fmax(clock->core_hz, timing_core_hz());
    }
    work->l1_hit_ns = ns;
    clock->l1_hit_ns = ns;
    clock->l1_hit_cycles = ns * clock->core_hz / 1e9;
}

/* Core clock, L1 hit, and whether several pages on one cache line cost anything. */
static int calibrate(struct geometry_work *work, struct verdict *verdict)
{
    double lines_ns, packed_ns, shared_ns, ignored_ns;

    work->result->clock.core_hz = timing_core_hz();
    if (time_calibration(work, WINDOW_SLOTS_LINES, &lines_ns, &packed_ns, verdict) != 0 ||
        time_calibration(work, WINDOW_SLOTS_SHARED, &shared_ns, &ignored_ns, verdict) != 0) {
        return -1;
    }
    work->l1_hit_ns = INFINITY;
    geometry_note_hit(work, fmin(lines_ns, packed_ns));
    work->result->alias_cost_ns = shared_ns - lines_ns;
    if (shared_ns - lines_ns > SHARED_LINE_COST_SHARE * lines_ns) {
        work->slots = WINDOW_SLOTS_LINES;
        work->result->method = METHOD_DISTINCT_LINES;
    } else {
        work->slots = WINDOW_SLOTS_WORDS;
        work->result->method = METHOD_ALIASED;
    }
    return 0;
}

/* --- parts ----------------------------------------------------------------------------------------------------- */

static struct backing base_backing(const struct geometry_work *work)
{
    struct backing base = {.kind = BACKING_BASE, .page_bytes = work->session->base_page_bytes};
    char text[PAGE_TEXT_BYTES];

    (void)snprintf(base.name, sizeof(base.name), "%.15s", page_text(base.page_bytes, text));
    return base;
}

static int measure_first(struct geometry_work *work, struct verdict *verdict)
{
    const struct backing base = base_backing(work);

    return geometry_measure_first_level(work, &base, &work->first, verdict);
}

static int measure_hit(struct geometry_work *work, struct verdict *verdict)
{
    const struct backing base = base_backing(work);

    return geometry_measure_hit(work, &base, verdict);
}

static int measure_second(struct geometry_work *work, struct verdict *verdict)
{
    const struct backing base = base_backing(work);

    return geometry_measure_second_level(work, &base, &work->first, verdict);
}

/* Only hugetlb pages can be mapped many times; a fractured one would measure the structure of its parts. */
static bool has_huge_levels(const struct granule *granule)
{
    return granule->kind == BACKING_HUGETLB && granule->verdict.status == STATUS_OK;
}

static int measure_huge_levels(struct geometry_work *work, struct verdict *verdict)
{
    struct geometry_result *const result = work->result;

    for (size_t index = 0; index < result->granule_count; index++) {
        const struct granule *const granule = &result->granules[index];
        struct backing backing = {.kind = granule->kind, .page_bytes = granule->page_bytes};
        struct geometry_first_level first;

        if (!has_huge_levels(granule) || geometry_find_measured(result, 1, granule->page_bytes) != NULL) {
            continue;
        }
        memcpy(backing.name, granule->backing, sizeof(backing.name));
        if (geometry_measure_first_level(work, &backing, &first, verdict) != 0 ||
            (first.entries > 0 && geometry_measure_second_level(work, &backing, &first, verdict) != 0)) {
            return -1;
        }
    }
    return geometry_granules_known(result) ? 0 : 1;
}

enum part_state { PART_OPEN, PART_WEAK, PART_DONE }; /* weak: done, and better with more time */

struct part {
    double quick_seconds;   /* on a quiet core; only the proportions count */
    bool needs_first_level; /* of base pages */
    int (*measure)(struct geometry_work *work, struct verdict *verdict);
};

/* Fracture gates every claim about reach, so it comes before the ways. */
static const struct part PARTS[] = {
    {0.1, false, calibrate},
    {0.6, false, measure_first},
    {0.35, true, measure_hit},
    {0.8, true, measure_second},
    {0.8, true, geometry_measure_granules},
    {0.8, true, geometry_measure_ways},
    {0.1, true, measure_huge_levels},
};
enum { PART_COUNT = sizeof(PARTS) / sizeof(PARTS[0]) };

struct parts_run {
    enum part_state states[PART_COUNT];
    struct deadline planned_end;
    bool flat; /* no first level to be seen: nothing else can be measured */
};

/* Its share of the time that is left, among those that still have to run. */
static struct deadline end_of_part(const struct parts_run *run, size_t part)
{
    double seconds = 0;

    for (size_t index = part; index < PART_COUNT; index++) {
        seconds += run->states[index] == PART_DONE ? 0 : PARTS[index].quick_seconds;
    }
    return deadline_after(PARTS[part].quick_seconds / seconds * deadline_remaining_seconds(run->planned_end));
}

/* Runs one part. One that failed leaves nothing but curves. */
static void run_part(struct geometry_work *work, struct parts_run *run, size_t part, struct verdict *verdict)
{
    struct geometry_result *const result = work->result;
    const size_t levels = result->levels.count;
    const size_t penalties = result->penalty_count;

    work->part_end = end_of_part(run, part);
    work->held = false;
    const int status = PARTS[part].measure(work, verdict);

    if (status < 0) {
        result->levels.count = levels;
        result->penalty_count = penalties;
        return;
    }
    run->states[part] = status > 0 ? PART_WEAK : PART_DONE;
    run->flat = run->flat || (PARTS[part].measure == measure_first && work->l1_entries == 0);
}

/* Runs the parts that are not done. Returns false when the section must end; `verdict` is the first failure's. */
static bool run_parts(struct geometry_work *work, struct parts_run *run, struct verdict *verdict)
{
    for (size_t part = 0; part < PART_COUNT && !run->flat; part++) {
        struct verdict part_verdict = {.status = STATUS_OK};
        const bool first_level_missing = PARTS[part].needs_first_level && work->l1_entries == 0;

        if (run->states[part] == PART_DONE || first_level_missing) {
            continue;
        }
        if (session_must_stop(work->session, &part_verdict)) {
            *verdict = verdict->status == STATUS_OK ? part_verdict : *verdict;
            return false;
        }
        const enum part_state before = run->states[part];

        run_part(work, run, part, &part_verdict);
        session_report_progress(work->session, (double)(part + 1) / (PART_COUNT + 1));
        if (run->states[part] == PART_OPEN && before == PART_OPEN && verdict->status == STATUS_OK) {
            *verdict = part_verdict;
        }
        if (isnan(work->l1_hit_ns)) {
            break; /* nothing can be measured without the calibration */
        }
    }
    return true;
}

static bool all_done(const struct parts_run *run)
{
    for (size_t part = 0; part < PART_COUNT && !run->flat; part++) {
        if (run->states[part] != PART_DONE) {
            return false;
        }
    }
    return true;
}

/* What noise spoiled is measured again while there is time, on the core that idles most by then. */
static void measure_with_retries(struct geometry_work *work, struct session *session)
{
    struct verdict *const verdict = &work->result->verdict;
    struct parts_run run = {.planned_end = geometry_planned_end(session)};

    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        *verdict = (struct verdict){.status = STATUS_OK};
        if (!run_parts(work, &run, verdict) || all_done(&run) ||
            (verdict->status != STATUS_OK && verdict->status != STATUS_NOISY) ||
            deadline_remaining_seconds(run.planned_end) < RETRY_SECONDS) {
            break;
        }
        session->cpu = timing_choose_cpu(&session->cpus);
        (void)timing_pin_cpu(session->cpu);
    }
}

int geometry_measure(const struct session *session, struct geometry_result *result)
{
    struct session quieter = *session;
    struct geometry_work work = {
        .session = &quieter,
        .movable = &quieter,
        .result = result,
        .ladder = calloc(1, sizeof(*work.ladder)),
        .effort = session->options->profile == PROFILE_FULL ? FULL_EFFORT : QUICK_EFFORT,
        .l1_hit_ns = NAN,
        .l2_penalty_ns = NAN,
        .second_hit_ns = NAN,
        .cpu_share = 1,
    };

    *result = (struct geometry_result){.alias_cost_ns = NAN, .core_alone_fraction = NAN, .clock = {NAN, NAN, NAN}};
    if (work.ladder == NULL || (session->priors != NULL && tlb_levels_append(&result->levels, session->priors) != 0)) {
        free(work.ladder);
        verdict_set(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    geometry_start_early_pages(&work);
    core_watch_learn(&work.ladder->watch,
                     session->options->profile == PROFILE_FULL ? FULL_LEARN_SECONDS : QUICK_LEARN_SECONDS);
    measure_with_retries(&work, &quieter);
    geometry_end_early_pages(&work);
    result->core_alone_fraction = core_watch_share(&work.ladder->watch);
    free(work.ladder);
    if (result->verdict.status == STATUS_OK) {
        session_report_progress(session, 1.0);
    }
    return tlb_disagreements_find(&result->levels, &result->disagreements, &result->disagreement_count);
}

void geometry_result_free(struct geometry_result *result)
{
    tlb_levels_free(&result->levels);
    curve_list_free(&result->curves);
    free(result->granules);
    free(result->penalties);
    free(result->disagreements);
    *result = (struct geometry_result){0};
}
