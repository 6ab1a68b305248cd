/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the first level for base pages. */
#ifndef TLBBENCH_GEOMETRY_WAYS_H
#define TLBBENCH_GEOMETRY_WAYS_H

#include "base/verdict.h"
#include "geometry/work.h"

/* Returns 1 when it is done and more time could give a better result: then it may be called again. */
int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict);

#endif
