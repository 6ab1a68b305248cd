/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A processor that is not at hand, under the whole of geometry_measure(): the linker puts the functions of
 * simulated_machine.c in the place of those that time, flush and read clocks (see meson.build). The cycles are the real
 * ones: every pointer is followed, and its page is looked up in the simulated TLB.
 */
#pragma once

#include "tlb_simulator.h"

#include <stdbool.h>
#include <stdint.h>

struct sim_conditions {
    double spread;         /* relative standard deviation of a batch */
    double outlier_share;  /* batches that are half as slow again and pass the guard */
    double disturbed;      /* batches that the guard sees disturbed, beside those that a slice ends in */
    double clock_step;     /* the clock jumps by up to this share of it, about ten times per second */
    double run_ns, off_ns; /* a slice of the core and the wait for the next; off 0 = the core is ours */
    /* Mean spells in which a SMT sibling of the core is busy, or pauses; busy 0 = there is none. While it is busy it
     * takes entries of both levels. */
    double busy_ns, pause_ns;
};

struct sim_core {
    const char *name;
    struct sim_processor processor;
    double hz;
    double shared_line_ns; /* what the second page of a cache line costs; 0 = nothing */
    unsigned l1_lines;     /* of the first-level data cache */
};

/* Starts the machine anew: clocks at 0, TLBs empty. */
void sim_machine_start(const struct sim_core *core, const struct sim_conditions *conditions, uint64_t seed);
void sim_machine_stop(void);

/* The base page of the machine, where it is not that of the kernel under the test; free pages of every pool; how
 * larger pages are held. */
void sim_machine_set_memory(uint64_t base_page_bytes, uint64_t pool_pages, const struct sim_pages pages[SIM_PAGES_MAX]);

/* From now on the machine has an idle CPU of this number beside the one that conditions are for, which is 0. */
void sim_machine_add_idle_cpu(int cpu);

/* The CPU that was bound last; 0 at first. */
int sim_machine_cpu(void);

/* Walks that the processor has counted: session.counted_walks. `factor` is a double, what the counter makes of them;
 * NULL = it counts them as they are. */
double sim_machine_walks(void *factor);

/* What the simulated clock says. */
double sim_machine_seconds(void);
