/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/signals.h"
#include "output/report.h"
#include "output/to_json.h"

static int print_document(const struct run_result *result, struct document *document, FILE *out)
{
    struct json j;

    document->sections = result->sections;
    document->section_count = result->section_count;
    document->exit_status = result->exit_status;
    document_begin(document, out, &j);
    run_to_json(&j, result);
    return document_end(&j);
}

static int print_report(const struct environment *environment, const struct run_result *result, FILE *out)
{
    report_environment(out, environment);
    report_run(out, environment, result);
    return fflush(out) == 0 ? 0 : -1;
}

static FILE *progress_stream(const struct options *options)
{
    bool wanted = options->progress == PROGRESS_ALWAYS || (options->progress == PROGRESS_AUTO && isatty(STDERR_FILENO));

    return wanted ? stderr : NULL;
}

int measure_print(const struct options *options, struct environment *environment, FILE *out,
                  char error[OPTIONS_ERROR_BYTES])
{
    struct document document = document_start(command_name(options->command), options->seed, environment);
    struct run_result result;

    document.profile = options->profile == PROFILE_FULL ? "full" : "quick";
    if (signals_install() != 0 || environment_read(environment, "") != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "/proc and /sys cannot be read, or signals cannot be handled");
        return EXIT_FAILED;
    }
    if (options_check(options, environment, error) != OPTIONS_OK)
        return EXIT_USAGE;
    int status = run_measure(options, environment, progress_stream(options), &result);

    if (status != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "no memory left for the result");
    } else {
        status = options->json ? print_document(&result, &document, out) : print_report(environment, &result, out);
        if (status != 0)
            (void)snprintf(error, OPTIONS_ERROR_BYTES, "the output cannot be written: %s", strerror(errno));
    }
    status = status != 0 ? EXIT_FAILED : result.exit_status;
    run_result_free(&result);
    return status;
}
