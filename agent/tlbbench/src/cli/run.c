/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/signals.h"
#include "cli/progress.h"
#include "cli/sections.h"
#include "output/report.h"
#include "timing/cpus.h"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>

/* A polite step below normal: the node's own work comes first, and the guard drops the batches it disturbs. */
enum { LOW_PRIORITY_NICE = 5 };

#define RESERVE_FEW_BYTES (4 * MIB) /* geometry and scatter map the same few pages many times */

static void call_section(void *context)
{
    struct section_call *call = context;

    call->status = call->section->measure(call);
}

static struct section_result *add_section(struct run_result *result, const char *name)
{
    struct section_result *section = &result->sections[result->section_count++];

    *section = (struct section_result){.name = name};
    return section;
}

/* What is freed goes back to the system, so that a section does not pay for the one before it. glibc keeps more and
 * more of large blocks unless it is told a fixed size. */
static void return_freed_memory(void)
{
#if defined(__GLIBC__)
    enum { LARGE_BLOCK_BYTES = 64 << 10 };

    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
    (void)malloc_trim(0);
#endif
}

static int run_section(const struct section *section, struct session *session, const struct options *options,
                       struct run_result *result)
{
    struct section_call call = {section, session, options, result, 0};
    struct section_result *record = add_section(result, section->name);
    uint64_t start_ns = clock_now_ns();

    if (result->stopped_by_bus)
        verdict_set(&record->verdict, STATUS_STOPPED, "an earlier section ended by SIGBUS");
    if (result->stopped_by_bus || session_must_stop(session, &record->verdict)) {
        result->exit_status = EXIT_PARTIAL;
        return 0;
    }
    int bus = signals_guard_bus(call_section, &call);

    record->duration_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    if (call.status != 0)
        return -1;
    if (bus != 0) {
        /* The jump out of the section left its mappings and children behind. They end with the process, which must
         * not measure anything beside them. */
        result->stopped_by_bus = true;
        verdict_set(section_verdict(section, result), STATUS_SIGBUS, "SIGBUS: %s", signals_bus_reason());
    }
    record->verdict = *section_verdict(section, result);
    if (record->verdict.status != STATUS_OK || section->is_partial(&call))
        result->exit_status = EXIT_PARTIAL;
    return_freed_memory();
    uint64_t resident = process_own_status_bytes("VmRSS");

    if (resident != UINT64_MAX && resident > result->rss_outside_bytes)
        result->rss_outside_bytes = resident;
    return 0;
}

/* Where memory runs out, this process goes first, and no database. Raising needs no rights; children inherit it. */
static void offer_to_oom_killer(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "we");

    if (file == NULL)
        return;
    (void)fputs("1000", file);
    (void)fclose(file);
}

static void lower_priority(const struct options *options)
{
    struct sched_param parameters = {.sched_priority = 0};

    offer_to_oom_killer();
    if (options->keep_priority || sched_getscheduler(0) != SCHED_OTHER)
        return; /* a scheduling class that someone chose is theirs */
    (void)setpriority(PRIO_PROCESS, 0, LOW_PRIORITY_NICE);
    (void)sched_setscheduler(0, SCHED_BATCH, &parameters);
}

static bool is_wanted(const struct options *options, const struct section *section)
{
    return options->command == COMMAND_RUN || options->command == section->command;
}

static double section_seconds(const struct options *options, const struct section *section)
{
    if (options->profile == PROFILE_FULL)
        return section->full_seconds;
    return options->command == COMMAND_RUN ? section->run_quick_seconds : section->quick_seconds;
}

static int run_sections(struct session *session, const struct options *options, struct progress *progress,
                        struct run_result *result)
{
    double whole_seconds = 0;

    for (size_t index = 0; index < SECTION_COUNT; index++)
        whole_seconds += is_wanted(options, &SECTIONS[index]) ? section_seconds(options, &SECTIONS[index]) : 0;
    struct deadline end = deadline_after(options->time_limit_seconds > 0 ? options->time_limit_seconds : whole_seconds);

    for (size_t index = 0; index < SECTION_COUNT; index++) {
        const struct section *section = &SECTIONS[index];
        double seconds = section_seconds(options, section);

        if (!is_wanted(options, section))
            continue;
        progress_next_section(progress, section->name, seconds / whole_seconds);
        /* A single command with its own limit may use all of it. What a section of run leaves is nobody's: it leaves
         * much where the machine is quiet, and more rounds are then of little use to the next. */
        session->deadline = options->command != COMMAND_RUN && options->time_limit_seconds > 0
                                ? end
                                : deadline_earlier(end, deadline_after(seconds));
        if (run_section(section, session, options, result) != 0)
            return -1;
    }
    progress_end(progress);
    return 0;
}

