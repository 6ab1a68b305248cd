/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the CPU to measure on. */
#ifndef TLBBENCH_ENGINE_CPUS_H
#define TLBBENCH_ENGINE_CPUS_H

#include "base/parse.h"

#include <stdint.h>
#include <stdio.h>

/* The cores that this thread may run on now and that are in `wanted` (empty = all). */
void timing_list_cpus(const struct cpu_list *wanted, struct cpu_list *allowed);

/* What every core had idled at a moment. */
struct idle_look {
    uint64_t wall_ns; /* 0 = no look was taken */
    unsigned long long ticks[CPU_LIST_MAX];
};

void timing_look_idle(struct idle_look *look);

/* Fills the ticks from an open /proc/stat; cores that it does not list keep theirs. */
void timing_parse_idle(FILE *file, struct idle_look *look);

/* The core of `allowed` that idled most since the look, and its share of that time (0 .. 1); -1 when none is listed. */
int timing_idlest_cpu(const struct idle_look *since, const struct cpu_list *allowed, double *idle_share);

/* The core of `allowed` that idled most over a short look. */
int timing_choose_cpu(const struct cpu_list *allowed);

/* Binds the calling thread to one core. Returns 0 or -1 (errno). */
int timing_pin_cpu(int cpu);

#endif
