/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the hypervisor took from this guest. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* Clock ticks (USER_HZ) that the hypervisor took from `cpu` (all CPUs when negative) since boot; -1 when /proc/stat
 * does not list the CPU (it may have gone offline) or has no steal. */
int64_t steal_ticks(int cpu);

/* The same of an open /proc/stat. */
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
