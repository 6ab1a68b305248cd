/* SPDX-License-Identifier: Apache-2.0 */
#include "tlb_simulator.h"

#include "base/rng.h"
#include "timing/knee.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_LAPS = 3, TIMED_LAPS = 2, NRU_WORDS = 2, NRU_WAYS_MAX = 64 * NRU_WORDS };

/* Ways are numbered through all sets; links and buckets hold a way's number plus one, 0 = none. */
struct sim_set {
    uint64_t referenced[NRU_WORDS]; /* NRU: a bit per way, */
    uint16_t reference_count;       /* and how many are set */
    uint16_t filled;
    uint16_t newest, oldest; /* LRU */
};

struct sim_cache {
    const struct sim_level *level;
    unsigned set_count, set_bits; /* a power of two: its logarithm, as a division takes longer than the other work */
    struct sim_set *sets;
    uint64_t *pages; /* of each way */
    uint16_t *newer, *older;
    /* Where a page is: a search through 96 ways per access would be most of a test's time. */
    uint16_t *buckets, *next_in_bucket;
    unsigned bucket_bits;
};

static struct sim_cache sim_cache_new(const struct sim_level *level)
{
    struct sim_cache cache = {.level = level, .set_count = level->entries / level->ways, .bucket_bits = 1};

    while (1u << cache.set_bits < cache.set_count)
        cache.set_bits++;
    assert(1u << cache.set_bits == cache.set_count);
    assert(level->entries < UINT16_MAX);
    assert(level->policy != SIM_NRU || level->ways <= NRU_WAYS_MAX);
    while (1u << cache.bucket_bits < 2 * level->entries)
        cache.bucket_bits++;
    cache.sets = calloc(cache.set_count, sizeof(*cache.sets));
    cache.pages = calloc(level->entries, sizeof(*cache.pages));
    cache.newer = calloc(level->entries, sizeof(*cache.newer));
    cache.older = calloc(level->entries, sizeof(*cache.older));
    cache.next_in_bucket = calloc(level->entries, sizeof(*cache.next_in_bucket));
    cache.buckets = calloc((size_t)1 << cache.bucket_bits, sizeof(*cache.buckets));
    return cache;
}

static void sim_cache_free(struct sim_cache *cache)
{
    free(cache->sets);
    free(cache->pages);
    free(cache->newer);
    free(cache->older);
    free(cache->next_in_bucket);
    free(cache->buckets);
}

static void sim_cache_flush(struct sim_cache *cache)
{
    memset(cache->sets, 0, cache->set_count * sizeof(*cache->sets));
    memset(cache->buckets, 0, ((size_t)1 << cache->bucket_bits) * sizeof(*cache->buckets));
}

static unsigned set_of(const struct sim_cache *cache, uint64_t page)
{
    uint64_t key = cache->level->hashed ? page ^ (page >> cache->set_bits) ^ (page >> 2 * cache->set_bits) : page;

    return (unsigned)(key & (cache->set_count - 1));
}

static uint16_t *bucket_of(const struct sim_cache *cache, uint64_t page)
{
    return &cache->buckets[(page * 0x9e3779b97f4a7c15u) >> (64 - cache->bucket_bits)];
}

static void forget(struct sim_cache *cache, unsigned way)
{
    uint16_t *link = bucket_of(cache, cache->pages[way]);

    while (*link != way + 1)
        link = &cache->next_in_bucket[*link - 1];
    *link = cache->next_in_bucket[way];
}

static void unlink_way(struct sim_cache *cache, struct sim_set *set, unsigned way)
{
    uint16_t newer = cache->newer[way], older = cache->older[way];

    *(newer == 0 ? &set->newest : &cache->older[newer - 1]) = older;
    *(older == 0 ? &set->oldest : &cache->newer[older - 1]) = newer;
}

static void link_newest(struct sim_cache *cache, struct sim_set *set, unsigned way)
{
    cache->newer[way] = 0;
    cache->older[way] = set->newest;
    *(set->newest == 0 ? &set->oldest : &cache->newer[set->newest - 1]) = (uint16_t)(way + 1);
    set->newest = (uint16_t)(way + 1);
}

/* An empty way, else the one that the policy gives up; it is out of the buckets and of the order of use. */
static unsigned take_way(struct sim_cache *cache, struct sim_set *set, struct rng *rng)
{
    unsigned ways = cache->level->ways, first = (unsigned)(set - cache->sets) * ways, victim;

    if (set->filled < ways)
        return first + set->filled++;
    if (cache->level->policy == SIM_RANDOM) {
        victim = first + (unsigned)rng_below(rng, ways);
    } else if (cache->level->policy == SIM_NRU) {
        unsigned word = set->referenced[0] == ~0ull; /* all are never set after an access */

        victim = first + 64 * word + (unsigned)__builtin_ctzll(~set->referenced[word]);
    } else {
        victim = set->oldest - 1u;
        unlink_way(cache, set, victim);
    }
    forget(cache, victim);
    return victim;
}

