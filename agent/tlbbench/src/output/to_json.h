/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of the document's parts (tlbbench.schema.json). `key` is NULL inside an array. */
#ifndef TLBBENCH_OUTPUT_TO_JSON_H
#define TLBBENCH_OUTPUT_TO_JSON_H

#include "base/verdict.h"
#include "engine/curve.h"
#include "geometry/result.h"
#include "latency/result.h"
#include "machine/environment.h"
#include "machine/processes.h"
#include "machine/tlb_levels.h"
#include "memory/backing.h"
#include "memory/reserve.h"
#include "output/json.h"
#include "output/run_result.h"
#include "pressure/result.h"
#include "rows/result.h"
#include "scatter/scatter.h"

/* Writes `status` and `reason`. */
void verdict_to_json(const struct verdict *verdict, struct json *j);

/* Writes `backing`, `backing_kind` and `page_bytes`. */
void backing_to_json(struct json *j, const char *name, enum backing_kind kind, uint64_t page_bytes);

/* Writes the array `curves`. */
void curves_to_json(struct json *j, const struct curve_list *curves);

/* Writes the members of the document's `environment` object, which the caller begins and ends. */
void environment_to_json(const struct environment *environment, struct json *j);
void processes_to_json(const struct process_list *list, struct json *j, const char *key);

/* Writes the structures unsummed. */
void tlb_structures_to_json(const struct tlb_structure *structures, size_t count, struct json *j, const char *key);

/* Write the document's `levels` and `disagreements` arrays. */
void tlb_levels_to_json(const struct tlb_level_list *levels, struct json *j, const char *key);
void tlb_disagreements_to_json(const struct disagreement *found, size_t count, struct json *j, const char *key);

void reservation_to_json(struct json *j, const char *key, const struct reservation *reservation);
void geometry_to_json(struct json *j, const char *key, const struct geometry_result *result);
/* `pressure` is a member of `latency` in the document. */
void latency_to_json(struct json *j, const char *key, const struct latency_result *result,
                     const struct pressure_result *pressure);
void rows_to_json(struct json *j, const char *key, const struct rows_result *result);
void scatter_to_json(struct json *j, const char *key, const struct scatter_result *result);

/* Writes a member for each section that ran into the open document. */
void run_to_json(struct json *j, const struct run_result *result);

#endif
