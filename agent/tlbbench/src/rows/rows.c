/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/result.h"

#include "base/clock.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "base/units.h"
#include "base/verdict.h"
#include "memory/backing.h"
#include "rows/parts.h"
#include "timing/guard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOISY_TRIES = 3,  /* at once */
    LATER_PASSES = 2, /* over those that stayed noisy, when all others are done: the hypervisor takes time in spells */
    PTE_BYTES = 8,    /* of a base page in the page tables, on every architecture here */
    SEGMENT_MIN_BYTES = 16 << 20, /* smaller segments fit a last-level cache slice and TLB of any page size */
};

/* Set by hand: several times the reach of 2,048 entries of 4K pages; more would only take time to touch. */
#define QUICK_SEGMENT_BYTES (256 * MIB)
#define FULL_SEGMENT_BYTES (512 * MIB)
/* Time of a measurement, so that each profile keeps its budget (cli/sections.c); more where workers share a core, so
 * that every one of them gets its turn. */
#define QUICK_SECONDS 0.06
#define FULL_SECONDS 0.08
#define TURN_SECONDS 0.004
/* Of the time that is left, for the later passes. */
#define LATER_SHARE 0.4

struct rows_run {
    const struct session *session;
    const struct rows_request *request;
    struct rows_result *result;
    struct rows_segment segments[SESSION_BACKINGS_MAX];
    size_t segment_count;
    double seconds_per_process[SESSION_BACKINGS_MAX]; /* the latest measurement's, retries included */
    struct rows_specs specs;
};

/* Equal for every page size. Page tables of forked workers count too: 8 bytes per base page and worker. */
static size_t choose_segment_bytes(const struct rows_run *run, size_t backings)
{
    const struct session *session = run->session;
    uint64_t largest = session->full ? FULL_SEGMENT_BYTES : QUICK_SEGMENT_BYTES;
    unsigned workers = 1;

    for (size_t index = 0; index < run->specs.count; index++)
        workers = run->specs.items[index].workers > workers ? run->specs.items[index].workers : workers;
    if (run->request->segment_bytes > 0)
        return (size_t)run->request->segment_bytes;
    while (largest > SEGMENT_MIN_BYTES &&
           largest * backings + PTE_BYTES * largest / session->base_page_bytes * workers > session->memory_bytes)
        largest /= 2;
    return (size_t)largest;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

/* The result has room for every spec on every segment. */
static struct row_measurement *add_measurement(struct rows_run *run, const struct rows_segment *segment,
                                               const struct rows_spec *spec)
{
    struct row_measurement *measurement = &run->result->measurements[run->result->measurement_count++];

    *measurement = (struct row_measurement){
        .spec = *spec,
        .backing = segment->backing,
        .segment_bytes = segment->bytes,
        .rows_per_second = NAN,
        .ns_p50 = NAN,
        .ns_p90 = NAN,
        .ns_p99 = NAN,
        .vm_pte_bytes_per_process = UINT64_MAX,
        .vm_pte_bytes_total = UINT64_MAX,
        .first_touch_seconds = NAN,
        .first_touch_cpu_seconds = NAN,
        .verdict = segment->verdict,
    };
    return measurement;
}

static double spec_seconds(const struct rows_run *run, const struct rows_spec *spec)
{
    double base = run->session->full ? FULL_SECONDS : QUICK_SECONDS;
    int cpus = run->session->cpus.count > 0 ? run->session->cpus.count : 1;

    return fmax(base, TURN_SECONDS * spec->workers / cpus);
}

/* True when the hypervisor took so much that the rates mean nothing; then they are dropped and the page tables stay. */
static bool was_stolen(const struct session *session, const struct steal_watch *steal,
                       struct row_measurement *measurement)
{
    double stolen_ns = measurement->verdict.status == STATUS_OK ? steal_excess_ns(steal, session->cpus.count) : 0;

    if (stolen_ns <= 0)
        return false;
    verdict_set(&measurement->verdict, STATUS_NOISY, "the hypervisor took %.0f ms of this measurement",
                stolen_ns / 1e6);
    measurement->rows_per_second = NAN;
    measurement->ns_p50 = NAN;
    measurement->ns_p90 = NAN;
    measurement->ns_p99 = NAN;
    return true;
}

/* What the memory allowed leaves no room for: rows of that width, or the page tables of that many processes. */
static bool fits(const struct rows_run *run, const struct rows_segment *segment, const struct rows_spec *spec,
                 struct verdict *verdict)
{
    uint64_t memory_bytes = run->session->memory_bytes;
    uint64_t table_bytes = PTE_BYTES * (segment->mapped_bytes / run->session->base_page_bytes) * spec->workers;

    if (rows_count(segment->bytes, spec->row_bytes) < ROWS_MIN) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "a segment of %llu MiB, as the memory allows, does not hold %d rows of %llu bytes",
                    (unsigned long long)segment->bytes / MIB, ROWS_MIN, (unsigned long long)spec->row_bytes);
        return false;
    }
    if (spec->mode == MODE_PROCESSES && segment->backing.kind == BACKING_BASE &&
        run->result->peak_mapped_bytes + table_bytes > memory_bytes) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "page tables of %u processes take %llu MiB, %llu of %llu MiB are left beside the segments",
                    spec->workers, (unsigned long long)table_bytes / MIB,
                    (unsigned long long)(memory_bytes - run->result->peak_mapped_bytes) / MIB,
                    (unsigned long long)memory_bytes / MIB);
        return false;
    }
    return true;
}

