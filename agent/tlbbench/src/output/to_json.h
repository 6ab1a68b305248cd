/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of the document's parts (tlbbench.schema.json). */
#pragma once

#include "counters/counters.h"
#include "machine/processes.h"
#include "output/json.h"
#include "output/run_result.h"

#include <time.h>

/* Writes `status` and `reason`. */
void verdict_to_json(const struct verdict *verdict, struct json *j);

/* The arrays of the names of what they list. */
void tlb_levels_to_json(const struct tlb_level_list *levels, struct json *j);
void tlb_disagreements_to_json(const struct disagreement_list *found, struct json *j);

/* counters.c: the members of these names. */
void counters_to_json(const struct counters_request *request, const struct counters_result *result, struct json *j);
void witness_to_json(const struct walk_witness *witness, struct json *j);

/* Writes a member for each section that ran into the open document. */
void run_to_json(struct json *j, const struct run_result *result);

/* --- the frame of the document: everything that is not a section's own result ------------------------------------- */

#define DOCUMENT_SCHEMA_VERSION 1

struct document {
    const char *command;
    const char *profile; /* NULL where nothing is measured */
    uint64_t seed;
    const struct environment *environment;
    const struct process_list *processes; /* NULL = not requested */
    struct timespec started_at;           /* CLOCK_REALTIME */
    uint64_t start_ns;                    /* of clock_now_ns() */
    int exit_status;
};

/* What a command starts with: when, and for which environment; the rest is empty. */
struct document document_start(const char *command, uint64_t seed, const struct environment *environment);

/* Begins the document on `out` with all members but the sections' results, which the caller adds. */
void document_begin(const struct document *document, const struct section_result *sections, size_t count, FILE *out,
                    struct json *j);

/* Ends it. Returns 0, or -1 when it could not be written. */
int document_end(struct json *j);
