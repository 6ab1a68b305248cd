/* SPDX-License-Identifier: Apache-2.0 */
/* Single random accesses, timed alone, with other cache lines read between them: what a walk costs a program whose
 * page-table lines do not stay in the caches. The loops; pressure.c decides what to measure. */
#pragma once

#include "base/rng.h"

#if defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__)
#define COUNTER_IS_KNOWN true
#else
#define COUNTER_IS_KNOWN false
#endif

/* Ticks of a counter of constant rate. Earlier loads have their data before it is read, later ones start after it. On
 * a processor where it is not known how to read one in order it stands still; see COUNTER_IS_KNOWN. */
static inline uint64_t counter_read(void)
{
#if defined(__x86_64__)
    uint32_t low;
    uint32_t high;

    /* Not RDTSCP, which some hypervisors hide: between two fences RDTSC is as well ordered. */
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t ticks;

    /* ISB does not wait for the data of earlier loads; the barrier does. */
    __asm__ volatile("dsb ishld\n\tisb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
#elif defined(__powerpc64__)
    uint64_t ticks;

    __asm__ volatile("sync\n\tisync\n\tmfspr %0, 268\n\tisync" : "=r"(ticks) : : "memory");
    return ticks;
#else
    return 0;
#endif
}

/* What turns ticks into the time of an access. */
struct counter_scale {
    double ticks_per_ns;
    double empty_ticks; /* of two readings with nothing between them */
};

/* Measures both in some milliseconds. Returns false where the counter is not known or does not advance. */
bool counter_calibrate(struct counter_scale *scale);

enum {
    PROBE_PIECE_BYTES = 4096, /* a base page of most machines; on others a part of one */
    PROBE_LINES_PER_PAGE = 16,
};

/* Where the lines between are read. */
struct probe_region {
    const char *base;
    uint64_t pieces;
};

/* Where one backing stands. `base` holds `lines` lines. */
struct probe {
    const char *base;
    uint64_t lines;
    const struct probe_region *region;
    unsigned lines_between;
    uint64_t wait_ticks; /* of the time counter, spun after the lines between */
    struct rng access;   /* the same seed visits the same lines, whatever the backing */
    struct rng between;
};

/* Reads `count` lines: pages at random, PROBE_LINES_PER_PAGE different lines of each. Returns the sum of their first
 * words, so that no read can be left out. */
uint64_t probe_read_lines(const struct probe_region *region, struct rng *rng, unsigned count);

/* Walks untimed and without waiting until about `lines` cache lines were read or `seconds` are over, so that caches and
 * TLBs hold what they will hold while timing. */
void probe_warm_up(struct probe *probe, uint64_t lines, double seconds);

/* Of one batch: ns of a timed access, an empty pair of readings subtracted, and from one access to the next. */
struct probe_time {
    double ns;
    double period_ns;
};

/* Times `accesses` accesses or as many as fit into `seconds`, at least some hundreds: medians over parts of the mean of
 * each. Parts that the noise guard rejects are left out. Returns false when too few remained or a stop was requested.
 */
bool probe_measure(struct probe *probe, const struct counter_scale *scale, uint64_t accesses, double seconds,
                   struct probe_time *time);
