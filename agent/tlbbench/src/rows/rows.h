/* SPDX-License-Identifier: Apache-2.0 */
/* Row reads from a shared segment by many workers, as database connections do: threads of one process, or forked
 * processes that each have their own page tables. */
#pragma once

#include "engine/session.h"
#include "rows/result.h"

/* Always leaves a valid result. Returns 0, or -1 when memory for the result ran out. Free with rows_result_free(). */
int rows_measure(const struct session *session, const struct rows_request *request, struct rows_result *result);
