/* SPDX-License-Identifier: Apache-2.0 */
/* Core clock, L1 hit, and whether several pages on one cache line cost anything. */
#ifndef TLBBENCH_GEOMETRY_CALIBRATION_H
#define TLBBENCH_GEOMETRY_CALIBRATION_H

#include "base/verdict.h"
#include "geometry/work.h"

int geometry_calibrate(struct geometry_work *work, struct verdict *verdict);

#endif
