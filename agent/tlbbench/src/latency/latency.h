/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds per dependent access over the footprint, for every page size, measured in pairs so that drift cancels. */
#pragma once

#include "engine/session.h"
#include "latency/result.h"

/* Measures on the calling thread, which must be bound to session->cpu. Always leaves a valid result. Returns 0, or -1
 * when memory for the result ran out. Free with latency_result_free(). */
int latency_measure(const struct session *session, const struct latency_request *request,
                    struct latency_result *result);
