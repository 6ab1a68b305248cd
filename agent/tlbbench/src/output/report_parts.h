/* SPDX-License-Identifier: Apache-2.0 */
/* What report_run() is made of, each part in the file of its name. */
#pragma once

#include "base/verdict.h"
#include "geometry/result.h"
#include "machine/environment.h"
#include "output/run_result.h"
#include "pressure/result.h"
#include "rows/result.h"

#include <stdio.h>

/* report_pressure.c: one row for a page size and footprint, the saving by lines between. Nothing when nothing was
 * measured. */
void report_pressure(FILE *out, const struct pressure_result *pressure);

/* report_rows.c: one line for each kind of work, one column for each backing. */
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
