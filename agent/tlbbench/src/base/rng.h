/* SPDX-License-Identifier: Apache-2.0 */
/* A seeded generator, so that every run can be repeated from the seed in its document. */
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
