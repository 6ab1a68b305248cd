/* SPDX-License-Identifier: Apache-2.0 */
/* The latency section: the curves, then the pressure, which share its time. */
#pragma once

#include "cli/options.h"
#include "output/run_result.h"

/* Fills result->latency and result->pressure. Returns 0, or -1 when memory for the result ran out. */
int latency_section_measure(struct session *session, const struct options *options, struct run_result *result);
