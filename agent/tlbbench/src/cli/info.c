/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/clock.h"
#include "base/verdict.h"
#include "cli/options.h"
#include "machine/cpuid.h"
#include "machine/environment.h"
#include "machine/processes.h"
#include "machine/tlb_levels.h"
#include "output/json.h"
#include "output/report.h"
#include "output/report_text.h"
#include "output/run_result.h"
#include "output/to_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is known of the TLBs without measuring. */
struct known_tlbs {
    struct verdict verdict;
    struct tlb_level_list levels;
    struct disagreement_list disagreements;
};

static void known_tlbs_to_json(const struct known_tlbs *known, struct json *j)
{
    json_begin_object(j, "geometry");
    verdict_to_json(&known->verdict, j);
    tlb_levels_to_json(&known->levels, j);
    json_begin_array(j, "effective_granule");
    json_end_array(j);
    json_begin_array(j, "penalty");
    json_end_array(j);
    json_null(j, "clock");
    tlb_disagreements_to_json(&known->disagreements, j);
    json_begin_array(j, "curves");
    json_end_array(j);
    json_end_object(j);
}

struct observation {
    const struct options *options;
    const struct environment *environment;
    const struct process_list *processes;
    struct timespec started_at;
    uint64_t start_ns;
};

static int print_json(const struct observation *o, const struct known_tlbs *known, FILE *out)
{
    struct section_result section = {.name = command_name(o->options->command),
                                     .verdict = {STATUS_OK, ""},
                                     .duration_seconds = (double)(clock_now_ns() - o->start_ns) / 1e9};
    struct document document = {.command = section.name,
                                .seed = o->options->seed,
                                .environment = o->environment,
                                .processes = o->processes,
                                .sections = &section,
                                .section_count = 1,
                                .started_at = o->started_at,
                                .start_ns = o->start_ns};
    struct json j;

    document_begin(&document, out, &j);
    known_tlbs_to_json(known, &j);
    return document_end(&j);
}

static int print_text(const struct observation *o, const struct known_tlbs *known, FILE *out)
{
    if (o->options->command == COMMAND_DECODE)
        report_processor(out, o->environment);
    else
        report_environment(out, o->environment);
    report_levels(out, o->environment, &known->levels, &known->disagreements);
    if (known->verdict.reason[0] != '\0')
        report_wrapped(out, "  -", 4, "CPUID says nothing: %s", known->verdict.reason);
    if (o->processes != NULL)
        report_processes(out, o->processes);
    return fflush(out) == 0 ? 0 : -1;
}

static int print(const struct observation *o, FILE *out, char error[OPTIONS_ERROR_BYTES])
{
    struct known_tlbs known = {0};
    int status = 0;

    if (o->options->registers) {
        cpuid_write(&o->environment->cpuid, out);
        status = fflush(out);
    } else {
        environment_tlb_levels(o->environment, &known.levels, &known.verdict);
        tlb_disagreements_find(&known.levels, &known.disagreements);
        status = (o->options->json ? print_json : print_text)(o, &known, out);
    }
    if (status != 0)
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "the output cannot be written: %s", strerror(errno));
    return status != 0 ? -1 : 0;
}

/* Starts the clock and returns the environment to fill, which the caller frees; NULL with `error` when memory ran out.
 */
static struct environment *begin(struct observation *o, const struct options *options, char error[OPTIONS_ERROR_BYTES])
{
    struct environment *environment = malloc(sizeof(*environment));

    memset(o, 0, sizeof(*o));
    o->options = options;
    o->environment = environment;
    (void)clock_gettime(CLOCK_REALTIME, &o->started_at);
    o->start_ns = clock_now_ns();
    if (environment == NULL)
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "no memory left");
    return environment;
}

int info_print(const struct options *options, FILE *out, char error[OPTIONS_ERROR_BYTES])
{
    struct process_list processes = {0};
    struct observation observation;
    struct environment *environment = begin(&observation, options, error);
    int status = -1;

    if (environment == NULL)
        return -1;
    if (environment_read(environment, options->root) != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "--root: '%.200s' cannot be read", options->root);
    } else if (options->processes && processes_read(&processes, options->root) != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "--processes: %.200s/proc cannot be read", options->root);
    } else {
        observation.processes = options->processes ? &processes : NULL;
        status = print(&observation, out, error);
    }
    processes_free(&processes);
    environment_free(environment);
    free(environment);
    return status;
}

static int read_dump(struct cpuid_dump *dump, const char *file, char error[OPTIONS_ERROR_BYTES])
{
    char problem[CPUID_ERROR_BYTES];
    bool is_stdin = strcmp(file, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(file, "re");

    if (in == NULL) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "decode %.100s: it cannot be opened: %s", file, strerror(errno));
        return -1;
    }
    int status = cpuid_read(dump, in, problem);

    if (!is_stdin)
        (void)fclose(in);
    if (status != 0)
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "decode %.100s: %s", file, problem);
    return status;
}

int decode_print(const struct options *options, FILE *out, char error[OPTIONS_ERROR_BYTES])
{
    struct cpuid_dump dump = {0};
    struct observation observation;
    struct environment *environment = begin(&observation, options, error);
    int status = -1;

    if (environment == NULL)
        return -1;
    if (read_dump(&dump, options->file, error) == 0) {
        environment_from_dump(environment, &dump);
        status = print(&observation, out, error);
        environment_free(environment);
    }
    free(environment);
    return status;
}