/* Measures until the hypervisor leaves a try alone. */
static int run_tries(const struct rows_run *run, const struct rows_segment *segment, const struct rows_spec *spec,
                     struct row_measurement *measurement, struct verdict *verdict)
{
    struct verdict usable = {.status = STATUS_OK, .reason = ""};

    for (unsigned try = 0; try < NOISY_TRIES; try++) {
        struct steal_watch steal = steal_begin(-1);

        measurement->verdict = usable;
        if (workers_run(segment, spec, spec_seconds(run, spec), run->session, measurement) != 0) {
            *verdict = measurement->verdict;
            return -1;
        }
        if (!was_stolen(run->session, &steal, measurement))
            break;
    }
    if (segment->fd < 0 && measurement->verdict.status == STATUS_OK) {
        verdict_set(&measurement->verdict, STATUS_OK,
                    "private memory: shared memory gets no transparent huge pages here");
    }
    return 0;
}

static int measure_one(struct rows_run *run, const struct rows_segment *segment, const struct rows_spec *spec,
                       struct verdict *verdict)
{
    struct row_measurement *measurement = add_measurement(run, segment, spec);

    if (measurement->verdict.status == STATUS_OK && !fits(run, segment, spec, &measurement->verdict))
        return 0;
    if (segment->fd < 0 && segment->arena.base != NULL && spec->mode == MODE_PROCESSES) {
        verdict_set(&measurement->verdict, STATUS_THP_NOT_GRANTED,
                    "shared memory gets no transparent huge pages here: shmem_enabled is '%s'",
                    run->session->environment->thp.shmem_enabled);
        return 0;
    }
    if (measurement->verdict.status != STATUS_OK)
        return 0;
    return run_tries(run, segment, spec, measurement, verdict);
}

/* Many processes that touch a large segment can take longer than the section has left; such a measurement is left out
 * by itself. */
static bool is_too_long(const struct rows_run *run, size_t segment, const struct rows_spec *spec)
{
    double seconds = spec_seconds(run, spec) + run->seconds_per_process[segment] * spec->workers;

    return spec->mode == MODE_PROCESSES && seconds > deadline_remaining_seconds(run->session->deadline);
}

