/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and deadlines. */
#pragma once

#include "base/std.h"

/* CLOCK_MONOTONIC_RAW in nanoseconds: not slewed by time daemons. */
uint64_t clock_now_ns(void);

/* CLOCK_THREAD_CPUTIME_ID in nanoseconds: stands still while another task or guest has the core. */
uint64_t clock_thread_cpu_ns(void);

/* Stops at a moment in time: --time-limit and the budgets of sections. */
struct deadline {
    uint64_t end_ns; /* of clock_now_ns() */
};

struct deadline deadline_after(double seconds);
struct deadline deadline_earlier(struct deadline left, struct deadline right);
double deadline_remaining_seconds(struct deadline deadline);
bool deadline_passed(struct deadline deadline);
