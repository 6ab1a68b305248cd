/* SPDX-License-Identifier: Apache-2.0 */
/* The noise guard around a timed batch. */
#pragma once

#include "base/std.h"

/* How often this thread has left a core, by its own will or not. */
long guard_switches(void);

/* The guard notes the clocks, and the involuntary switches and page faults so far, when a batch starts. */
struct noise_guard {
    uint64_t wall_ns;
    uint64_t cpu_ns;
    long disturbances;
};

/* A batch whose processor time is below this share of its wall time ran on a busy core. */
#define GUARD_CPU_SHARE_MIN 0.98

void guard_begin(struct noise_guard *guard);

/* Ends the batch: stores its wall time, returns true when nothing disturbed it. */
bool guard_end(const struct noise_guard *guard, double *wall_ns);

/* --- time that the hypervisor took from this guest ---------------------------------------------------------------- */

/* Clock ticks (USER_HZ) that the hypervisor took from `cpu` (all CPUs when negative) since boot, by an open /proc/stat;
 * -1 when it does not list the CPU (it may have gone offline) or has no steal. */
int64_t steal_parse(FILE *file, int cpu);

/* Stolen ns between two counts. 0 when either is unknown or the counter went back: nothing is known to be stolen. A
 * single tick counts as 0 too, since it may round up a stall of microseconds. */
double steal_between_ns(int64_t before_ticks, int64_t after_ticks);

/* A span of time whose steal is requested at its end. */
struct steal_watch {
    int cpu;
    int64_t ticks;
    uint64_t start_ns;
};

struct steal_watch steal_begin(int cpu);

/* Stolen ns so far, or 0 when they are less than STEAL_SHARE_MAX of the time of `cpus` CPUs. */
double steal_excess_ns(const struct steal_watch *watch, int cpus);
