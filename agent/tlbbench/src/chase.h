/* SPDX-License-Identifier: Apache-2.0 */
/* Dependent loads: every address comes from the load before it, so nothing overlaps and the time is the latency. */
#ifndef TLBBENCH_CHASE_H
#define TLBBENCH_CHASE_H

#include "results.h"
#include "rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a chase stands between batches. It follows pointers, or a table over memory that holds nothing but zeroes:
 * then each load's value is added to the place in the table of the next, which waits for it in that way. */
struct chase {
    void *position;          /* the next pointer; without use where there is a table */
    const uint32_t *offsets; /* NULL = pointers; else byte offsets from `base`, in the order of the visits */
    uint64_t count;          /* offsets in the table */
    uint64_t next;           /* place of the next one */
    const char *base;
};

/* Makes `accesses` loads, rounded up to a multiple of CHASE_UNROLL. */
enum { CHASE_UNROLL = 32 };
void chase_walk(struct chase *chase, uint64_t accesses);

/* Walks `accesses` under the noise guard and stores ns per access. Returns false when the batch was disturbed. */
bool chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access);

/* Accesses that take about `batch_seconds` from here on; walks a few thousand to find out. */
uint64_t chase_batch_accesses(struct chase *chase, double batch_seconds);

/* Shuffles `order` (0 .. count - 1 in any order before) evenly: the cycle visits order[0], order[1], ... and returns.
 */
void chase_shuffle(uint32_t *order, size_t count, struct rng *rng);

/*
 * A permutation of 0 .. count - 1 without a table, for cycles of millions of nodes: the memory beside the measured area
 * stays small. It is a bijection on the next power of two, walked until it lands inside.
 */
struct permutation {
    uint64_t count;
    uint64_t mask;
    unsigned shift;
    uint64_t odd[3];
    uint64_t add[3];
};

struct permutation permutation_new(uint64_t count, uint64_t seed);
uint64_t permutation_at(const struct permutation *permutation, uint64_t index);

#endif
