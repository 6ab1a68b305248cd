/* SPDX-License-Identifier: Apache-2.0 */
/* The noise guard around a timed batch. */
#ifndef TLBBENCH_ENGINE_GUARD_H
#define TLBBENCH_ENGINE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* How often this thread has left a core, by its own will or not. */
long timing_switches(void);

/* The guard notes the clocks and the involuntary switches when a batch starts. */
struct timing_guard {
    uint64_t wall_ns;
    uint64_t cpu_ns;
    long switches;
};

/* A batch whose processor time is below this share of its wall time ran on a busy core. */
#define TIMING_CPU_SHARE_MIN 0.98

void timing_guard_begin(struct timing_guard *guard);

/* Ends the batch: stores its wall time, returns true when nothing disturbed it. */
bool timing_guard_end(const struct timing_guard *guard, double *wall_ns);

#endif
