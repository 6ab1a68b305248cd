/* SPDX-License-Identifier: Apache-2.0 */
/* A seeded generator, so that every run can be repeated from the seed in its document; and random orders: a shuffle in
 * place, and a permutation without a table. */
#pragma once

#include "base/std.h"

struct rng {
    uint64_t state;
};

/* Mixes 64 bits (the finaliser of SplitMix64): near seeds give unrelated results. */
static inline uint64_t rng_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xbf58476d1ce4e5b9u;
    value ^= value >> 27;
    value *= 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* `stream` separates the users of one seed: rounds, workers, points. */
static inline struct rng rng_new(uint64_t seed, uint64_t stream)
{
    return (struct rng){.state = rng_mix(seed + 1) ^ rng_mix(~stream)};
}

static inline uint64_t rng_next(struct rng *rng)
{
    rng->state += 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: visits every state once */
    return rng_mix(rng->state);
}

/* Not ISO C, but on every 64-bit compiler here. */
__extension__ typedef unsigned __int128 rng_product;

/* Uniform in 0 .. bound - 1 for bound >= 1; the bias is below bound / 2^64. */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    return (uint64_t)(((rng_product)rng_next(rng) * bound) >> 64);
}

/* Uniform in [0, 1). */
static inline double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

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
