/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that measure: geometry, latency, rows, scatter and run. */
#pragma once

#include "cli/options.h"

#include <stdio.h>

/* Measures and prints the document or the report to `out`. Returns the exit status of the program: 0 done, 1 failed, 2
 * usage, 3 partial. For 1 and 2 one line is in `error`. */
int measure_print(const struct options *options, FILE *out, char error[OPTIONS_ERROR_BYTES]);
