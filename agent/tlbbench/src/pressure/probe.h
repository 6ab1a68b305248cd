/* SPDX-License-Identifier: Apache-2.0 */
/* Single random accesses, timed alone, with other cache lines read between them: what a walk costs a program whose
 * page-table lines do not stay in the caches. The loops; pressure.c decides what to measure. */
#pragma once

#include "base/rng.h"
#include "timing/counter.h"

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
