/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's own time counter, read in order: for single accesses, where a clock call costs more than they do. */
#pragma once

#include "base/std.h"

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
