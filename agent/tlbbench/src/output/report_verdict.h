/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers mean: one sentence for each page size, and what is missing and why. */
#ifndef TLBBENCH_REPORT_VERDICT_H
#define TLBBENCH_REPORT_VERDICT_H

#include "geometry/result.h"
#include "machine/environment.h"
#include "output/run_result.h"

#include <stddef.h>
#include <stdio.h>

enum { VERDICT_TEXT_BYTES = 560 };

/* The sentence on one effective page size of run->geometry, without the line break; the other results may be NULL.
 * Returns `text`. */
char *verdict_sentence(const struct environment *environment, const struct run_result *run,
                       const struct effective_page *effective_page, char text[VERDICT_TEXT_BYTES]);

void report_verdicts(FILE *out, const struct environment *environment, const struct run_result *run);

#endif
