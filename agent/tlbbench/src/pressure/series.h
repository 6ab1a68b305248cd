/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the pressure measurement, and the batches of one backing. */
#pragma once

#include "pressure/result.h"

enum {
    PRESSURE_FOOTPRINTS = 8, /* 16 MiB to 2 GiB by doubling */
    PRESSURE_DEPTHS = 8,     /* what happens between two accesses */
    PRESSURE_SLOTS = PRESSURE_FOOTPRINTS * PRESSURE_DEPTHS,
    PRESSURE_PAIRS_MAX = 16,
    PRESSURE_PAIRS_MIN = 3,  /* fewer tell nothing */
    PRESSURE_PAIRS_FULL = 5, /* what every point should have */
};

/* Between two accesses: lines read, then time spun. Neighbours replace lines of a shared cache while time passes. */
struct pressure_depth {
    unsigned lines_between;
    unsigned wait_ns;
    double weight; /* of a batch: long distances make it longer */
};
extern const struct pressure_depth PRESSURE_DEPTH[PRESSURE_DEPTHS];

uint64_t pressure_footprint(size_t index);

/* How much memory, how often. */
struct pressure_plan {
    uint64_t region_bytes;   /* 0 = the memory allowed is too little */
    uint64_t base_bytes;     /* largest footprint; 0 = none fits */
    unsigned footprint_mask; /* bit i: pressure_footprint(i) is measured where it fits, beside the largest */
    unsigned depth_mask;     /* bit i: PRESSURE_DEPTH[i] is measured */
    unsigned mappings;       /* fresh mappings of everything */
    unsigned passes;         /* over all points, for each mapping */
    uint64_t accesses;       /* of a batch at most */
    uint64_t warm_lines;     /* read before a batch */
};

/* `last_cache_bytes` is the largest cache: a smaller region would not empty it. */
struct pressure_plan pressure_make_plan(bool full, uint64_t memory_bytes, uint64_t last_cache_bytes);

/* Largest footprint of pages of this size beside the region and the base pages; `pool_bytes` UINT64_MAX = no pool. 0
 * when not even one page fits. */
uint64_t pressure_largest_footprint(const struct pressure_plan *plan, uint64_t memory_bytes, uint64_t page_bytes,
                                    uint64_t pool_bytes);

/* Batches of one point, base pages and large pages back to back. */
struct pressure_cell {
    double base_ns[PRESSURE_PAIRS_MAX];
    double ns[PRESSURE_PAIRS_MAX];
    double period_ns[PRESSURE_PAIRS_MAX];
    unsigned char mapping[PRESSURE_PAIRS_MAX]; /* that a pair was measured in */
    unsigned pairs;
    unsigned dropped;
};

struct pressure_series {
    struct backing backing;
    struct verdict verdict; /* why `bytes` is 0 */
    uint64_t bytes;         /* largest footprint; 0 = not measured */
    bool is_pending;        /* to be mapped yet in this round of mappings */
    struct pressure_cell cells[PRESSURE_FOOTPRINTS][PRESSURE_DEPTHS];
};

bool pressure_plan_has(const struct pressure_plan *plan, const struct pressure_series *series, size_t footprint,
                       size_t depth);

/* Turns the cells into points and the verdict; result->verdict says how the measuring ended. Returns 0, or -1 when
 * memory ran out. */
int pressure_collect(const struct pressure_plan *plan, struct pressure_series *series, size_t series_count,
                     struct pressure_result *result);