/* When all reference bits are set, all others are cleared. */
static void note_reference(const struct sim_cache *cache, struct sim_set *set, unsigned way)
{
    unsigned number = way - (unsigned)(set - cache->sets) * cache->level->ways;
    uint64_t bit = 1ull << number % 64;

    if (set->referenced[number / 64] & bit)
        return;
    if (++set->reference_count == cache->level->ways) {
        memset(set->referenced, 0, sizeof(set->referenced));
        set->reference_count = 1;
    }
    set->referenced[number / 64] |= bit;
}

static bool sim_access(struct sim_cache *cache, uint64_t page, struct rng *rng)
{
    struct sim_set *set = &cache->sets[set_of(cache, page)];
    uint16_t *bucket = bucket_of(cache, page);
    unsigned found = *bucket, way;

    while (found != 0 && cache->pages[found - 1] != page)
        found = cache->next_in_bucket[found - 1];
    if (found != 0) {
        way = found - 1;
        if (cache->level->policy == SIM_LRU && set->newest != found) {
            unlink_way(cache, set, way);
            link_newest(cache, set, way);
        }
    } else {
        way = take_way(cache, set, rng);
        cache->pages[way] = page;
        cache->next_in_bucket[way] = *bucket;
        *bucket = (uint16_t)(way + 1);
        if (cache->level->policy == SIM_LRU)
            link_newest(cache, set, way);
    }
    if (cache->level->policy == SIM_NRU)
        note_reference(cache, set, way);
    return found != 0;
}

struct sim_tlb {
    const struct sim_processor *processor;
    struct sim_cache first, second;
    struct sim_pages pages[SIM_PAGES_MAX];
    struct sim_cache large[SIM_PAGES_MAX]; /* first levels; entries 0 = the base pages' */
};

struct sim_tlb *sim_tlb_new(const struct sim_processor *processor)
{
    struct sim_tlb *tlb = malloc(sizeof(*tlb));

    *tlb = (struct sim_tlb){
        .processor = processor, .first = sim_cache_new(&processor->first), .second = sim_cache_new(&processor->second)};
    return tlb;
}

void sim_tlb_set_pages(struct sim_tlb *tlb, const struct sim_pages pages[SIM_PAGES_MAX])
{
    memcpy(tlb->pages, pages, sizeof(tlb->pages));
    for (unsigned index = 0; index < SIM_PAGES_MAX; index++)
        if (pages[index].first.entries > 0)
            tlb->large[index] = sim_cache_new(&tlb->pages[index].first);
}

void sim_tlb_free(struct sim_tlb *tlb)
{
    sim_cache_free(&tlb->first);
    sim_cache_free(&tlb->second);
    for (unsigned index = 0; index < SIM_PAGES_MAX; index++)
        sim_cache_free(&tlb->large[index]);
    free(tlb);
}

void sim_tlb_flush(struct sim_tlb *tlb)
{
    sim_cache_flush(&tlb->first);
    sim_cache_flush(&tlb->second);
    for (unsigned index = 0; index < SIM_PAGES_MAX; index++)
        if (tlb->large[index].level != NULL)
            sim_cache_flush(&tlb->large[index]);
}

double sim_tlb_access(struct sim_tlb *tlb, uint64_t page, struct rng *rng)
{
    if (sim_access(&tlb->first, page, rng))
        return 0;
    return tlb->processor->second_hit_ns + (sim_access(&tlb->second, page, rng) ? 0 : tlb->processor->walk_ns);
}

/* A number that no page of another size has, in the set of its lowest bits. */
static uint64_t piece_at(uint64_t address, uint64_t bytes)
{
    unsigned shift = (unsigned)__builtin_ctzll(bytes);

    return address >> shift | (uint64_t)shift << 56;
}

double sim_tlb_access_large(struct sim_tlb *tlb, unsigned index, uint64_t address, struct rng *rng)
{
    const struct sim_pages *pages = &tlb->pages[index];
    struct sim_cache *first = tlb->large[index].level != NULL ? &tlb->large[index] : &tlb->first;

    if (sim_access(first, piece_at(address, pages->first_bytes), rng))
        return 0;
    return tlb->processor->second_hit_ns +
           (sim_access(&tlb->second, piece_at(address, pages->second_bytes), rng) ? 0 : tlb->processor->walk_ns);
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
