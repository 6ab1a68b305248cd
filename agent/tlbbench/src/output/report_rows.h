/* SPDX-License-Identifier: Apache-2.0 */
/* The rows section of the report: one line for each kind of work, one column for each backing. */
#ifndef TLBBENCH_REPORT_ROWS_H
#define TLBBENCH_REPORT_ROWS_H

#include "rows/result.h"

#include <stdio.h>

void report_rows(FILE *out, const struct rows_result *rows);

#endif
