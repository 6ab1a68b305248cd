/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of one rows measurement. Not for modules other than rows. */
#pragma once

#include "engine/session.h"
#include "rows/reader.h"
#include "rows/result.h"
#include "rows/segment.h"

/* Runs one measurement on a usable segment for about `seconds`. Fills the figures and the verdict of `measurement`.
 * Returns -1 when asked to stop. */
int workers_run(const struct rows_segment *segment, const struct rows_spec *spec, double seconds,
                const struct session *session, struct row_measurement *measurement);
