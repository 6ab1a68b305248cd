/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPU the sweeps run on, and what a sweep may cost there. */
#ifndef TLBBENCH_GEOMETRY_CORE_MIGRATION_H
#define TLBBENCH_GEOMETRY_CORE_MIGRATION_H

#include "base/clock.h"
#include "engine/session.h"
#include "engine/sweep.h"
#include "geometry/work.h"

/* Notes what share of the CPU this thread got since the last call, and moves off a contended CPU. */
void geometry_watch_core(struct geometry_work *work);

/* Clears the sweep for a new one with its own random stream; leaves a core that other work held during the last. */
void geometry_start_sweep(struct geometry_work *work);

/* When a section's parts are planned to be over. */
struct deadline geometry_planned_end(const struct session *session);

/* The effort of a sweep that may take `share` of what is left of the part's time. */
struct sweep_effort geometry_effort(const struct geometry_work *work, double share);

#endif
