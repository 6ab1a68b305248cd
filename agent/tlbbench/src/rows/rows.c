/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"
#include "timing/guard.h"

enum { ROWS_COMBINATIONS = ROW_MODE_COUNT * ROW_KEYS_COUNT * ROW_READ_COUNT }; /* of a width and number of workers */

/* What every page size is measured with. */
struct rows_specs {
    struct rows_spec items[NUMBER_LIST_MAX * NUMBER_LIST_MAX * ROWS_COMBINATIONS];
    size_t count;
};

static const struct number_list DEFAULT_ROW_BYTES = {{128, 8192, 16384}, 3};
static const struct number_list FULL_WORKERS = {{1, 2, 4, 8, 16, 32, 64, 128}, 8};
static const struct number_list QUICK_WORKERS = {{1, 8, 64}, 3};

/* The quick profile varies one thing at a time around a default; explicit lists and the full profile take all
 * combinations at few workers and the sweep of workers for the default. */
static bool is_in_profile(const struct rows_request *request, bool full, const struct rows_spec *spec)
{
    bool is_default = spec->keys == KEYS_UNIFORM && spec->read == READ_INDEX_THEN_ROW;

    if (request->workers.count > 0 || request->row_bytes.count > 0)
        return true;
    if (full)
        return is_default || spec->workers == 1 || spec->workers == 16;
    if (spec->workers != 8)
        return is_default && spec->row_bytes <= 8192;
    return is_default || (spec->keys == KEYS_UNIFORM && spec->row_bytes == 8192) ||
           (spec->read == READ_INDEX_THEN_ROW && spec->row_bytes <= 8192);
}

static void list_specs(const struct rows_request *request, bool full, struct rows_specs *specs)
{
    const struct number_list *widths = request->row_bytes.count > 0 ? &request->row_bytes : &DEFAULT_ROW_BYTES;
    const struct number_list *workers = request->workers.count > 0 ? &request->workers
                                        : full                     ? &FULL_WORKERS
                                                                   : &QUICK_WORKERS;

    specs->count = 0;
    for (size_t width = 0; width < widths->count; width++) {
        for (size_t step = 0; step < workers->count; step++) {
            for (unsigned combination = 0; combination < ROWS_COMBINATIONS; combination++) {
                struct rows_spec spec = {.row_bytes = widths->items[width],
                                         .workers = (unsigned)workers->items[step],
                                         .mode = combination % 2,
                                         .keys = combination / 2 % 2,
                                         .read = combination / 4};

                if (is_in_profile(request, full, &spec) && (request->modes & SET_BIT(spec.mode)) != 0 &&
                    (request->keys & SET_BIT(spec.keys)) != 0 && (request->reads & SET_BIT(spec.read)) != 0)
                    specs->items[specs->count++] = spec;
            }
        }
    }
}

