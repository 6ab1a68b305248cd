/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry/work.h"

/* Effort of a sweep: every round has a new access permutation, which is what medians differ by; batches are as short as
 * the clocks allow, so that a busy core cuts few of them. */
static const struct sweep_effort QUICK_EFFORT = {
    .rounds = 10, .rounds_max = 24, .smt_rounds = 100, .batches = 1, .batch_seconds = 0.25e-3, .control = false};
static const struct sweep_effort FULL_EFFORT = {.rounds = 25,
                                                .rounds_max = 60,
                                                .smt_rounds = 10000,
                                                .idle_wanted = 12,
                                                .batches = 1,
                                                .batch_seconds = 0.5e-3,
                                                .control = false};

/* For a SMT sibling to pause at least once. */
#define QUICK_LEARN_SECONDS 0.03
#define FULL_LEARN_SECONDS 0.5

/* Less time left is better spent on reporting. */
#define RETRY_SECONDS 0.3

enum { ATTEMPTS = 4 };

static int measure_first(struct geometry_work *work, struct verdict *verdict)
{
    return geometry_measure_first_level(work, &work->session->backings[0], &work->first, verdict);
}

static int measure_second(struct geometry_work *work, struct verdict *verdict)
{
    return geometry_measure_second_level(work, &work->session->backings[0], &work->first, verdict);
}

static int measure_huge_levels(struct geometry_work *work, struct verdict *verdict)
{
    struct geometry_result *result = work->result;

    for (size_t index = 0; index < result->effective_page_count; index++) {
        struct effective_page *effective_page = &result->effective_pages[index];
        const struct backing *backing = &effective_page->backing;
        struct geometry_first_level first;

        /* Only hugetlb pages can be mapped many times; a fractured one would measure the structure of its parts. */
        if (backing->kind != BACKING_HUGETLB || effective_page->verdict.status != STATUS_OK ||
            geometry_find_measured(result, 1, backing->page_bytes) != NULL)
            continue;
        if (geometry_measure_first_level(work, backing, &first, verdict) != 0)
            return -1;
        /* One line per page would count pieces of the second level as if each were a page. */
        if (first.entries > 0 && geometry_second_level_has_pieces(work, backing, &first))
            (void)snprintf(effective_page->verdict.reason, sizeof(effective_page->verdict.reason),
                           "the first level holds the page whole; the second level holds smaller pieces");
        else if (first.entries > 0 && geometry_measure_second_level(work, backing, &first, verdict) != 0)
            return -1;
    }
    return geometry_open_pages(result) > 0 ? 1 : 0;
}

enum part_state { PART_OPEN, PART_WEAK, PART_DONE }; /* weak: done, and better with more time */

struct part {
    double quick_seconds;   /* on a quiet core; only the proportions count */
    bool needs_first_level; /* of base pages */
    int (*measure)(struct geometry_work *work, struct verdict *verdict);
};

/* Fracture gates every claim about reach, so it comes before the ways. */
static const struct part PARTS[] = {
    {0.1, false, geometry_calibrate},
    {0.6, false, measure_first},
    {0.35, true, geometry_measure_hit},
    {0.8, true, measure_second},
    {0.8, true, geometry_measure_effective_pages},
    {0.8, true, geometry_measure_ways},
    {0.1, true, geometry_measure_second_ways},
    {0.1, true, measure_huge_levels},
};
enum { PART_COUNT = sizeof(PARTS) / sizeof(PARTS[0]) };

struct parts_run {
    enum part_state states[PART_COUNT];
    struct deadline planned_end;
    bool flat; /* no first level to be seen: nothing else can be measured */
};

/* Its share of the time that is left, among those that still have to run and those before it that wait for more. */
static struct deadline end_of_part(const struct parts_run *run, size_t part)
{
    double seconds = 0;

    for (size_t index = 0; index < PART_COUNT; index++)
        if (index < part ? run->states[index] == PART_WEAK : run->states[index] != PART_DONE)
            seconds += PARTS[index].quick_seconds;
    return deadline_after(PARTS[part].quick_seconds / seconds * deadline_remaining_seconds(run->planned_end));
}

static void run_part(struct geometry_work *work, struct parts_run *run, size_t part, struct verdict *verdict)
{
    struct geometry_result *result = work->result;
    size_t levels = result->levels.count;
    size_t penalties = result->penalty_count;

    work->part_end = end_of_part(run, part);
    work->contended = false;
    int status = PARTS[part].measure(work, verdict);

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
        bool first_level_missing = PARTS[part].needs_first_level && work->l1_entries == 0;

        if (run->states[part] == PART_DONE || first_level_missing)
            continue;
        if (session_must_stop(work->session, &part_verdict)) {
            *verdict = verdict->status == STATUS_OK ? part_verdict : *verdict;
            return false;
        }
        enum part_state before = run->states[part];

        run_part(work, run, part, &part_verdict);
        session_report_progress(work->session, (double)(part + 1) / (PART_COUNT + 1));
        if (run->states[part] == PART_OPEN && before == PART_OPEN && verdict->status == STATUS_OK)
            *verdict = part_verdict;
        if (part_verdict.status == STATUS_CANNOT_TELL && PARTS[part].measure != measure_huge_levels)
            work->unseen = part_verdict;
        if (isnan(work->l1_hit_ns))
            break; /* nothing can be measured without the calibration */
    }
    return true;
}

static bool all_done(const struct parts_run *run)
{
    for (size_t part = 0; part < PART_COUNT && !run->flat; part++)
        if (run->states[part] != PART_DONE)
            return false;
    return true;
}

/* What noise spoiled is measured again while there is time, on the core that idles most by then. */
static void measure_with_retries(struct geometry_work *work, struct session *session)
{
    struct verdict *verdict = &work->result->verdict;
    struct parts_run run = {.planned_end = geometry_planned_end(session)};

    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        *verdict = (struct verdict){.status = STATUS_OK};
        if (!run_parts(work, &run, verdict) || all_done(&run) ||
            (verdict->status != STATUS_OK && verdict->status != STATUS_NOISY) ||
            deadline_remaining_seconds(run.planned_end) < RETRY_SECONDS)
            break;
        session->cpu = cpus_choose(&session->cpus);
        (void)cpus_pin(session->cpu);
        work->idle.wall_ns = 0; /* choosing takes time that is no sign of contention */
    }
}

int geometry_measure(struct session *session, struct geometry_result *result)
{
    struct geometry_work work = {
        .session = session,
        .result = result,
        .sweep = calloc(1, sizeof(*work.sweep)),
        .effort = session->full ? FULL_EFFORT : QUICK_EFFORT,
        .l1_hit_ns = NAN,
        .l2_penalty_ns = NAN,
        .second_hit_ns = NAN,
        .cpu_share = 1,
    };

    *result = (struct geometry_result){.alias_cost_ns = NAN, .core_alone_fraction = NAN, .clock = {NAN, NAN, NAN}};
    if (session->priors != NULL)
        result->levels = *session->priors;
    if (work.sweep == NULL)
        return FAILED(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
    smt_watch_learn(&work.sweep->watch, session->full ? FULL_LEARN_SECONDS : QUICK_LEARN_SECONDS);
    measure_with_retries(&work, session);
    geometry_call_witness(&work);
    if (result->verdict.status == STATUS_OK)
        result->verdict = work.unseen;
    result->core_alone_fraction = smt_watch_idle_share(&work.sweep->watch);
    free(work.sweep);
    if (result->verdict.status == STATUS_OK)
        session_report_progress(session, 1.0);
    tlb_disagreements_find(&result->levels, &result->disagreements);
    return 0;
}
