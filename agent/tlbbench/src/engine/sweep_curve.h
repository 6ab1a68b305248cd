/* SPDX-License-Identifier: Apache-2.0 */
/* What a measured ladder is read as: points for the knee functions, curves for the document. */
#ifndef TLBBENCH_ENGINE_SWEEP_CURVE_H
#define TLBBENCH_ENGINE_SWEEP_CURVE_H

#include "engine/curve.h"
#include "engine/knee.h"
#include "engine/sweep.h"

#include <stdbool.h>
#include <stddef.h>

/* Which statistic of a point stands for it. Replacement that is not exact LRU loses entries to some visiting orders and
 * to other work on the core; the minimum over many orders is what the structure can hold. */
enum ladder_statistic { LADDER_MEDIAN, LADDER_MINIMUM };

/* Points as the knee functions want them: the control subtracted and `hit_ns` (an L1 hit) added back where there is a
 * control. Returns the number of points stored. */
size_t ladder_knee_points(const struct ladder *ladder, enum ladder_statistic statistic, double hit_ns,
                          struct knee_point points[LADDER_POINTS_MAX]);

/* Copies one side of the ladder into a curve. Returns 0, or -1 when memory ran out. */
int ladder_to_curve(const struct ladder *ladder, bool packed, struct curve *curve);

#endif
