/* SPDX-License-Identifier: Apache-2.0 */
/* Dependent loads: every address comes from the load before it, so nothing overlaps and the time is the latency. */
#pragma once

#include "base/std.h"

/* Where a chase stands between batches. It follows pointers, or a table over memory that holds nothing but zeroes:
 * then each load's value is added to the place in the table of the next, which waits for it in that way. */
struct chase {
    void *position;               /* the next pointer; without use where there is a table */
    const uint32_t *offsets;      /* a table of byte offsets from `base`, in the access permutation; NULL = none */
    const char *const *addresses; /* the same for ranges past the reach of offsets */
    uint64_t count;               /* entries of the table */
    uint64_t next;                /* place of the next one */
    const char *base;
};

/* Links the slots order[0] -> order[1] -> ... -> order[0], each with room for a pointer. Returns the start. */
typedef char *chase_slot(const void *context, size_t index);
struct chase chase_link(chase_slot *slot, const void *context, const uint32_t *order, size_t count);

/* Makes `accesses` loads, rounded up to a multiple of CHASE_UNROLL. */
enum { CHASE_UNROLL = 32 };
void chase_walk(struct chase *chase, uint64_t accesses);

/* Walks `accesses` under the noise guard and stores ns per access. Returns false when the batch was disturbed. */
bool chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access);

/* The same for 1, 2, 4 or 8 chases of pointers side by side: each waits for its own loads alone, so that their misses
 * overlap. The time is that of one access of any of them. */
enum { CHASES_MAX = 8 };
bool chase_time_parallel(struct chase *chases, unsigned count, uint64_t accesses, double *ns_per_access);

/* Accesses that take about `batch_seconds` from here on; walks a few thousand to find out. */
uint64_t chase_batch_accesses(struct chase *chase, double batch_seconds);
