/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/chase.h"

#include "timing/guard.h"

#define EIGHT(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define FOLLOW_ONE(n) position = *(void *const *)position;

struct chase chase_link(chase_slot *slot, const void *context, const uint32_t *order, size_t count)
{
    for (size_t step = 0; step < count; step++) {
        char *next = slot(context, order[step + 1 == count ? 0 : step + 1]);

        memcpy(slot(context, order[step]), &next, sizeof(next));
    }
    return (struct chase){.position = slot(context, order[0])};
}

/* Each address waits for the value, always zero, of the load before. */
#define LOAD_UP_TO_END(ADDRESS)                                                                                        \
    for (uint64_t end = next + part; next < end; next++)                                                               \
    zero = *(const volatile uint64_t *)(ADDRESS)

static void walk_table(struct chase *chase, uint64_t accesses)
{
    const uint32_t *offsets = chase->offsets;
    const char *const *addresses = chase->addresses;
    const char *base = chase->base;
    uint64_t count = chase->count;
    uint64_t next = chase->next;
    uint64_t zero = 0;

    for (uint64_t left = (accesses + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL; left > 0;) {
        uint64_t part = count - next < left ? count - next : left;

        if (addresses != NULL)
            LOAD_UP_TO_END(addresses[next + zero]);
        else
            LOAD_UP_TO_END(base + offsets[next + zero]);
        left -= part;
        next = next == count ? 0 : next;
    }
    __asm__ volatile("" : : "r"(zero));
    chase->next = next;
}

void chase_walk(struct chase *chase, uint64_t accesses)
{
    if (chase->offsets != NULL || chase->addresses != NULL) {
        walk_table(chase, accesses);
        return;
    }
    void *position = chase->position;

    for (uint64_t done = 0; done < accesses; done += CHASE_UNROLL) {
        EIGHT(FOLLOW_ONE)
        EIGHT(FOLLOW_ONE)
        EIGHT(FOLLOW_ONE)
        EIGHT(FOLLOW_ONE)
    }
    /* The last address is used where the compiler cannot see it, so no load can be dropped. */
    __asm__ volatile("" : "+r"(position) : : "memory");
    chase->position = position;
}

#define TAKE(n) void *position##n = count > (n) ? chases[n].position : NULL;
#define FOLLOW(n)                                                                                                      \
    if (count > (n))                                                                                                   \
        position##n = *(void *const *)position##n;
#define FOLLOW_EACH                                                                                                    \
    do {                                                                                                               \
        EIGHT(FOLLOW)                                                                                                  \
    } while (0)
#define KEEP(n)                                                                                                        \
    if (count > (n)) {                                                                                                 \
        __asm__ volatile("" : "+r"(position##n) : : "memory");                                                         \
        chases[n].position = position##n;                                                                              \
    }

/* With a constant `count` the compiler leaves out the chases that there are not, and positions stay in registers. */
static inline __attribute__((always_inline)) void follow(struct chase *chases, const unsigned count, uint64_t steps)
{
    EIGHT(TAKE)
    for (uint64_t step = 0; step < steps; step++)
        FOLLOW_EACH;
    EIGHT(KEEP)
}

static void walk_parallel(struct chase *chases, unsigned count, uint64_t accesses)
{
    switch (count) {
    case 2:
        follow(chases, 2, accesses / 2);
        break;
    case 4:
        follow(chases, 4, accesses / 4);
        break;
    case 8:
        follow(chases, 8, accesses / 8);
        break;
    default:
        chase_walk(chases, accesses);
    }
}

bool chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access)
{
    return chase_time_parallel(chase, 1, accesses, ns_per_access);
}

bool chase_time_parallel(struct chase *chases, unsigned count, uint64_t accesses, double *ns_per_access)
{
    uint64_t rounded = (accesses + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL;
    struct noise_guard guard;
    double wall_ns;

    guard_begin(&guard);
    walk_parallel(chases, count, rounded);
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