static int measure_timed(struct rows_run *run, size_t segment, const struct rows_spec *spec, struct verdict *verdict)
{
    uint64_t start_ns = clock_now_ns();

    if (is_too_long(run, segment, spec)) {
        struct row_measurement *measurement = add_measurement(run, &run->segments[segment], spec);

        if (measurement->verdict.status == STATUS_OK)
            verdict_set(&measurement->verdict, STATUS_STOPPED, "the time left is too short for %u processes",
                        spec->workers);
        return 0;
    }
    int status = measure_one(run, &run->segments[segment], spec, verdict);

    if (spec->mode == MODE_PROCESSES)
        run->seconds_per_process[segment] = (double)(clock_now_ns() - start_ns) / 1e9 / spec->workers;
    return status;
}

static size_t segment_of(const struct rows_run *run, const struct row_measurement *measurement)
{
    size_t segment = 0;

    while (strcmp(run->segments[segment].backing.name, measurement->backing.name) != 0)
        segment++;
    return segment;
}

/* Measures once more what stayed noisy. Its former figures stay where time or a stop ends that. */
static void measure_noisy_again(struct rows_run *run)
{
    struct deadline end = deadline_after(LATER_SHARE * deadline_remaining_seconds(run->session->deadline));

    for (size_t step = 0; step < LATER_PASSES * run->result->measurement_count; step++) {
        struct row_measurement *measurement = &run->result->measurements[step % run->result->measurement_count];
        struct row_measurement before = *measurement;
        size_t segment = segment_of(run, measurement);
        struct verdict verdict;

        if (before.verdict.status != STATUS_NOISY || is_too_long(run, segment, &before.spec))
            continue;
        if (deadline_passed(end) || session_must_stop(run->session, &verdict))
            return;
        if (run_tries(run, &run->segments[segment], &before.spec, measurement, &verdict) != 0) {
            *measurement = before;
            return;
        }
    }
}

static int measure_specs(struct rows_run *run, struct verdict *verdict)
{
    struct rng rng = rng_new(run->session->seed, 0x20305u);
    uint32_t order[SESSION_BACKINGS_MAX];

    for (uint32_t index = 0; index < run->segment_count; index++)
        order[index] = index;
    for (size_t spec = 0; spec < run->specs.count; spec++) {
        permutation_shuffle(order, run->segment_count, &rng);
        session_report_progress(run->session, (double)spec / (double)run->specs.count);
        for (size_t step = 0; step < run->segment_count; step++)
            if (session_must_stop(run->session, verdict) ||
                measure_timed(run, order[step], &run->specs.items[spec], verdict) != 0)
                return -1;
    }
    measure_noisy_again(run);
    return 0;
}

static int open_segments(struct rows_run *run, struct verdict *verdict)
{
    const struct backing *backings = run->session->backings;
    size_t count = run->session->backing_count;
    size_t bytes = choose_segment_bytes(run, count);

    for (size_t index = 0; index < count; index++) {
        struct rows_segment *segment = &run->segments[run->segment_count++];

        if (rows_segment_open(segment, &backings[index], bytes, run->result->peak_mapped_bytes, run->session,
                              verdict) != 0)
            return -1;
        run->result->peak_mapped_bytes += segment->fd >= 0 || segment->arena.base != NULL ? segment->mapped_bytes : 0;
    }
    return 0;
}

int rows_measure(const struct session *session, const struct rows_request *request, struct rows_result *result)
{
    struct rows_run run = {.session = session, .request = request, .result = result};

    *result = (struct rows_result){0};
    rows_plan(request, session->full, &run.specs);
    result->measurements = calloc(run.specs.count + 1, session->backing_count * sizeof(*result->measurements));
    if (result->measurements == NULL)
        return -1;
    if (open_segments(&run, &result->verdict) == 0 && measure_specs(&run, &result->verdict) == 0) {
        result->verdict.status = STATUS_OK;
        session_report_progress(session, 1.0);
    }
    int status = rows_find_break_even(run.result, run.segments, run.segment_count, run.session->base_page_bytes);

    for (size_t index = 0; index < run.segment_count; index++)
        rows_segment_close(&run.segments[index]);
    return status;
}

void rows_result_free(struct rows_result *result)
{
    free(result->measurements);
    free(result->break_evens);
    *result = (struct rows_result){0};
}
