/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "output/report.h"
#include "output/report_text.h"

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

static void print_text(const struct document *document, const struct known_tlbs *known, FILE *out)
{
    if (strcmp(document->command, command_name(COMMAND_DECODE)) == 0)
        report_processor(out, document->environment);
    else
        report_environment(out, document->environment);
    report_levels(out, document->environment, &known->levels, &known->disagreements);
    if (known->verdict.reason[0] != '\0')
        report_wrapped(out, "  -", 4, "CPUID says nothing: %s", known->verdict.reason);
    if (document->processes != NULL)
        report_processes(out, document->processes);
}

static int print(const struct document *document, const struct options *options, FILE *out)
{
    struct section_result section = {.name = document->command, .verdict = {STATUS_OK, ""}};
    struct known_tlbs known = {0};
    struct json j;

    environment_tlb_levels(document->environment, &known.levels, &known.verdict);
    tlb_disagreements_find(&known.levels, &known.disagreements);
    if (options->registers) {
        cpuid_write(&document->environment->cpuid, out);
        return EXIT_DONE;
    }
    if (!options->json) {
        print_text(document, &known, out);
        return EXIT_DONE;
    }
    section.duration_seconds = (double)(clock_now_ns() - document->start_ns) / 1e9;
    document_begin(document, &section, 1, out, &j);
    known_tlbs_to_json(&known, &j);
    return document_end(&j) == 0 ? EXIT_DONE : -1;
}

int info_print(const struct options *options, struct document *document, struct environment *environment, FILE *out,
               char error[OPTIONS_ERROR_BYTES])
{
    struct process_list processes = {0};
    int status = EXIT_FAILED;

    (void)environment;
    if (options->processes && processes_read(&processes, options->root) != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "--processes: %.200s/proc cannot be read", options->root);
    } else {
        document->processes = options->processes ? &processes : NULL;
        status = print(document, options, out);
    }
    processes_free(&processes);
    return status;
}

int decode_print(const struct options *options, struct document *document, struct environment *environment, FILE *out,
                 char error[OPTIONS_ERROR_BYTES])
{
    struct cpuid_dump dump = {0};
    char problem[CPUID_ERROR_BYTES];
    bool is_stdin = strcmp(options->file, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(options->file, "re");

    if (in == NULL)
        (void)snprintf(problem, sizeof(problem), "it cannot be opened: %s", strerror(errno));
    int status = in != NULL ? cpuid_read(&dump, in, problem) : -1;

    if (in != NULL && !is_stdin)
        (void)fclose(in);
    if (status != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "decode %.100s: %s", options->file, problem);
        return EXIT_FAILED;
    }
    environment_from_dump(environment, &dump);
    return print(document, options, out);
}
