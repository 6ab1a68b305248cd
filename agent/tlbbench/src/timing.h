/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, the noise guard around a timed batch, the core clock, and the choice of the core to measure on. */
#ifndef TLBBENCH_TIMING_H
#define TLBBENCH_TIMING_H

#include "parse.h"
#include "results.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* CLOCK_MONOTONIC_RAW in nanoseconds: not slewed by time daemons. */
uint64_t timing_now_ns(void);

/* CLOCK_THREAD_CPUTIME_ID in nanoseconds: stands still while another task or guest has the core. */
uint64_t timing_thread_cpu_ns(void);

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

/* Clock ticks (USER_HZ) that the hypervisor took from `cpu` (all cores when negative) since boot; 0 when unknown. */
uint64_t timing_steal_ticks(int cpu);

/* The same of an open /proc/stat. */
uint64_t timing_parse_steal(FILE *file, int cpu);

/* Core cycles per second from a chain of dependent additions, one cycle each; NAN when every try was disturbed. The
 * time stamp counter runs at another rate and says nothing about it. */
double timing_core_hz(void);

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

/* Stops at a moment in time: --time-limit and the budgets of sections. */
struct deadline {
    uint64_t end_ns; /* of timing_now_ns() */
};

struct deadline deadline_after(double seconds);
struct deadline deadline_earlier(struct deadline left, struct deadline right);
double deadline_remaining_seconds(struct deadline deadline);
bool deadline_passed(struct deadline deadline);

#endif
