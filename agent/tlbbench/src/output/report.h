/* SPDX-License-Identifier: Apache-2.0 */
/* The readable report: what an engineer would paste into a ticket. Renders results, computes nothing of its own. */
#pragma once

#include "engine/curve.h"
#include "machine/environment.h"
#include "machine/processes.h"
#include "machine/tlb_levels.h"
#include "output/run_result.h"

#include <stdio.h>

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

/* Everything that was measured: plots, penalties, verdict per page size, rows, scatter, what was skipped and why. */
void report_run(FILE *out, const struct environment *environment, const struct run_result *run);

/* Text plot of curves that share x and layout: logarithmic x, linear y in ns from 0. */
void report_plot(FILE *out, const struct curve *const *curves, size_t count);
