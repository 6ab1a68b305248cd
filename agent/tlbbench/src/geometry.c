/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry_steps.h"

#include "statistics.h"
#include "tlb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Effort of a ladder: medians of 15 batches repeat within 2 % on a shared core, and the whole fits the budget. */
static const struct ladder_effort QUICK_EFFORT = {.rounds = 5, .batches = 3, .batch_seconds = 0.4e-3, .control = false};
static const struct ladder_effort FULL_EFFORT = {.rounds = 9, .batches = 5, .batch_seconds = 1.0e-3, .control = false};

/* An attempt that finds the first level takes about this long; less time left is better spent on reporting. */
#define RETRY_SECONDS 1.0

/* A core is held by others when a ladder got less than this share of it; shorter ones say too little. */
#define HELD_CPU_SHARE 0.9
#define LOOK_NS_MIN 3e7

/* Sharing a line counts as costly from here: twice what placement noise does to an L1 hit. */
#define SHARED_LINE_COST_SHARE 0.10

enum {
    ATTEMPTS = 4,
    CALIBRATION_PAGES = 32, /* below every first-level TLB in the catalogue, above what one cache line holds */
};

/* Other work that came after the core was chosen makes a ladder slow long before it makes it noisy, and the time runs
 * out: then the core that idles most now is taken. */
static void leave_held_core(struct geometry_work *work)
{
    const double wall_ns = (double)(timing_now_ns() - work->wall_ns);
    const double cpu_ns = (double)(timing_thread_cpu_ns() - work->cpu_ns);

    if (work->movable != NULL && work->wall_ns != 0 && wall_ns > LOOK_NS_MIN && cpu_ns < HELD_CPU_SHARE * wall_ns) {
        work->movable->cpu = timing_choose_cpu(&work->movable->cpus);
        (void)timing_pin_cpu(work->movable->cpu);
    }
    work->wall_ns = timing_now_ns();
    work->cpu_ns = timing_thread_cpu_ns();
}

void geometry_start_ladder(struct geometry_work *work)
{
    leave_held_core(work);
    work->ladder->count = 0;
    work->ladder->seed = ++work->stream;
}

void geometry_keep_curve(struct geometry_work *work, const char *name, const struct backing *backing, bool packed,
                         const char *layout, const struct verdict *verdict)
{
    struct curve *const curve = curve_list_add(&work->result->curves);

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

/* Median ns of one cycle of CALIBRATION_PAGES pages with these slots, and of its packed view. */
static int time_calibration(struct geometry_work *work, enum window_slots slots, double *view_ns, double *packed_ns,
                            struct verdict *verdict)
{
    const uint64_t base = work->session->base_page_bytes;
    const struct window_request request = {
        .page_bytes = base, .base_bytes = base, .stride_pages = 1, .pages_max = CALIBRATION_PAGES, .slots = slots};
    struct ladder_effort effort = work->effort;
    struct window window;

    if (window_open(&window, &request, verdict) != 0) {
        return -1;
    }
    geometry_start_ladder(work);
    ladder_add_point(work->ladder, CALIBRATION_PAGES);
    effort.control = true;
    const int result = ladder_measure_window(work->ladder, &window, &effort, work->session, verdict);

    *view_ns = work->ladder->cells[0].view.stats.ns_p50;
    *packed_ns = work->ladder->cells[0].packed.stats.ns_p50;
    window_close(&window);
    return result;
}

int geometry_calibrate(struct geometry_work *work, struct verdict *verdict)
{
    double lines_ns, packed_ns, shared_ns, ignored_ns;

    work->result->clock.core_hz = timing_core_hz();
    if (time_calibration(work, WINDOW_SLOTS_LINES, &lines_ns, &packed_ns, verdict) != 0 ||
        time_calibration(work, WINDOW_SLOTS_SHARED, &shared_ns, &ignored_ns, verdict) != 0) {
        return -1;
    }
    work->l1_hit_ns = fmin(lines_ns, packed_ns);
    work->result->clock.l1_hit_ns = work->l1_hit_ns;
    work->result->clock.l1_hit_cycles = work->l1_hit_ns * work->result->clock.core_hz / 1e9;
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

static int measure_huge_levels(struct geometry_work *work, struct verdict *verdict)
{
    struct geometry_result *const result = work->result;
    int status = 0;

    for (size_t index = 0; index < result->granule_count && status == 0; index++) {
        const struct granule *const granule = &result->granules[index];
        struct backing backing = {.kind = granule->kind, .page_bytes = granule->page_bytes};

        /* Only hugetlb pages can be mapped many times; a fractured one would measure the structure of its parts. */
        if (granule->kind == BACKING_HUGETLB && granule->verdict.status == STATUS_OK) {
            memcpy(backing.name, granule->backing, sizeof(backing.name));
            status = geometry_measure_levels(work, &backing, verdict);
        }
    }
    return status;
}

static int measure_steps(struct geometry_work *work, struct verdict *verdict)
{
    struct backing base = {.kind = BACKING_BASE, .page_bytes = work->session->base_page_bytes};
    char text[PAGE_TEXT_BYTES];

    (void)snprintf(base.name, sizeof(base.name), "%.15s", page_text(base.page_bytes, text));
    if (geometry_calibrate(work, verdict) != 0) {
        return -1;
    }
    session_report_progress(work->session, 0.1);
    if (geometry_measure_levels(work, &base, verdict) != 0) {
        return -1;
    }
    session_report_progress(work->session, 0.6);
    /* Fracture gates every claim about reach, so it comes before the ways when time is short. */
    if (work->l1_entries > 0 && geometry_measure_granules(work, verdict) != 0) {
        return -1;
    }
    session_report_progress(work->session, 0.75);
    if (work->l1_entries > 0 && geometry_measure_ways(work, verdict) != 0) {
        return -1;
    }
    session_report_progress(work->session, 0.9);
    return measure_huge_levels(work, verdict);
}

/* Drops what was measured and keeps what CPUID and the catalogue say. */
static void forget_measured(struct geometry_result *result, size_t prior_levels)
{
    result->levels.count = prior_levels;
    result->penalty_count = 0;
    result->granule_count = 0;
    free(result->granules);
    result->granules = NULL;
    curve_list_free(&result->curves);
    result->coalescing_seen = false;
}

/* A disturbed attempt is repeated on the core that idles most by then. */
static int measure_with_retries(struct geometry_work *work, struct session *session)
{
    struct verdict *const verdict = &work->result->verdict;
    const size_t prior_levels = work->result->levels.count;
    int measured = -1;

    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt > 0) {
            forget_measured(work->result, prior_levels);
            session->cpu = timing_choose_cpu(&session->cpus);
            (void)timing_pin_cpu(session->cpu);
        }
        *verdict = (struct verdict){.status = STATUS_OK};
        measured = measure_steps(work, verdict);
        if (measured == 0 || verdict->status != STATUS_NOISY ||
            deadline_remaining_seconds(session->deadline) < RETRY_SECONDS) {
            break;
        }
    }
    return measured;
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
    };

    *result = (struct geometry_result){.alias_cost_ns = NAN, .clock = {NAN, NAN, NAN}};
    if (work.ladder == NULL || (session->priors != NULL && tlb_levels_append(&result->levels, session->priors) != 0)) {
        free(work.ladder);
        verdict_set(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    const int measured = measure_with_retries(&work, &quieter);

    free(work.ladder);
    if (measured == 0) {
        result->verdict.status = STATUS_OK;
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
