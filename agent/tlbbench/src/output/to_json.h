/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of the document's parts (tlbbench.schema.json). */
#pragma once

#include "base/verdict.h"
#include "machine/environment.h"
#include "machine/processes.h"
#include "machine/tlb_levels.h"
#include "output/json.h"
#include "output/run_result.h"

/* Writes `status` and `reason`. */
void verdict_to_json(const struct verdict *verdict, struct json *j);

/* Writes the members of the document's `environment` object, which the caller begins and ends. */
void environment_to_json(const struct environment *environment, struct json *j);

/* The arrays of the names of what they list. Structures stand unsummed. */
void processes_to_json(const struct process_list *list, struct json *j);
void tlb_structures_to_json(const struct tlb_structure *structures, size_t count, struct json *j);
void tlb_levels_to_json(const struct tlb_level_list *levels, struct json *j);
void tlb_disagreements_to_json(const struct disagreement_list *found, struct json *j);

/* Writes a member for each section that ran into the open document. */
void run_to_json(struct json *j, const struct run_result *result);