/* The node of the core measured on, unless one was named; -1 where the kernel keeps no pools by node. */
static int reserve_node(const struct session *session)
{
    const struct environment *environment = session->environment;
    bool is_by_node = environment->pool_count > 0 && environment->pools[0].numa_count > 0;

    return session->numa_node >= 0 ? session->numa_node
           : is_by_node            ? environment_node_of_cpu(environment, session->cpu)
                                   : -1;
}

/* Pages of one size that the sections can use: footprints and segments as large as the profile's, and never more than
 * the share of the memory allowed that each backing has. */
static int64_t pages_wanted(const struct session *session, const struct options *options, uint64_t page_bytes)
{
    bool large =
        options->command == COMMAND_RUN || options->command == COMMAND_LATENCY || options->command == COMMAND_ROWS;
    size_t backings = session->environment->pool_count + 2;
    uint64_t largest = number_list_largest(&options->latency.footprints);
    uint64_t profile = latency_largest_footprint(session);
    uint64_t most = largest > profile ? largest : profile;
    uint64_t bytes = session->memory_bytes / backings;

    bytes = bytes > most ? most : bytes;
    if (bytes < page_bytes) {
        /* One page, where it leaves half of the memory allowed to the others. */
        return 2 * page_bytes <= session->memory_bytes ? 1 : 0;
    }
    return large ? (int64_t)(bytes / page_bytes)
                 : (int64_t)(page_bytes < RESERVE_FEW_BYTES ? RESERVE_FEW_BYTES / page_bytes : 1);
}

static void reserve_pages(const struct session *session, const struct options *options, struct run_result *result)
{
    const struct environment *environment = session->environment;

    result->reservation = &result->own->reservation;
    if (reservation_begin(result->reservation, &RESERVE_SYSTEM) != 0)
        return; /* measured without; the reason is in the document */
    int node = reserve_node(session);

    for (size_t index = environment->pool_count; index > 0 && !signals_stop_requested(); index--) {
        uint64_t page_bytes = environment->pools[index - 1].page_bytes;
        int64_t pages = pages_wanted(session, options, page_bytes);

        if (pages > 0 && options_want_page_size(options, page_bytes))
            reservation_take(result->reservation, page_bytes, node, pages);
    }
}

/* Sections that cannot run at all keep their names and the reason. */
static int skip_sections(const struct options *options, const struct verdict *verdict, struct run_result *result)
{
    for (size_t index = 0; index < SECTION_COUNT; index++)
        if (is_wanted(options, &SECTIONS[index]))
            add_section(result, SECTIONS[index].name)->verdict = *verdict;
    result->exit_status = EXIT_PARTIAL;
    return 0;
}

static void add_backing(struct session *session, enum backing_kind kind, uint64_t page_bytes)
{
    bool is_multi_size = kind == BACKING_MULTI_SIZE_THP;
    struct backing *backing = &session->backings[session->backing_count + session->multi_size_count];
    char text[PAGE_TEXT_BYTES];

    session->backing_count += is_multi_size ? 0 : 1;
    session->multi_size_count += is_multi_size ? 1 : 0;
    *backing = (struct backing){.kind = kind, .page_bytes = page_bytes};
    (void)snprintf(backing->name, sizeof(backing->name), "%s%.10s", is_multi_size ? "THP-" : "",
                   kind == BACKING_THP ? "THP" : page_text(page_bytes, text));
}

static void list_backings(struct session *session, const struct options *options)
{
    const struct environment *environment = session->environment;

    add_backing(session, BACKING_BASE, session->base_page_bytes);
    if (options_want_thp(options) && environment->thp.enabled[0] != '\0' && environment->thp_bytes > 0)
        add_backing(session, BACKING_THP, environment->thp_bytes);
    for (size_t index = 0; index < environment->pool_count && session->backing_count < SESSION_BACKINGS_MAX; index++)
        if (options_want_page_size(options, environment->pools[index].page_bytes))
            add_backing(session, BACKING_HUGETLB, environment->pools[index].page_bytes);
    for (size_t index = 0; index < environment->multi_size_count && options_want_thp(options); index++)
        if (environment_grants_multi_size(environment, &environment->multi_size[index]))
            add_backing(session, BACKING_MULTI_SIZE_THP, environment->multi_size[index].page_bytes);
}

