/* SPDX-License-Identifier: Apache-2.0 */
/* The TLBs as they behave: entries of each level, ways of the first, what one entry covers, what a miss costs. */
#pragma once

#include "engine/session.h"
#include "geometry/result.h"

/* Measures on the calling thread, which must be bound to session->cpu. Moves to another CPU where this one is
 * contended, and leaves session->cpu the one it is bound to. Always leaves a valid result; what could not be measured
 * says why. Returns 0, or -1 when memory for the result ran out. Free with geometry_result_free(). */
int geometry_measure(struct session *session, struct geometry_result *result);
