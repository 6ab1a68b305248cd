/* SPDX-License-Identifier: Apache-2.0 */
#include "chase.h"

#include "timing.h"

#define FOLLOW_ONCE position = *(void *const *)position
#define FOLLOW_EIGHT                                                                                                   \
    do {                                                                                                               \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
        FOLLOW_ONCE;                                                                                                   \
    } while (0)

static void walk_table(struct chase *chase, uint64_t accesses)
{
    const uint32_t *const offsets = chase->offsets;
    const char *const base = chase->base;
    const uint64_t count = chase->count;
    uint64_t next = chase->next;
    uint64_t zero = 0;

    for (uint64_t left = (accesses + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL; left > 0;) {
        const uint64_t part = count - next < left ? count - next : left;

        for (const uint64_t end = next + part; next < end; next++) {
            zero = *(const volatile uint64_t *)(base + offsets[next + zero]);
        }
        left -= part;
        next = next == count ? 0 : next;
    }
    __asm__ volatile("" : : "r"(zero));
    chase->next = next;
}

void chase_walk(struct chase *chase, uint64_t accesses)
{
    if (chase->offsets != NULL) {
        walk_table(chase, accesses);
        return;
    }
    void *position = chase->position;

    for (uint64_t done = 0; done < accesses; done += CHASE_UNROLL) {
        FOLLOW_EIGHT;
        FOLLOW_EIGHT;
        FOLLOW_EIGHT;
        FOLLOW_EIGHT;
    }
    /* The last address is used where the compiler cannot see it, so no load can be dropped. */
    __asm__ volatile("" : "+r"(position) : : "memory");
    chase->position = position;
}

bool chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access)
{
    const uint64_t rounded = (accesses + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL;
    struct timing_guard guard;
    double wall_ns;

    timing_guard_begin(&guard);
    chase_walk(chase, rounded);
    const bool quiet = timing_guard_end(&guard, &wall_ns);

    *ns_per_access = wall_ns / (double)rounded;
    return quiet;
}

uint64_t chase_batch_accesses(struct chase *chase, double batch_seconds)
{
    enum { LOOK_ACCESSES = 4096, LOOK_TRIES = 3, ACCESSES_MAX = 1 << 24 };
    double fastest = 1e9;

    for (unsigned try = 0; try < LOOK_TRIES; try++) {
        double ns;

        (void)chase_time_batch(chase, LOOK_ACCESSES, &ns);
        fastest = ns < fastest ? ns : fastest;
    }
    const double accesses = batch_seconds * 1e9 / (fastest > 0.05 ? fastest : 0.05);

    return accesses < LOOK_ACCESSES ? LOOK_ACCESSES : accesses > ACCESSES_MAX ? ACCESSES_MAX : (uint64_t)accesses;
}

void chase_shuffle(uint32_t *order, size_t count, struct rng *rng)
{
    for (size_t left = count; left > 1; left--) {
        const size_t other = (size_t)rng_below(rng, left);
        const uint32_t swapped = order[left - 1];

        order[left - 1] = order[other];
        order[other] = swapped;
    }
}

struct permutation permutation_new(uint64_t count, uint64_t seed)
{
    struct rng rng = rng_new(seed, count);
    struct permutation permutation = {.count = count, .mask = 1};

    while (permutation.mask < count) {
        permutation.mask <<= 1;
    }
    permutation.mask -= 1;
    while ((permutation.mask >> permutation.shift) > 1) {
        permutation.shift++;
    }
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
