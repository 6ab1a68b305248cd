/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds per dependent access over the footprint, for every page size, measured in pairs so that drift cancels. */
#pragma once

#include "timing/curve.h"

/* How the lines of a cycle lie in its footprint; and what `latency` measures beside the curves of cycles. */
enum latency_curve {
    LAYOUT_LINE_PER_PAGE, /* one line in every base page, at a random line of it */
    LAYOUT_RANDOM_64B,    /* every line */
    LAYOUT_PACKED,        /* as many lines as the first, side by side: the cache-only control */
    LAYOUT_COUNT,
    LATENCY_PRESSURE = LAYOUT_COUNT,
    LATENCY_WALKS,
    LATENCY_CURVE_COUNT,
};
extern const char *const LATENCY_CURVE_NAMES[];

struct paired_delta {
    char backing[16]; /* compared with base pages */
    const char *layout;
    uint64_t x;      /* footprint in bytes */
    double delta_ns; /* this backing minus base pages; negative = faster */
    double ci95_low_ns, ci95_high_ns;
    unsigned pairs;
};

/* What to measure. */
struct latency_request {
    struct number_list footprints; /* rising; none = those of the profile */
    unsigned curves;               /* SET_BIT(enum latency_curve) */
};

struct latency_result {
    struct verdict verdict;
    struct curve_list curves;
    struct paired_delta *deltas;
    size_t delta_count;
    uint64_t peak_mapped_bytes;
};

/* The largest footprint of the profile: the full one goes to four times what the entries for 2M reach on this
 * processor, from 4 GiB to 64 GiB. The memory allowed and the time may end it earlier. */
uint64_t latency_largest_footprint(const struct session *session);

/* Measures on the calling thread, which must be bound to session->cpu. Always leaves a valid result. Returns 0, or -1
 * when memory for the result ran out. Its curves and deltas are the caller's. */
int latency_measure(const struct session *session, const struct latency_request *request,
                    struct latency_result *result);

/* --- walks.c: what decides over the cost of a walk beside the footprint ------------------------------------------- */

/* Curves of four kinds, by x_name: "chases" (independent ones side by side), "numa_node" (that holds the memory),
 * "table_bytes" (lines of page tables that the walks read, in turn) and "stride_bytes" (from page to page). */
struct walks_result {
    struct verdict verdict;
    struct curve_list curves;
    int cpu_node; /* NUMA node measured on; UNKNOWN where the kernel has none */
    uint64_t peak_mapped_bytes;
    double duration_seconds;
};

/* As latency_measure(). Chases and NUMA nodes are measured on every backing of the session, and on multi-size THP. */
int walks_measure(const struct session *session, struct walks_result *result);
