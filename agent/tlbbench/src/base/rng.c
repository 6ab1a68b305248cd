/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

void permutation_shuffle(uint32_t *order, size_t count, struct rng *rng)
{
    for (size_t left = count; left > 1; left--) {
        size_t other = (size_t)rng_below(rng, left);
        uint32_t swapped = order[left - 1];

        order[left - 1] = order[other];
        order[other] = swapped;
    }
}

void permutation_fill(uint32_t *order, size_t count, struct rng *rng)
{
    for (size_t index = 0; index < count; index++)
        order[index] = (uint32_t)index;
    permutation_shuffle(order, count, rng);
}

struct permutation permutation_new(uint64_t count, uint64_t seed)
{
    struct rng rng = rng_new(seed, count);
    struct permutation permutation = {.count = count, .mask = 1};

    while (permutation.mask < count)
        permutation.mask <<= 1;
    permutation.mask -= 1;
    while ((permutation.mask >> permutation.shift) > 1)
        permutation.shift++;
    permutation.shift = permutation.shift / 2 + 1; /* half of the bits: every output bit sees high and low input bits */
    for (unsigned round = 0; round < 3; round++) {
        permutation.odd[round] = rng_next(&rng) | 1;
        permutation.add[round] = rng_next(&rng);
    }
    return permutation;
}

/* Each step can be undone on its own: an odd multiplier has an inverse modulo 2^k, and so has x ^= x >> s. */
uint64_t permutation_at(const struct permutation *permutation, uint64_t index)
{
    uint64_t value = index;

    do {
        for (unsigned round = 0; round < 3; round++) {
            value = (value * permutation->odd[round] + permutation->add[round]) & permutation->mask;
            value ^= value >> permutation->shift;
        }
    } while (value >= permutation->count);
    return value;
}
