/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of the JSON document (tlbbench.schema.json): everything that is not a section's own result. */
#ifndef TLBBENCH_DOCUMENT_H
#define TLBBENCH_DOCUMENT_H

#include "machine/environment.h"
#include "machine/processes.h"
#include "output/json.h"
#include "output/run_result.h"

#include <time.h>

#define DOCUMENT_SCHEMA_VERSION 1

struct document {
    const char *command;
    const char *profile; /* NULL where nothing is measured */
    uint64_t seed;
    const struct environment *environment;
    const struct process_list *processes; /* NULL = not requested */
    const struct section_result *sections;
    size_t section_count;
    struct timespec started_at; /* CLOCK_REALTIME */
    double duration_seconds;
    int exit_status;
};

/* Begins the document's object and writes all members but the sections' results, which the caller adds before
 * json_end_object() and json_finish(). */
void document_begin(const struct document *document, struct json *j);

#endif
