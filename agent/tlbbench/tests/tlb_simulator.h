/* SPDX-License-Identifier: Apache-2.0 */
/* A software TLB of two levels, for testing the reading of sweeps on processors that are not at hand. */
#pragma once

#include "base/rng.h"
#include "timing/knee.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_policy {
    SIM_LRU,
    SIM_NRU, /* a reference bit for each way, as tree PLRU approximates LRU */
    SIM_RANDOM,
};

struct sim_level {
    unsigned entries;
    unsigned ways; /* == entries: fully associative */
    enum sim_policy policy;
    bool hashed; /* the set index mixes high page-number bits in */
};

/* How a processor holds pages that are larger than base pages. */
struct sim_pages {
    uint64_t page_bytes;                /* 0 = none */
    uint64_t first_bytes, second_bytes; /* what one entry of each level covers */
    struct sim_level first;             /* of entries of first_bytes, where it is no base page's */
};

enum { SIM_PAGES_MAX = 3 };

struct sim_processor {
    const char *name;
    struct sim_level first, second;
    double hit_ns, second_hit_ns, walk_ns; /* the last two on top of the hit */
};

struct sim_noise {
    double spread;        /* relative standard deviation of a point */
    double outlier_share; /* points that are twice too slow */
};

/* Both levels of a processor with what they hold. */
struct sim_tlb;

struct sim_tlb *sim_tlb_new(const struct sim_processor *processor);
void sim_tlb_free(struct sim_tlb *tlb);
void sim_tlb_flush(struct sim_tlb *tlb);

/* What the translation costs on top of the hit, in ns; page numbers are above 0. */
double sim_tlb_access(struct sim_tlb *tlb, uint64_t page, struct rng *rng);

/* Pages of other sizes; they are none at first. */
void sim_tlb_set_pages(struct sim_tlb *tlb, const struct sim_pages pages[SIM_PAGES_MAX]);

/* The same of an address in pages[index]. */
double sim_tlb_access_large(struct sim_tlb *tlb, unsigned index, uint64_t address, struct rng *rng);

/* A normal number with variance one, nearly. */
double sim_normal(struct rng *rng);

/* Mean ns per access of a random cycle over `pages` pages, `stride` pages apart. */
double sim_measure(const struct sim_processor *processor, uint64_t pages, uint64_t stride, struct rng *rng);

/* The same with noise on top. */
struct knee_point sim_point(const struct sim_processor *processor, uint64_t pages, uint64_t stride,
                            const struct sim_noise *noise, struct rng *rng);