const char *const ROW_KEYS_NAMES[] = {[KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf"};

const char *const ROW_READ_NAMES[] = {
    [READ_HEADER] = "header", [READ_ROW] = "row", [READ_INDEX_THEN_ROW] = "index_then_row"};

const char *const ROW_MODE_NAMES[] = {[MODE_THREADS] = "threads", [MODE_PROCESSES] = "processes"};

enum {
    NOISY_TRIES = 3, /* at once */
    QUICK_ROUNDS = 3,
    FULL_ROUNDS = 4,
    PTE_BYTES = 8,                /* of a base page in the page tables, on every architecture here */
    SEGMENT_MIN_BYTES = 16 << 20, /* smaller segments fit a last-level cache slice and TLB of any page size */
};

/* Set by hand: several times the reach of 2,048 entries of 4K pages; more would only take time to touch. */
#define QUICK_SEGMENT_BYTES (256 * MIB)
#define FULL_SEGMENT_BYTES (512 * MIB)
/* Time of a round, so that each profile keeps its budget (cli/sections.c); more where workers share a core, so that
 * every one of them gets its turn. */
#define QUICK_SECONDS 0.04
#define FULL_SECONDS 0.06
#define TURN_SECONDS 0.004
/* For all further rounds: this long, or this share of the time that is left; and of that for one round of a spec. */
#define QUICK_REPEAT_SECONDS 5
#define FULL_REPEAT_SECONDS 30
#define REPEAT_SHARE 0.4
#define ROUND_SHARE 0.1

static const struct rows_round NO_FIGURES = {NAN, NAN, NAN, NAN, NAN};

struct rows_run {
    const struct session *session;
    const struct rows_request *request;
    struct rows_result *result;
    struct rows_segment segments[SESSION_BACKINGS_MAX];
    size_t segment_count;
    double seconds_per_process[SESSION_BACKINGS_MAX]; /* the latest round's, retries included */
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

static double spec_seconds(const struct rows_run *run, const struct rows_spec *spec)
{
    double base = run->session->full ? FULL_SECONDS : QUICK_SECONDS;
    int cpus = run->session->cpus.count > 0 ? run->session->cpus.count : 1;

    return fmax(base, TURN_SECONDS * spec->workers / cpus);
}

/* Of one round; many processes touch a large segment for longer than they read it. */
static double round_seconds(const struct rows_run *run, size_t segment, const struct rows_spec *spec)
{
    return spec_seconds(run, spec) +
           (spec->mode == MODE_PROCESSES ? run->seconds_per_process[segment] * spec->workers : 0);
}

/* What the memory allowed leaves no room for: rows of that width, or the page tables of that many processes. */
static bool fits(const struct rows_run *run, const struct rows_segment *segment, const struct rows_spec *spec,
                 struct verdict *verdict)
{
    uint64_t memory_bytes = run->session->memory_bytes;
    uint64_t table_bytes = PTE_BYTES * (segment->mapped_bytes / run->session->base_page_bytes) * spec->workers;

    if (rows_count(segment->bytes, spec->row_bytes) < ROWS_MIN)
        return REFUSED(verdict, STATUS_MEMORY_LIMIT,
                       "a segment of %" PRIu64 " MiB, as the memory allows, does not hold %d rows of %" PRIu64 " bytes",
                       segment->bytes / MIB, ROWS_MIN, spec->row_bytes);
    if (spec->mode == MODE_PROCESSES && segment->backing.kind == BACKING_BASE &&
        run->result->peak_mapped_bytes + table_bytes > memory_bytes)
        return REFUSED(verdict, STATUS_MEMORY_LIMIT,
                       "page tables of %u processes take %" PRIu64 " MiB, %" PRIu64 " of %" PRIu64
                       " MiB are left beside the segments",
                       spec->workers, table_bytes / MIB, (memory_bytes - run->result->peak_mapped_bytes) / MIB,
                       memory_bytes / MIB);
    return true;
}

/* Whether the first round can be tried: the segment is there, it fits, and so does its time. */
static bool can_measure(const struct rows_run *run, size_t segment, const struct rows_spec *spec,
                        struct verdict *verdict)
{
    const struct rows_segment *found = &run->segments[segment];

    *verdict = found->verdict;
    if (verdict->status != STATUS_OK || !fits(run, found, spec, verdict))
        return false;
    if (found->fd < 0 && found->arena.base != NULL && spec->mode == MODE_PROCESSES)
        verdict_set(verdict, STATUS_THP_NOT_GRANTED,
                    "shared memory gets no transparent huge pages here: shmem_enabled is '%s'",
                    run->session->environment->thp.shmem_enabled);
    else if (round_seconds(run, segment, spec) > deadline_remaining_seconds(run->session->deadline))
        verdict_set(verdict, STATUS_STOPPED, "the time left is too short for %u workers", spec->workers);
    return verdict->status == STATUS_OK;
}

/* Measures until the hypervisor leaves a try alone: rates of others mean nothing and are dropped, and the page tables
 * stay. */
static int run_tries(const struct rows_run *run, const struct rows_segment *segment,
                     struct row_measurement *measurement, struct rows_round *round)
{
    double seconds = spec_seconds(run, &measurement->spec);

    for (unsigned try = 0; try < NOISY_TRIES; try++) {
        struct steal_watch steal = steal_begin(-1);

        measurement->verdict = (struct verdict){.status = STATUS_OK};
        if (workers_run(segment, seconds, run->session, measurement, round) != 0)
            return -1;
        double stolen_ns =
            measurement->verdict.status == STATUS_OK ? steal_excess_ns(&steal, run->session->cpus.count) : 0;

        if (stolen_ns <= 0)
            break;
        verdict_set(&measurement->verdict, STATUS_NOISY, "the hypervisor took %.0f ms of this measurement",
                    stolen_ns / 1e6);
        *round = NO_FIGURES;
    }
    if (segment->fd < 0 && measurement->verdict.status == STATUS_OK)
        verdict_set(&measurement->verdict, STATUS_OK,
                    "private memory: shared memory gets no transparent huge pages here");
    return 0;
}

/* One round of a measurement that may have others. What an earlier one found stays when this one fails. */
static int measure_round(struct rows_run *run, size_t segment, struct row_measurement *measurement, unsigned round,
                         struct verdict *verdict)
{
    struct verdict before = measurement->verdict;
    uint64_t start_ns = clock_now_ns();
    int status = run_tries(run, &run->segments[segment], measurement, &measurement->rounds[round]);

    if (measurement->spec.mode == MODE_PROCESSES)
        run->seconds_per_process[segment] = (double)(clock_now_ns() - start_ns) / 1e9 / measurement->spec.workers;
    if (status != 0)
        *verdict = measurement->verdict;
    if (round > 0 && measurement->verdict.status != STATUS_OK)
        measurement->verdict = before;
    return status;
}

static struct row_measurement *measurement_of(const struct rows_run *run, size_t spec, size_t segment)
{
    return &run->result->measurements[spec * run->segment_count + segment];
}

static void add_measurements(struct rows_run *run, size_t spec)
{
    for (size_t segment = 0; segment < run->segment_count; segment++) {
        struct row_measurement *measurement = measurement_of(run, spec, segment);

        *measurement = (struct row_measurement){
            .spec = run->specs.items[spec],
            .backing = run->segments[segment].backing,
            .segment_bytes = run->segments[segment].bytes,
            .vm_pte_bytes_per_process = UINT64_MAX,
            .vm_pte_bytes_total = UINT64_MAX,
            .first_touch_seconds = NAN,
            .first_touch_cpu_seconds = NAN,
            .verdict = {STATUS_STOPPED, "the section ended before its turn"},
        };
        for (unsigned round = 0; round < ROWS_ROUNDS_MAX; round++)
            measurement->rounds[round] = NO_FIGURES;
    }
    run->result->measurement_count = (spec + 1) * run->segment_count;
}

/* One round of every page size, in an order of its own. */
static int measure_spec(struct rows_run *run, size_t spec, unsigned round, struct rng *rng, struct verdict *verdict)
{
    uint32_t order[SESSION_BACKINGS_MAX];

    permutation_fill(order, run->segment_count, rng);
    for (size_t step = 0; step < run->segment_count; step++) {
        struct row_measurement *measurement = measurement_of(run, spec, order[step]);

        if (session_must_stop(run->session, verdict))
            return -1;
        bool can = round == 0 ? can_measure(run, order[step], &measurement->spec, &measurement->verdict)
                              : measurement->verdict.status == STATUS_OK || measurement->verdict.status == STATUS_NOISY;

        if (can && measure_round(run, order[step], measurement, round, verdict) != 0)
            return -1;
    }
    return 0;
}

/* True where a round adds to what is known, and not more than its share of the time for all rounds. */
static bool is_worth_a_round(const struct rows_run *run, size_t spec, bool noisy, double most_seconds)
{
    bool has_base = false, has_other = false, is_noisy = false;
    double seconds = 0;

    for (size_t segment = 0; segment < run->segment_count; segment++) {
        const struct row_measurement *measurement = measurement_of(run, spec, segment);

        if (measurement->verdict.status != STATUS_OK && measurement->verdict.status != STATUS_NOISY)
            continue;
        is_noisy = is_noisy || measurement->verdict.status == STATUS_NOISY;
        has_base = has_base || measurement->backing.kind == BACKING_BASE;
        has_other = has_other || measurement->backing.kind != BACKING_BASE;
        seconds += round_seconds(run, segment, &measurement->spec);
    }
    return noisy == is_noisy && (is_noisy || (has_base && has_other)) && seconds <= most_seconds;
}

/* Further rounds, those that a noisy one lacks first: the hypervisor takes time in spells. They end with their time. */
static void repeat_specs(struct rows_run *run, struct rng *rng)
{
    unsigned rounds = run->session->full ? FULL_ROUNDS : QUICK_ROUNDS;
    double seconds = fmin(run->session->full ? FULL_REPEAT_SECONDS : QUICK_REPEAT_SECONDS,
                          REPEAT_SHARE * deadline_remaining_seconds(run->session->deadline));
    struct deadline end = deadline_after(seconds);
    struct verdict ignored;

    for (unsigned round = 1; round < rounds; round++)
        for (int noisy = 1; noisy >= 0; noisy--)
            for (size_t spec = 0; spec < run->specs.count; spec++)
                if (is_worth_a_round(run, spec, noisy == 1, ROUND_SHARE * seconds) &&
                    (deadline_passed(end) || measure_spec(run, spec, round, rng, &ignored) != 0))
                    return;
}

static int measure_specs(struct rows_run *run, struct verdict *verdict)
{
    struct rng rng = rng_new(run->session->seed, 0x20305u);

    for (size_t spec = 0; spec < run->specs.count; spec++) {
        session_report_progress(run->session, (double)spec / (double)run->specs.count);
        add_measurements(run, spec);
        if (measure_spec(run, spec, 0, &rng, verdict) != 0)
            return -1;
    }
    repeat_specs(run, &rng);
    return 0;
}

static int open_segments(struct rows_run *run, struct verdict *verdict)
{
    const struct backing *backings = run->session->backings;
    size_t count = run->session->backing_count;
    size_t bytes = choose_segment_bytes(run, count);

    for (size_t index = 0; index < count; index++) {
        struct rows_segment *segment = &run->segments[run->segment_count++];

        if (rows_segment_open(segment, &backings[index], bytes, run->result->peak_mapped_bytes, run->session) != 0) {
            *verdict = segment->verdict;
            return -1;
        }
        run->result->peak_mapped_bytes += segment->fd >= 0 || segment->arena.base != NULL ? segment->mapped_bytes : 0;
    }
    return 0;
}

int rows_measure(const struct session *session, const struct rows_request *request, struct rows_result *result)
{
    struct rows_run run = {.session = session, .request = request, .result = result};

    *result = (struct rows_result){0};
    list_specs(request, session->full, &run.specs);
    result->measurements = calloc(run.specs.count + 1, session->backing_count * sizeof(*result->measurements));
    if (result->measurements == NULL)
        return -1;
    if (open_segments(&run, &result->verdict) == 0 && measure_specs(&run, &result->verdict) == 0) {
        result->verdict.status = STATUS_OK;
        session_report_progress(session, 1.0);
    }
    rows_conclude_rounds(result);
    int status = rows_find_break_even(run.result, run.segments, run.segment_count, run.session->base_page_bytes);

    for (size_t index = 0; index < run.segment_count; index++)
        rows_segment_close(&run.segments[index]);
    return status;
}
