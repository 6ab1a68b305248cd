/* SPDX-License-Identifier: Apache-2.0 */
/* Random orders: a shuffle in place, and a permutation without a table. */
#pragma once

#include "base/rng.h"

/* Shuffles `order` evenly. */
void permutation_shuffle(uint32_t *order, size_t count, struct rng *rng);

/* Fills `order` with 0 .. count - 1 at random. */
void permutation_fill(uint32_t *order, size_t count, struct rng *rng);

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
