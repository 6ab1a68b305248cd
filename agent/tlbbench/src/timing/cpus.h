/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the CPU to measure on, by the CPUs' times in /proc/stat. */
#pragma once

#include "base/text.h"

/* The CPUs that this thread may run on now; and makes them these. Returns 0 or -1 (errno). */
int cpus_get_affinity(struct cpu_list *cpus);
int cpus_set_affinity(const struct cpu_list *cpus);

/* Leaves in `cpus` those that are in `wanted`, too. */
void cpus_keep(struct cpu_list *cpus, const struct cpu_list *wanted);

/* How long every CPU had idled at a moment. */
struct idle_sample {
    uint64_t wall_ns;            /* 0 = no sample was taken */
    int64_t ticks[CPU_LIST_MAX]; /* -1 = not listed: offline, or there is no such CPU */
};

void cpus_sample_idle(struct idle_sample *sample);

/* Fills the ticks from an open /proc/stat; CPUs that it does not list get -1. */
void cpus_parse_idle(FILE *file, struct idle_sample *sample);

/* The CPU of `allowed` that idled most between two samples, and its share of that time (0 .. 1). CPUs that one of them
 * does not list, or whose counter went back, are left out; -1 when none remains. */
int cpus_idlest_between(const struct idle_sample *since, const struct idle_sample *now, const struct cpu_list *allowed,
                        double *idle_share);

/* The same up to now. */
int cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share);

/* The core of `allowed` that idled most over a short sample. */
int cpus_choose(const struct cpu_list *allowed);

/* Binds the calling thread to one core. Returns 0 or -1 (errno). */
int cpus_pin(int cpu);

/* The columns that are used here: user nice system idle iowait irq softirq steal. */
enum { PROC_STAT_IDLE = 3, PROC_STAT_STEAL = 7, PROC_STAT_COLUMNS };

struct proc_stat_cpu {
    int cpu;                          /* -1 = the sum of all */
    int64_t ticks[PROC_STAT_COLUMNS]; /* USER_HZ since boot; -1 = not listed */
};

/* The next CPU of an open /proc/stat; false behind the last. Lines that are no CPU's in between are left out. */
bool proc_stat_next(FILE *file, struct proc_stat_cpu *found);
