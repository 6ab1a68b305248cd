/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands do, each group in a file. */
#pragma once

#include "cli/options.h"
#include "output/to_json.h"

/* Measures or looks, for an environment that was read (decode fills it from its dump), completes the document and
 * prints it to `out`, as JSON or as text. Returns the exit status of the program: done, partial, or failed and usage
 * with one line in `error`; negative when the output could not be written. */
typedef int command_print(const struct options *options, struct document *document, struct environment *environment,
                          FILE *out, char error[OPTIONS_ERROR_BYTES]);

command_print info_print, decode_print; /* info.c, which observes and does not measure */
command_print counters_print;           /* counters.c: counts page walks of running programs */
command_print measure_print;            /* run.c */

/* Makes the processor's counter of walks geometry's witness. */
void counters_witness(const struct options *options, struct session *session, struct walk_counter *counter);

/* The sections one after the other, within time, memory and noise budgets: measures what options->command asks for on
 * the calling thread. `progress` gets progress lines, or is NULL. Always leaves a valid result, also when it was
 * stopped; result->exit_status is 0 or 3. Returns 0, or -1 when memory for the result ran out. signals_install() must
 * have been called. */
int run_measure(const struct options *options, const struct environment *environment, FILE *progress,
                struct run_result *result);
void run_result_free(struct run_result *result);
