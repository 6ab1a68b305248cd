/* SPDX-License-Identifier: Apache-2.0 */
#include "base/permutation.h"
#include "base/rng.h"
#include "base/units.h"
#include "latency/result.h"
#include "latency/series.h"

struct nodes {
    char *base;
    uint64_t page_bytes; /* CACHE_LINE_BYTES for the dense layouts */
    uint64_t seed;
};

static char *node_at(const struct nodes *nodes, uint64_t index)
{
    uint64_t lines = nodes->page_bytes / CACHE_LINE_BYTES;
    uint64_t line = lines > 1 ? rng_mix(nodes->seed ^ index) % lines : 0;

    return nodes->base + index * nodes->page_bytes + line * CACHE_LINE_BYTES;
}

void latency_visit(char *base, uint64_t footprint, uint64_t base_page_bytes, enum latency_curve layout, uint64_t seed)
{
    uint64_t count = footprint / (layout == LAYOUT_RANDOM_64B ? CACHE_LINE_BYTES : base_page_bytes);
    struct nodes nodes = {base, layout == LAYOUT_LINE_PER_PAGE ? base_page_bytes : CACHE_LINE_BYTES, seed};

    for (uint64_t index = 0; index < count; index++)
        (void)*(volatile const char *)node_at(&nodes, index);
}

void *latency_link(char *base, uint64_t footprint, uint64_t base_page_bytes, enum latency_curve layout, uint64_t seed)
{
    uint64_t count = footprint / (layout == LAYOUT_RANDOM_64B ? CACHE_LINE_BYTES : base_page_bytes);
    struct nodes nodes = {base, layout == LAYOUT_LINE_PER_PAGE ? base_page_bytes : CACHE_LINE_BYTES, seed};
    struct permutation permutation = permutation_new(count, seed);
    char *first = node_at(&nodes, permutation_at(&permutation, 0));
    char *node = first;

    for (uint64_t index = 1; index < count; index++) {
        char *next = node_at(&nodes, permutation_at(&permutation, index));

        *(char **)node = next;
        node = next;
    }
    *(char **)node = first;
    return first;
}
