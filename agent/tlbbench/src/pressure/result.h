/* SPDX-License-Identifier: Apache-2.0 */
/* What page sizes save when a program reads other data between two accesses: latency.pressure of the document. */
#pragma once

#include "timing/session.h"

struct pressure_point {
    struct backing backing; /* compared with base pages */
    uint64_t footprint_bytes;
    unsigned lines_between;
    unsigned wait_ns;           /* spun idle between two accesses */
    double period_ns;           /* from one access to the next, all included; mean of both sides */
    double base_ns_p50, ns_p50; /* medians of the batches; an empty timed pair subtracted */
    double delta_ns;            /* mean over the pairs, this backing minus base pages; negative = faster */
    double ci95_low_ns, ci95_high_ns;
    unsigned pairs;
};

struct pressure_result {
    struct verdict verdict;
    uint64_t region_bytes;   /* that the lines between are read from; 0 = nothing was measured */
    char region_backing[16]; /* empty = nothing was measured */
    struct pressure_point *points;
    size_t point_count;
    uint64_t peak_mapped_bytes;
    double duration_seconds;
};

void pressure_result_free(struct pressure_result *result);

/* Measures on the calling thread, which must be bound to session->cpu, until session->deadline. Always leaves a valid
 * result. Returns 0, or -1 when memory for the result ran out. Free with pressure_result_free(). */
int pressure_measure(const struct session *session, struct pressure_result *result);
