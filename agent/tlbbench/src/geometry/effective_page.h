/* SPDX-License-Identifier: Apache-2.0 */
/* What one TLB entry covers for every backing. */
#ifndef TLBBENCH_GEOMETRY_EFFECTIVE_PAGE_H
#define TLBBENCH_GEOMETRY_EFFECTIVE_PAGE_H

#include "base/verdict.h"
#include "geometry/result.h"
#include "geometry/work.h"

/* Has large pages zeroed on another core while the other parts run; geometry_end_early_pages() gives up the rest. */
void geometry_start_early_pages(struct geometry_work *work);
void geometry_end_early_pages(struct geometry_work *work);

/* True when no backing waits for another try. */
bool geometry_effective_pages_known(const struct geometry_result *result);

/* Returns 1 when it is done and more time could give a better result: then it may be called again. */
int geometry_measure_effective_pages(struct geometry_work *work, struct verdict *verdict);

#endif
