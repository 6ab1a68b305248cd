/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the sections of a measuring command one after the other, within time, memory and noise budgets. */
#pragma once

#include "cli/options.h"
#include "machine/environment.h"
#include "output/run_result.h"

#include <stdio.h>

/* Measures what options->command asks for on the calling thread. `progress` gets progress lines, or is NULL. Always
 * leaves a valid result, also when it was stopped; result->exit_status is 0 or 3. Returns 0, or -1 when memory for the
 * result ran out. signals_install() must have been called. */
int run_measure(const struct options *options, const struct environment *environment, FILE *progress,
                struct run_result *result);
void run_result_free(struct run_result *result);
