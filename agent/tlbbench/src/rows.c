/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "chase.h"
#include "rows_break_even.h"
#include "rows_worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOISY_TRIES = 3,
    PTE_BYTES = 8, /* of a base page in the page tables, on every architecture here */
    SPECS_MAX = 4096,
    SEGMENT_MIN_BYTES = 16 << 20, /* smaller segments fit a last-level cache slice and TLB of any page size */
};

#define QUICK_SEGMENT_BYTES (256ull << 20)
#define FULL_SEGMENT_BYTES (512ull << 20)
/* Time of a measurement; more where workers share a core, so that every one of them gets its turn. */
#define QUICK_SECONDS 0.06
#define FULL_SECONDS 0.08
#define TURN_SECONDS 0.004
/* Steal over this share of a measurement leaves no honest number. */
#define STEAL_SHARE_MAX 0.02

static const uint64_t DEFAULT_ROW_BYTES[] = {128, 8192, 16384};
static const unsigned FULL_WORKERS[] = {1, 2, 4, 8, 16, 32, 64, 128};
static const unsigned QUICK_WORKERS[] = {1, 8, 64};

struct work {
    const struct session *session;
    struct rows_result *result;
    struct rows_segment segments[SESSION_BACKINGS_MAX];
    size_t segment_count;
    double seconds_per_process[SESSION_BACKINGS_MAX]; /* the latest measurement's, retries included */
    struct rows_spec *specs;
    size_t spec_count;
};

/* --- what to measure ---------------------------------------------------------------------------------------------- */

static void add_spec(struct work *work, struct rows_spec spec)
{
    const struct options *const options = work->session->options;

    if (work->spec_count < SPECS_MAX && (options->modes & OPTION_BIT(spec.mode)) != 0 &&
        (options->keys & OPTION_BIT(spec.keys)) != 0 && (options->reads & OPTION_BIT(spec.read)) != 0) {
        work->specs[work->spec_count++] = spec;
    }
}

/* The quick profile varies one thing at a time around a default; explicit lists and the full profile take all
 * combinations at few workers and the ladder of workers for the default. */
static bool is_in_profile(const struct session *session, const struct rows_spec *spec)
{
    const bool is_default = spec->keys == KEYS_UNIFORM && spec->read == READ_INDEX_THEN_ROW;

    if (session->options->workers_count > 0 || session->options->row_bytes_count > 0) {
        return true;
    }
    if (session->options->profile == PROFILE_FULL) {
        return is_default || spec->workers == 1 || spec->workers == 16;
    }
    if (spec->workers != 8) {
        return is_default && spec->row_bytes <= 8192;
    }
    return is_default || (spec->keys == KEYS_UNIFORM && spec->row_bytes == 8192) ||
           (spec->read == READ_INDEX_THEN_ROW && spec->row_bytes <= 8192);
}

static void plan_specs(struct work *work)
{
    const struct options *const options = work->session->options;
    const bool full = options->profile == PROFILE_FULL;
    const unsigned *const workers = options->workers_count > 0 ? options->workers : full ? FULL_WORKERS : QUICK_WORKERS;
    const size_t worker_steps = options->workers_count > 0 ? options->workers_count
                                : full                     ? sizeof(FULL_WORKERS) / sizeof(FULL_WORKERS[0])
                                                           : sizeof(QUICK_WORKERS) / sizeof(QUICK_WORKERS[0]);
    const uint64_t *const widths = options->row_bytes_count > 0 ? options->row_bytes : DEFAULT_ROW_BYTES;
    const size_t width_steps = options->row_bytes_count > 0 ? options->row_bytes_count
                                                            : sizeof(DEFAULT_ROW_BYTES) / sizeof(DEFAULT_ROW_BYTES[0]);

    for (size_t width = 0; width < width_steps; width++) {
        for (size_t step = 0; step < worker_steps; step++) {
            for (unsigned combination = 0; combination < 12; combination++) {
                const struct rows_spec spec = {.row_bytes = widths[width],
                                               .workers = workers[step],
                                               .mode = combination % 2,
                                               .keys = combination / 2 % 2,
                                               .read = combination / 4};

                if (is_in_profile(work->session, &spec)) {
                    add_spec(work, spec);
                }
            }
        }
    }
}

