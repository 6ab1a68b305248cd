/* SPDX-License-Identifier: Apache-2.0 */
/* The noise guard around a timed batch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How often this thread has left a core, by its own will or not. */
long guard_switches(void);

/* The guard notes the clocks and the involuntary switches when a batch starts. */
struct noise_guard {
    uint64_t wall_ns;
    uint64_t cpu_ns;
    long switches;
};

/* A batch whose processor time is below this share of its wall time ran on a busy core. */
#define GUARD_CPU_SHARE_MIN 0.98

void guard_begin(struct noise_guard *guard);

/* Ends the batch: stores its wall time, returns true when nothing disturbed it. */
bool guard_end(const struct noise_guard *guard, double *wall_ns);
