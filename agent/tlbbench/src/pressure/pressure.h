/* SPDX-License-Identifier: Apache-2.0 */
/* What page sizes save when a program reads other data between two accesses: latency.pressure of the document. */
#pragma once

#include "engine/session.h"
#include "pressure/result.h"

/* Measures on the calling thread, which must be bound to session->cpu, until session->deadline. Always leaves a valid
 * result. Returns 0, or -1 when memory for the result ran out. Free with pressure_result_free(). */
int pressure_measure(const struct session *session, struct pressure_result *result);
