/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "output/report.h"

void counters_witness(const struct options *options, struct session *session, struct walk_counter *counter)
{
    const struct catalogue_entry *known = session->environment->processor.catalogue;

    if (options->command != COMMAND_RUN && options->command != COMMAND_GEOMETRY)
        return;
    if (!walk_counter_open(counter, known != NULL ? known->id : NULL, &PERF_KERNEL, &session->walks_verdict))
        return;
    session->counted_walks = walk_counter_read;
    session->walks_context = counter;
}

int counters_print(const struct options *options, struct document *document, struct environment *environment, FILE *out,
                   char error[OPTIONS_ERROR_BYTES])
{
    static struct counters_result result; /* large */
    const struct catalogue_entry *known = environment->processor.catalogue;
    struct json j;

    (void)error;
    counters_measure(&options->counters, known != NULL ? known->id : NULL, &PERF_KERNEL, &result);
    struct section_result section = {document->command, result.verdict, result.seconds};

    document->exit_status = result.verdict.status == STATUS_OK ? EXIT_DONE : EXIT_PARTIAL;
    if (!options->json) {
        report_counters(out, &result);
        return document->exit_status;
    }
    document_begin(document, &section, 1, out, &j);
    counters_to_json(&options->counters, &result, &j);
    return document_end(&j) == 0 ? document->exit_status : -1;
}
