/* SPDX-License-Identifier: Apache-2.0 */
/* The working state of latency_measure(): one series per backing, one cell per layout and footprint; walks_measure()
 * uses its cells and cycles. Not for others. */
#pragma once

#include "latency/result.h"

enum { LATENCY_POINTS_MAX = 24, LATENCY_ROUNDS_MAX = 12, LATENCY_SAMPLES_MAX = 64 };

struct latency_cell {
    double samples[LATENCY_SAMPLES_MAX];
    size_t count;
    unsigned dropped;
    uint64_t accesses;                   /* of one batch */
    double round_ns[LATENCY_ROUNDS_MAX]; /* median of a round; NAN = no quiet batch */
};

struct latency_series {
    struct backing backing;
    struct verdict verdict;
    double granted_fraction; /* smallest of all rounds */
    uint64_t bytes;          /* footprint that this backing can have; 0 = none */
    struct latency_cell cells[LAYOUT_COUNT][LATENCY_POINTS_MAX];
};

/* Which footprints, how often. */
struct latency_plan {
    uint64_t footprints[LATENCY_POINTS_MAX];
    size_t footprint_count;
    uint64_t layout_max_bytes[LAYOUT_COUNT]; /* 0 = a layout that was not requested */
    unsigned layout_every[LAYOUT_COUNT];     /* only every n-th footprint */
    double warm_seconds;                     /* at most, for one cycle to become steady before it is timed */
    unsigned rounds;
    unsigned batches;
    double batch_seconds;
    uint64_t left_out_bytes; /* smallest footprint that was requested and is more than the memory allowed; 0 = none */
};

/* Footprints, rounds and batches of the profile, as far as the memory allowed reaches. */
void latency_make_plan(const struct session *session, const struct latency_request *request, struct latency_plan *plan);

/* How much of its backing a series has: all that is planned, or what the pool has free. */
void latency_size_series(const struct session *session, const struct latency_plan *plan, struct latency_series *series);

/* Series whose backing is available. */
size_t latency_live_series(const struct latency_series *series, size_t series_count);

/* Largest footprint that all backings can have at the same time, and that leaves most of the time for measuring. */
uint64_t latency_shared_footprint(const struct session *session, const struct latency_request *request,
                                  const struct latency_plan *plan, const struct latency_series *series,
                                  size_t series_count);

/* Walks a new cycle of `nodes` until it is steady, then times `batches` batches of it. */
void latency_measure_cell(struct latency_cell *cell, const struct latency_plan *plan, unsigned batches,
                          struct chase *chase, uint64_t nodes);

/* The batches alone, of 1, 2, 4 or 8 chases side by side. */
void latency_time_batches(struct latency_cell *cell, const struct latency_plan *plan, unsigned batches,
                          struct chase *chases, unsigned count);

/* Makes the points of a curve from cells; those without a quiet figure are left out, and its verdict says so. Sorts the
 * samples. Returns 0, or -1 when memory ran out. */
int latency_fill_curve(struct curve *curve, const uint64_t *x, struct latency_cell *cells, size_t count);

/* Stores the round's median, of the samples from `first` on. */
void latency_end_round(struct latency_cell *cell, size_t first, unsigned round);

/* True when the plan has this point for a backing of `bytes`. */
bool latency_plan_has(const struct latency_plan *plan, enum latency_curve layout, size_t point, uint64_t bytes);

/* True when every paired difference is known to a twentieth of the latency it belongs to. */
bool latency_is_narrow(const struct latency_plan *plan, const struct latency_series *series, size_t series_count);

/* Turns the series into curves and paired differences against the first one. Returns 0, or -1 when memory ran out. */
int latency_collect(const struct latency_plan *plan, struct latency_series *series, size_t series_count,
                    struct latency_result *result);

/* A cycle of a layout over the first `footprint` bytes of `base`. The nodes and their order depend on `seed` alone, not
 * on the backing. */
struct latency_cycle {
    char *base;
    uint64_t footprint, base_page_bytes;
    enum latency_curve layout;
    uint64_t seed;
};

uint64_t latency_node_count(const struct latency_cycle *cycle);

/* The node after so many steps from the first. */
char *latency_node(const struct latency_cycle *cycle, uint64_t step);

/* Reads every node of a linked cycle once, in the order of their addresses: these loads overlap, so what fits into a
 * cache is there some milliseconds later, whatever linking left. */
void latency_visit(const struct latency_cycle *cycle);

/* Links the cycle and returns its first node. */
void *latency_link(const struct latency_cycle *cycle);
