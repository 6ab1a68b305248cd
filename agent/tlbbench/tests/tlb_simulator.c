/* SPDX-License-Identifier: Apache-2.0 */
#include "tlb_simulator.h"

#include "base/permutation.h"
#include "base/rng.h"
#include "engine/knee.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_LAPS = 3, TIMED_LAPS = 2 };

struct sim_way {
    uint64_t page; /* 0 = empty */
    uint64_t used;
};

struct sim_cache {
    const struct sim_level *level;
    unsigned sets, set_bits; /* a power of two: its logarithm, as a division takes longer than the rest of an access */
    struct sim_way *ways;
    uint64_t clock;
};

static struct sim_cache sim_cache_new(const struct sim_level *level)
{
    struct sim_cache cache = {
        .level = level, .sets = level->entries / level->ways, .ways = calloc(level->entries, sizeof(struct sim_way))};

    while (1u << cache.set_bits < cache.sets)
        cache.set_bits++;
    assert(1u << cache.set_bits == cache.sets);
    return cache;
}

static unsigned set_of(const struct sim_cache *cache, uint64_t page)
{
    uint64_t key = cache->level->hashed ? page ^ (page >> cache->set_bits) ^ (page >> 2 * cache->set_bits) : page;

    return (unsigned)(key & (cache->sets - 1));
}

static struct sim_way *choose_victim(struct sim_cache *cache, struct sim_way *set, struct rng *rng)
{
    unsigned ways = cache->level->ways;
    struct sim_way *victim = set;

    for (unsigned way = 0; way < ways; way++)
        if (set[way].page == 0)
            return &set[way];
    if (cache->level->policy == SIM_RANDOM)
        return &set[rng_below(rng, ways)];
    for (unsigned way = 1; way < ways; way++)
        if (set[way].used < victim->used)
            victim = &set[way];
    return victim;
}

/* Under NRU `used` is the reference bit: when all are set, all others are cleared. */
static void mark_used(struct sim_cache *cache, struct sim_way *set, struct sim_way *used)
{
    if (cache->level->policy != SIM_NRU) {
        used->used = ++cache->clock;
        return;
    }
    if (used->used == 1)
        return; /* nothing changes: all are never set after an access */
    used->used = 1;
    for (unsigned way = 0; way < cache->level->ways; way++)
        if (set[way].used == 0)
            return;
    for (unsigned way = 0; way < cache->level->ways; way++)
        set[way].used = &set[way] == used ? 1 : 0;
}

static bool sim_access(struct sim_cache *cache, uint64_t page, struct rng *rng)
{
    struct sim_way *set = cache->ways + (size_t)set_of(cache, page) * cache->level->ways;

    for (unsigned way = 0; way < cache->level->ways; way++) {
        if (set[way].page == page) {
            mark_used(cache, set, &set[way]);
            return true;
        }
    }
    struct sim_way *victim = choose_victim(cache, set, rng);

    victim->page = page;
    mark_used(cache, set, victim);
    return false;
}

struct sim_tlb {
    const struct sim_processor *processor;
    struct sim_cache first, second;
};

struct sim_tlb *sim_tlb_new(const struct sim_processor *processor)
{
    struct sim_tlb *tlb = malloc(sizeof(*tlb));

    *tlb = (struct sim_tlb){processor, sim_cache_new(&processor->first), sim_cache_new(&processor->second)};
    return tlb;
}

void sim_tlb_free(struct sim_tlb *tlb)
{
    free(tlb->first.ways);
    free(tlb->second.ways);
    free(tlb);
}

void sim_tlb_flush(struct sim_tlb *tlb)
{
    memset(tlb->first.ways, 0, tlb->first.level->entries * sizeof(struct sim_way));
    memset(tlb->second.ways, 0, tlb->second.level->entries * sizeof(struct sim_way));
}

double sim_tlb_access(struct sim_tlb *tlb, uint64_t page, struct rng *rng)
{
    if (sim_access(&tlb->first, page, rng))
        return 0;
    return tlb->processor->second_hit_ns + (sim_access(&tlb->second, page, rng) ? 0 : tlb->processor->walk_ns);
}

double sim_normal(struct rng *rng)
{
    /* The sum of twelve uniform numbers is close to normal with variance one. */
    double normal = -6;

    for (unsigned draw = 0; draw < 12; draw++)
        normal += rng_unit(rng);
    return normal;
}

double sim_measure(const struct sim_processor *processor, uint64_t pages, uint64_t stride, struct rng *rng)
{
    struct sim_tlb *tlb = sim_tlb_new(processor);
    uint32_t *order = malloc((size_t)pages * sizeof(*order));
    uint64_t base = 1 + rng_below(rng, 1u << 30);
    double ns = 0;

    for (uint64_t page = 0; page < pages; page++)
        order[page] = (uint32_t)page;
    permutation_shuffle(order, (size_t)pages, rng);
    for (unsigned lap = 0; lap < WARM_LAPS + TIMED_LAPS; lap++) {
        for (uint64_t step = 0; step < pages; step++) {
            double cost = processor->hit_ns + sim_tlb_access(tlb, base + order[step] * stride, rng);

            ns += lap >= WARM_LAPS ? cost : 0;
        }
    }
    free(order);
    sim_tlb_free(tlb);
    return ns / (double)(TIMED_LAPS * pages);
}

struct knee_point sim_point(const struct sim_processor *processor, uint64_t pages, uint64_t stride,
                            const struct sim_noise *noise, struct rng *rng)
{
    double ns = sim_measure(processor, pages, stride, rng);

    ns *= 1 + noise->spread * sim_normal(rng);
    if (rng_unit(rng) < noise->outlier_share)
        ns *= 2;
    return (struct knee_point){.pages = pages, .ns = ns};
}
