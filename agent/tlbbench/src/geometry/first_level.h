/* SPDX-License-Identifier: Apache-2.0 */
/* The first level of a page size. */
#ifndef TLBBENCH_GEOMETRY_FIRST_LEVEL_H
#define TLBBENCH_GEOMETRY_FIRST_LEVEL_H

#include "base/verdict.h"
#include "geometry/work.h"
#include "memory/backing.h"

/* First level for pages of `backing`; stores the level and its curves. Returns 0 with found->entries == 0 when the
 * sweep is flat. */
int geometry_measure_first_level(struct geometry_work *work, const struct backing *backing,
                                 struct geometry_first_level *found, struct verdict *verdict);

#endif
