/* SPDX-License-Identifier: Apache-2.0 */
/* latency.pressure on a terminal. */
#ifndef TLBBENCH_REPORT_PRESSURE_H
#define TLBBENCH_REPORT_PRESSURE_H

#include "pressure/result.h"

#include <stdio.h>

/* One table a page size: saving by footprint and lines between. Nothing when nothing was measured. */
void report_pressure(FILE *out, const struct pressure_result *pressure);

#endif
