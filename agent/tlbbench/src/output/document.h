/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of the JSON document (tlbbench.schema.json): everything that is not a section's own result. */
#pragma once

#include "machine/environment.h"
#include "machine/processes.h"
#include "output/json.h"
#include "output/run_result.h"

#include <stdio.h>
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
    uint64_t start_ns;          /* of clock_now_ns() */
    int exit_status;
};

/* Begins the document on `out` with all members but the sections' results, which the caller adds. */
void document_begin(const struct document *document, FILE *out, struct json *j);

/* Ends it. Returns 0, or -1 when it could not be written. */
int document_end(struct json *j);
