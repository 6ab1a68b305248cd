/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "pressure/probe.h"
#include "pressure/series.h"

/* Set by hand: at least twice most last caches; region_bytes() doubles it for a larger one, up to the second. */
#define REGION_BYTES (512 * MIB)
#define REGION_MAX_BYTES GIB
#define REGION_MIN_BYTES (16 * MIB)
#define FOOTPRINT_MIN_BYTES (16 * MIB)

/* With nothing between, the walk needs long to fill the caches. */
const struct pressure_depth PRESSURE_DEPTH[PRESSURE_DEPTHS] = {
    {0, 0, 2}, {16, 0, 1}, {64, 0, 1}, {256, 0, 2}, {1024, 0, 4}, {16, 2000, 2}, {16, 8000, 3}, {16, 20000, 5},
};

/* Bits of struct pressure_plan. */
enum {
    FULL_FOOTPRINTS = 1u << 1 | 1u << 3 | 1u << 5 | 1u << 7, /* 32, 128, 512 MiB, 2 GiB */
    QUICK_FOOTPRINTS = 1u << 2 | 1u << 5,                    /* 64, 512 MiB */
    FULL_DEPTHS = 0xff,
    QUICK_DEPTHS = 0xfd, /* not 16 without a wait */
};

/* Larger footprints have no page-table line in a cache after any of the waits. */
#define WAIT_FOOTPRINT_MAX_BYTES (512 * MIB)

/* Replacement is not exact: one visit of as many lines as the cache has leaves some of the old ones. */
#define WARM_CACHES 1.5

uint64_t pressure_footprint(size_t index)
{
    return FOOTPRINT_MIN_BYTES << index;
}

/* Twice the last cache, so that most of its lines are somewhere else; a quarter of the memory allowed at most. */
static uint64_t region_bytes(uint64_t memory_bytes, uint64_t last_cache_bytes)
{
    uint64_t wanted = REGION_BYTES;

    while (wanted < 2 * last_cache_bytes && wanted < REGION_MAX_BYTES)
        wanted *= 2;
    while (wanted > memory_bytes / 4)
        wanted /= 2;
    return wanted < REGION_MIN_BYTES || wanted < last_cache_bytes ? 0 : wanted;
}

struct pressure_plan pressure_make_plan(bool full, uint64_t memory_bytes, uint64_t last_cache_bytes)
{
    struct pressure_plan plan = {
        .region_bytes = region_bytes(memory_bytes, last_cache_bytes),
        .footprint_mask = full ? FULL_FOOTPRINTS : QUICK_FOOTPRINTS,
        .depth_mask = full ? FULL_DEPTHS : QUICK_DEPTHS,
        .mappings = full ? 6 : 3,
        .passes = 2,
        .accesses = full ? 8000 : 5000,
        .warm_lines = (uint64_t)(WARM_CACHES * (double)last_cache_bytes) / CACHE_LINE_BYTES,
    };

    for (size_t index = 0; index < PRESSURE_FOOTPRINTS && plan.region_bytes > 0; index++)
        if (2 * pressure_footprint(index) + plan.region_bytes <= memory_bytes)
            plan.base_bytes = pressure_footprint(index);
    return plan;
}

uint64_t pressure_largest_footprint(const struct pressure_plan *plan, uint64_t memory_bytes, uint64_t page_bytes,
                                    uint64_t pool_bytes)
{
    uint64_t largest = 0;

    for (size_t index = 0; index < PRESSURE_FOOTPRINTS; index++) {
        uint64_t footprint = pressure_footprint(index);
        uint64_t mapped = (footprint + page_bytes - 1) / page_bytes * page_bytes;

        if (footprint <= plan->base_bytes && mapped <= pool_bytes &&
            mapped + plan->base_bytes + plan->region_bytes <= memory_bytes)
            largest = footprint;
    }
    return largest;
}

bool pressure_plan_has(const struct pressure_plan *plan, const struct pressure_series *series, size_t footprint,
                       size_t depth)
{
    uint64_t bytes = pressure_footprint(footprint);

    return (plan->depth_mask >> depth & 1) != 0 &&
           (PRESSURE_DEPTH[depth].wait_ns == 0 || bytes <= WAIT_FOOTPRINT_MAX_BYTES) &&
           (bytes == series->bytes || (bytes < series->bytes && (plan->footprint_mask >> footprint & 1) != 0));
}