/* Leaves the CPUs of the NUMA node, where any of them may be used. */
static void keep_cpus_of(struct session *session, int node)
{
    struct cpu_list cpus;
    struct cpu_list left = session->cpus;

    if (!environment_cpus_of_node(session->environment, node, &cpus))
        return;
    cpus_keep(&left, &cpus);
    if (left.count > 0)
        session->cpus = left;
}

/* CPU and memory of one NUMA node, unless both were named. Rows' workers stay there, too. */
static void choose_place(struct session *session, const struct options *options)
{
    const struct environment *environment = session->environment;

    (void)cpus_get_affinity(&session->cpus);
    if (options->cpus.count > 0)
        cpus_keep(&session->cpus, &options->cpus);
    else
        keep_cpus_of(session, options->numa_node);
    session->cpu = cpus_choose(&session->cpus);
    (void)cpus_pin(session->cpu);
    if (options->numa_node >= 0 || environment->node_count < 2)
        return;
    session->numa_node = environment_node_of_cpu(environment, session->cpu);
    if (options->cpus.count == 0)
        keep_cpus_of(session, session->numa_node);
}

int run_measure(const struct options *options, const struct environment *environment, FILE *progress_out,
                struct run_result *result)
{
    struct progress progress;
    struct walk_counter walks = {0};
    struct tlb_level_list priors = {0};
    struct verdict cpuid_verdict;
    struct verdict verdict;
    struct session session = {
        .environment = environment,
        .priors = &priors,
        .base_page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
        .full = options->profile == PROFILE_FULL,
        .seed = options->seed,
        .numa_node = options->numa_node,
        .keep_priority = options->keep_priority,
        .progress = progress_report,
        .progress_context = &progress,
    };

    *result = (struct run_result){.own = calloc(1, sizeof(*result->own))};
    if (result->own == NULL)
        return -1;
    progress_start(&progress, progress_out);
    lower_priority(options);
    return_freed_memory();
    choose_place(&session, options);
    session.memory_bytes = budget_memory_bytes(environment, options->max_memory_bytes, session.numa_node, &verdict);
    if (verdict.status != STATUS_OK)
        return skip_sections(options, &verdict, result);
    environment_tlb_levels(environment, &priors, &cpuid_verdict);
    list_backings(&session, options);
    if (options->reserve)
        reserve_pages(&session, options, result);
    counters_witness(options, &session, &walks);
    int status = run_sections(&session, options, &progress, result);

    walk_counter_close(&walks);
    /* Everything that used the pages is unmapped by now; after a SIGBUS it is when this process ends, and until then
     * the kernel counts such pages as surplus. */
    if (result->reservation != NULL &&
        (reservation_end(result->reservation) != 0 || result->reservation->verdict.status != STATUS_OK))
        result->exit_status = EXIT_PARTIAL;
    return status;
}

void run_result_free(struct run_result *result)
{
    struct section_results *own = result->own;

    if (own != NULL) {
        geometry_result_free(&own->geometry);
        curve_list_free(&own->latency.curves);
        free(own->latency.deltas);
        pressure_result_free(&own->pressure);
        curve_list_free(&own->walks.curves);
        free(own->rows.measurements);
        free(own->rows.break_evens);
        curve_list_free(&own->scatter.curves);
    }
    free(own);
    *result = (struct run_result){0};
}

int measure_print(const struct options *options, struct document *document, struct environment *environment, FILE *out,
                  char error[OPTIONS_ERROR_BYTES])
{
    bool has_progress =
        options->progress == PROGRESS_ALWAYS || (options->progress == PROGRESS_AUTO && isatty(STDERR_FILENO));
    struct run_result result;
    struct json j;

    document->profile = options->profile == PROFILE_FULL ? "full" : "quick";
    if (options_check(options, environment, error) != OPTIONS_OK)
        return EXIT_USAGE;
    if (run_measure(options, environment, has_progress ? stderr : NULL, &result) != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "no memory left for the result");
        run_result_free(&result);
        return EXIT_FAILED;
    }
    int status = document->exit_status = result.exit_status;

    if (options->json) {
        document_begin(document, result.sections, result.section_count, out, &j);
        run_to_json(&j, &result);
        status = document_end(&j) == 0 ? status : -1;
    } else {
        report_environment(out, environment);
        report_run(out, environment, &result);
    }
    run_result_free(&result);
    return status;
}
