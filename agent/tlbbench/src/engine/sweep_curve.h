/* SPDX-License-Identifier: Apache-2.0 */
/* What a measured sweep is read as: points for the knee functions, curves for the document. */
#pragma once

#include "engine/curve.h"
#include "engine/knee.h"
#include "engine/sweep.h"

#include <stdbool.h>
#include <stddef.h>

/* Points as the knee functions want them: the control subtracted and `hit_ns` (an L1 hit) added back where there is a
 * control. The minimum stands for a point: replacement that is not exact LRU loses entries to some access permutations
 * and to other work on the core, and the best of many permutations is what the structure can hold. Returns the number
 * of points stored. */
size_t sweep_knee_points(const struct sweep *sweep, double hit_ns, struct knee_point points[SWEEP_POINTS_MAX]);

/* Copies one side of the sweep into a curve. Returns 0, or -1 when memory ran out. */
int sweep_to_curve(const struct sweep *sweep, bool packed, struct curve *curve);
