/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands do, each group in a file. They fill in `environment`, which their caller frees. */
#pragma once

#include "cli/options.h"
#include "output/run_result.h"

/* info.c, which observes and does not measure: print to `out`, as JSON or as text. Return 0, or -1 with one line in
 * `error`. */
int info_print(const struct options *options, struct environment *environment, FILE *out,
               char error[OPTIONS_ERROR_BYTES]);
int decode_print(const struct options *options, struct environment *environment, FILE *out,
                 char error[OPTIONS_ERROR_BYTES]);

/* counters.c: counts page walks of running programs and prints them. Returns as measure_print() does. */
int counters_print(const struct options *options, struct environment *environment, FILE *out,
                   char error[OPTIONS_ERROR_BYTES]);

/* measure.c: measures and prints the document or the report to `out`. Returns the exit status of the program: 0 done, 1
 * failed, 2 usage, 3 partial. For 1 and 2 one line is in `error`. */
int measure_print(const struct options *options, struct environment *environment, FILE *out,
                  char error[OPTIONS_ERROR_BYTES]);

/* --- run.c: the sections one after the other, within time, memory and noise budgets ------------------------------- */

/* Measures what options->command asks for on the calling thread. `progress` gets progress lines, or is NULL. Always
 * leaves a valid result, also when it was stopped; result->exit_status is 0 or 3. Returns 0, or -1 when memory for the
 * result ran out. signals_install() must have been called. */
int run_measure(const struct options *options, const struct environment *environment, FILE *progress,
                struct run_result *result);
void run_result_free(struct run_result *result);
