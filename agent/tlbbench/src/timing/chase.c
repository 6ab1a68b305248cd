/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/chase.h"

#include "timing/guard.h"

#include <string.h>

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

struct chase chase_link(chase_slot *slot, const void *context, const uint32_t *order, size_t count)
{
    for (size_t step = 0; step < count; step++) {
        char *next = slot(context, order[step + 1 == count ? 0 : step + 1]);

        memcpy(slot(context, order[step]), &next, sizeof(next));
    }
    return (struct chase){.position = slot(context, order[0])};
}

static void walk_table(struct chase *chase, uint64_t accesses)
{
    const uint32_t *offsets = chase->offsets;
    const char *base = chase->base;
    uint64_t count = chase->count;
    uint64_t next = chase->next;
    uint64_t zero = 0;

    for (uint64_t left = (accesses + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL; left > 0;) {
        uint64_t part = count - next < left ? count - next : left;

        for (uint64_t end = next + part; next < end; next++)
            zero = *(const volatile uint64_t *)(base + offsets[next + zero]);
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
    uint64_t rounded = (accesses + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL;
    struct noise_guard guard;
    double wall_ns;

    guard_begin(&guard);
    chase_walk(chase, rounded);
    bool quiet = guard_end(&guard, &wall_ns);

    *ns_per_access = wall_ns / (double)rounded;
    return quiet;
}

uint64_t chase_batch_accesses(struct chase *chase, double batch_seconds)
{
    enum { PROBE_ACCESSES = 4096, PROBE_TRIES = 3, ACCESSES_MAX = 1 << 24 };
    double fastest = 1e9;

    for (unsigned try = 0; try < PROBE_TRIES; try++) {
        double ns;

        (void)chase_time_batch(chase, PROBE_ACCESSES, &ns);
        fastest = ns < fastest ? ns : fastest;
    }
    double accesses = batch_seconds * 1e9 / (fastest > 0.05 ? fastest : 0.05);

    return accesses < PROBE_ACCESSES ? PROBE_ACCESSES : accesses > ACCESSES_MAX ? ACCESSES_MAX : (uint64_t)accesses;
}
