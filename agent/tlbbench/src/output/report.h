/* SPDX-License-Identifier: Apache-2.0 */
/* The readable report: what an engineer would paste into a ticket. Renders results, computes nothing of its own. */
#pragma once

#include "counters/counters.h"
#include "machine/processes.h"
#include "output/run_result.h"

/* Processor, hypervisor, kernel, page sizes, pools, THP, NUMA, memory, cgroup. */
void report_environment(FILE *out, const struct environment *environment);

/* The processor alone, for a decoded dump. */
void report_processor(FILE *out, const struct environment *environment);

/* TLB table with sources, of the page sizes that this kernel has; levels that contradict each other carry a mark, and
 * the disagreements follow. */
void report_levels(FILE *out, const struct environment *environment, const struct tlb_level_list *levels,
                   const struct disagreement_list *disagreements);

/* The processes that use most memory, and the sums of all. */
void report_processes(FILE *out, const struct process_list *processes);

/* counters.c: what was counted; and what a witness says. */
void report_counters(FILE *out, const struct counters_result *result);
void report_witness(FILE *out, const struct walk_witness *witness);

/* Everything that was measured: plots, penalties, verdict per page size, rows, scatter, what was skipped and why. */
void report_run(FILE *out, const struct environment *environment, const struct run_result *run);

/* Text plot of curves that share x and layout: logarithmic x, linear y in ns from 0. */
void report_plot(FILE *out, const struct curve *const *curves, size_t count);

/* --- what report_run() is made of, each part in the file of its name ---------------------------------------------- */

/* report_tables.c: one row for a page size and footprint, the saving by lines between. Nothing when nothing was
 * measured. */
void report_pressure(FILE *out, const struct pressure_result *pressure);

/* One table for each thing that was varied, one column for each backing. */
void report_walks(FILE *out, const struct environment *environment, const struct walks_result *walks);

/* One line for each kind of work, one column for each backing. */
void report_rows(FILE *out, const struct rows_result *rows);

/* report_verdict.c: what the numbers mean, one sentence for each page size. */
void report_verdicts(FILE *out, const struct environment *environment, const struct run_result *run);

/* The sentence on one effective page size of run->geometry, without the line break; the other results may be NULL.
 * Returns `text`. */
enum { VERDICT_TEXT_BYTES = 560 };
char *verdict_sentence(const struct environment *environment, const struct run_result *run,
                       const struct effective_page *effective_page, char text[VERDICT_TEXT_BYTES]);

/* report_missing.c: sections, curves, effective page sizes and rows that are not "ok", each distinct reason once. */
void report_missing(FILE *out, const struct run_result *run);