/* Equal for every page size. Page tables of forked workers count too: 8 bytes a base page and worker. */
static size_t choose_segment_bytes(const struct work *work, size_t backings)
{
    const struct session *const session = work->session;
    uint64_t largest = session->options->profile == PROFILE_FULL ? FULL_SEGMENT_BYTES : QUICK_SEGMENT_BYTES;
    unsigned workers = 1;

    for (size_t index = 0; index < work->spec_count; index++) {
        workers = work->specs[index].workers > workers ? work->specs[index].workers : workers;
    }
    if (session->options->segment_bytes > 0) {
        return (size_t)session->options->segment_bytes;
    }
    while (largest > SEGMENT_MIN_BYTES &&
           largest * backings + PTE_BYTES * largest / session->base_page_bytes * workers > session->memory_bytes) {
        largest /= 2;
    }
    return (size_t)largest;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static struct row_measurement *add_measurement(struct work *work, const struct rows_segment *segment,
                                               const struct rows_spec *spec)
{
    struct rows_result *const result = work->result;
    struct row_measurement *const grown =
        realloc(result->measurements, (result->measurement_count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return NULL;
    }
    result->measurements = grown;
    struct row_measurement *const measurement = &grown[result->measurement_count++];

    *measurement = (struct row_measurement){
        .row_bytes = spec->row_bytes,
        .keys = spec->keys,
        .read = spec->read,
        .workers = spec->workers,
        .mode = spec->mode,
        .kind = segment->backing.kind,
        .page_bytes = segment->backing.page_bytes,
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
    memcpy(measurement->backing, segment->backing.name, sizeof(measurement->backing));
    return measurement;
}

static double spec_seconds(const struct work *work, const struct rows_spec *spec)
{
    const double base = work->session->options->profile == PROFILE_FULL ? FULL_SECONDS : QUICK_SECONDS;
    const int cpus = work->session->cpus.count > 0 ? work->session->cpus.count : 1;

    return fmax(base, TURN_SECONDS * spec->workers / cpus);
}

/* True when the hypervisor took so much that the rates mean nothing; then they are dropped and the page tables stay. */
static bool was_stolen(const struct session *session, uint64_t ticks_before, uint64_t start_ns,
                       struct row_measurement *measurement)
{
    const double ns_per_tick = 1e7; /* USER_HZ is 100 */
    const double stolen_ns = (double)(timing_steal_ticks(-1) - ticks_before) * ns_per_tick;
    const double total_ns = (double)(timing_now_ns() - start_ns) * session->cpus.count;

    if (measurement->verdict.status != STATUS_OK || stolen_ns <= ns_per_tick ||
        stolen_ns <= STEAL_SHARE_MAX * total_ns) {
        return false;
    }
    verdict_set(&measurement->verdict, STATUS_NOISY, "the hypervisor took %.0f ms of this measurement",
                stolen_ns / 1e6);
    measurement->rows_per_second = NAN;
    measurement->ns_p50 = NAN;
    measurement->ns_p90 = NAN;
    measurement->ns_p99 = NAN;
    return true;
}

/* What the memory allowed leaves no room for: rows of that width, or the page tables of that many processes. */
static bool fits(const struct work *work, const struct rows_segment *segment, const struct rows_spec *spec,
                 struct verdict *verdict)
{
    const uint64_t memory_bytes = work->session->memory_bytes;
    const uint64_t table_bytes = PTE_BYTES * (segment->mapped_bytes / work->session->base_page_bytes) * spec->workers;
    const unsigned long long mib = 1ull << 20;

    if (rows_count(segment->bytes, spec->row_bytes) < OPTIONS_MIN_ROWS) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "a segment of %llu MiB, as the memory allows, does not hold %d rows of %llu bytes",
                    (unsigned long long)segment->bytes / mib, OPTIONS_MIN_ROWS, (unsigned long long)spec->row_bytes);
        return false;
    }
    if (spec->mode == MODE_PROCESSES && segment->backing.kind == BACKING_BASE &&
        work->result->peak_mapped_bytes + table_bytes > memory_bytes) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "page tables of %u processes take %llu MiB, %llu of %llu MiB are left beside the segments",
                    spec->workers, (unsigned long long)table_bytes / mib,
                    (unsigned long long)(memory_bytes - work->result->peak_mapped_bytes) / mib,
                    (unsigned long long)memory_bytes / mib);
        return false;
    }
    return true;
}

static int measure_one(struct work *work, const struct rows_segment *segment, const struct rows_spec *spec,
                       struct verdict *verdict)
{
    struct row_measurement *const measurement = add_measurement(work, segment, spec);

