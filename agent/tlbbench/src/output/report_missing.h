/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing from the report, and why. */
#ifndef TLBBENCH_OUTPUT_REPORT_MISSING_H
#define TLBBENCH_OUTPUT_REPORT_MISSING_H

#include "base/verdict.h"
#include "output/run_result.h"

#include <stdio.h>

/* A status in words, for where no reason was given. */
const char *status_words(enum status status);

/* Sections, curves, effective page sizes and rows that are not "ok", each distinct reason once. */
void report_missing(FILE *out, const struct run_result *run);

#endif
