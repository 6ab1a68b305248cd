/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers mean: one sentence for each page size, and what is missing and why. */
#ifndef TLBBENCH_REPORT_VERDICT_H
#define TLBBENCH_REPORT_VERDICT_H

#include "environment.h"
#include "results.h"

#include <stddef.h>
#include <stdio.h>

enum { VERDICT_TEXT_BYTES = 560 };

/* The sentence on one granule, without the line break. Returns `text`. `latency` may be NULL. */
char *verdict_sentence(const struct environment *environment, const struct geometry_result *geometry,
                       const struct latency_result *latency, const struct granule *granule,
                       char text[VERDICT_TEXT_BYTES]);

/* A status in words, for where no reason was given. */
const char *status_words(enum status status);

void report_verdicts(FILE *out, const struct environment *environment, const struct run_result *run);

/* Sections, curves, granules and rows that are not "ok", each distinct reason once. */
void report_missing(FILE *out, const struct run_result *run);

#endif