    if (measurement == NULL) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the result");
        return -1;
    }
    if (measurement->verdict.status == STATUS_OK && !fits(work, segment, spec, &measurement->verdict)) {
        return 0;
    }
    if (segment->fd < 0 && segment->arena.base != NULL) {
        if (spec->mode == MODE_PROCESSES) {
            verdict_set(&measurement->verdict, STATUS_THP_NOT_GRANTED,
                        "shared memory gets no transparent huge pages here: shmem_enabled is '%s'",
                        work->session->environment->thp.shmem_enabled);
            return 0;
        }
    } else if (measurement->verdict.status != STATUS_OK) {
        return 0;
    }
    const struct verdict usable = {.status = STATUS_OK, .reason = ""};

    for (unsigned try = 0; try < NOISY_TRIES; try++) {
        const uint64_t ticks = timing_steal_ticks(-1);
        const uint64_t start_ns = timing_now_ns();

        measurement->verdict = usable;
        if (rows_run(segment, spec, spec_seconds(work, spec), work->session, measurement) != 0) {
            *verdict = measurement->verdict;
            return -1;
        }
        if (!was_stolen(work->session, ticks, start_ns, measurement)) {
            break;
        }
    }
    if (segment->fd < 0 && measurement->verdict.status == STATUS_OK) {
        verdict_set(&measurement->verdict, STATUS_OK,
                    "private memory: shared memory gets no transparent huge pages here");
    }
    return 0;
}

/* Many processes that touch a large segment can take longer than the section has left; such a measurement is left out
 * by itself. */
static bool is_too_long(const struct work *work, size_t segment, const struct rows_spec *spec)
{
    const double seconds = spec_seconds(work, spec) + work->seconds_per_process[segment] * spec->workers;

    return spec->mode == MODE_PROCESSES && seconds > deadline_remaining_seconds(work->session->deadline);
}

static int measure_timed(struct work *work, size_t segment, const struct rows_spec *spec, struct verdict *verdict)
{
    const uint64_t start_ns = timing_now_ns();

    if (is_too_long(work, segment, spec)) {
        struct row_measurement *const measurement = add_measurement(work, &work->segments[segment], spec);

        if (measurement != NULL && measurement->verdict.status == STATUS_OK) {
            verdict_set(&measurement->verdict, STATUS_STOPPED, "the time left is too short for %u processes",
                        spec->workers);
        }
        return measurement == NULL ? -1 : 0;
    }
    const int status = measure_one(work, &work->segments[segment], spec, verdict);

    if (spec->mode == MODE_PROCESSES) {
        work->seconds_per_process[segment] = (double)(timing_now_ns() - start_ns) / 1e9 / spec->workers;
    }
    return status;
}

static int measure_specs(struct work *work, struct verdict *verdict)
{
    struct rng rng = rng_new(work->session->options->seed, 0x20305u);
    uint32_t order[SESSION_BACKINGS_MAX];

    for (uint32_t index = 0; index < work->segment_count; index++) {
        order[index] = index;
    }
    for (size_t spec = 0; spec < work->spec_count; spec++) {
        chase_shuffle(order, work->segment_count, &rng);
        session_report_progress(work->session, (double)spec / (double)work->spec_count);
        for (size_t step = 0; step < work->segment_count; step++) {
            if (session_must_stop(work->session, verdict) ||
                measure_timed(work, order[step], &work->specs[spec], verdict) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int open_segments(struct work *work, struct verdict *verdict)
{
    struct backing backings[SESSION_BACKINGS_MAX];
    const size_t count = session_list_backings(work->session, backings);
    const size_t bytes = choose_segment_bytes(work, count);

    for (size_t index = 0; index < count; index++) {
        struct rows_segment *const segment = &work->segments[work->segment_count++];

        if (rows_segment_open(segment, &backings[index], bytes, work->result->peak_mapped_bytes, work->session,
                              verdict) != 0) {
            return -1;
        }
        work->result->peak_mapped_bytes += segment->fd >= 0 || segment->arena.base != NULL ? segment->mapped_bytes : 0;
    }
    return 0;
}

int rows_measure(const struct session *session, struct rows_result *result)
{
    struct work work = {.session = session, .result = result};

    *result = (struct rows_result){0};
    work.specs = calloc(SPECS_MAX, sizeof(*work.specs));
    if (work.specs == NULL) {
        return -1;
    }
    plan_specs(&work);
    if (open_segments(&work, &result->verdict) == 0 && measure_specs(&work, &result->verdict) == 0) {
        result->verdict.status = STATUS_OK;
        session_report_progress(session, 1.0);
    }
    const int status =
        rows_find_break_even(work.result, work.segments, work.segment_count, work.session->base_page_bytes);

    for (size_t index = 0; index < work.segment_count; index++) {
        rows_segment_close(&work.segments[index]);
    }
    free(work.specs);
    return status;
}

void rows_result_free(struct rows_result *result)
{
    free(result->measurements);
    free(result->break_evens);
    *result = (struct rows_result){0};
}
