/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the CPU to measure on. */
#ifndef TLBBENCH_ENGINE_CPUS_H
#define TLBBENCH_ENGINE_CPUS_H

#include "base/parse.h"

#include <stdint.h>
#include <stdio.h>

/* The cores that this thread may run on now and that are in `wanted` (empty = all). */
void cpus_list_allowed(const struct cpu_list *wanted, struct cpu_list *allowed);

/* What every core had idled at a moment. */
struct idle_sample {
    uint64_t wall_ns; /* 0 = no look was taken */
    unsigned long long ticks[CPU_LIST_MAX];
};

void cpus_sample_idle(struct idle_sample *look);

/* Fills the ticks from an open /proc/stat; cores that it does not list keep theirs. */
void cpus_parse_idle(FILE *file, struct idle_sample *look);

/* The core of `allowed` that idled most since the look, and its share of that time (0 .. 1); -1 when none is listed. */
int cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share);

/* The core of `allowed` that idled most over a short look. */
int cpus_choose(const struct cpu_list *allowed);

/* Binds the calling thread to one core. Returns 0 or -1 (errno). */
int cpus_pin(int cpu);

#endif
