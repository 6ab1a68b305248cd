/* SPDX-License-Identifier: Apache-2.0 */
/* The second level of a page size. */
#ifndef TLBBENCH_GEOMETRY_SECOND_LEVEL_H
#define TLBBENCH_GEOMETRY_SECOND_LEVEL_H

#include "base/verdict.h"
#include "geometry/work.h"
#include "memory/backing.h"

/* What a hit of the second level costs for base pages. */
int geometry_measure_hit(struct geometry_work *work, const struct backing *backing, struct verdict *verdict);

/* The second level behind a first one that was found. For base pages geometry_measure_hit() comes first. */
int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing,
                                  const struct geometry_first_level *first, struct verdict *verdict);

#endif
