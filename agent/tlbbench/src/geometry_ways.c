/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the first level, from the knees at page strides that are powers of two. */
#include "geometry_steps.h"

#include <stdio.h>

enum { WAYS_STRIDES = 8 }; /* strides of 1 to 128 pages: enough for 128 sets */

static void add_ways_points(struct ladder *ladder, uint64_t entries, unsigned doublings)
{
    for (uint64_t pages = 1; pages <= 16; pages++) {
        ladder_add_point(ladder, pages);
    }
    geometry_add_points(ladder, 16, 1.3 * (double)entries);
    for (unsigned half = 0; half <= doublings; half++) {
        const uint64_t capacity = entries >> half;

        ladder_add_point(ladder, capacity);
        ladder_add_point(ladder, capacity + 1);
        ladder_add_point(ladder, capacity + 2);
    }
}

/* Knees at all strides. Disturbances only bring a knee down, so a second look keeps the larger one. */
static int measure_capacities(struct geometry_work *work, uint64_t capacity[WAYS_STRIDES], struct verdict *verdict)
{
    const struct backing base = {.kind = BACKING_BASE, .page_bytes = work->session->base_page_bytes};
    const size_t pages_max = (size_t)work->l1_entries * 3 / 2 + 16;
    struct ladder_effort effort = work->effort;

    geometry_spread_rounds(&effort, 1);
    effort.rounds = effort.rounds / 2 + 1;
    effort.batch_seconds /= 2;
    for (unsigned doublings = 1; doublings < WAYS_STRIDES; doublings++) {
        struct window window;

        if (geometry_open_window(work, &base, 1u << doublings, pages_max, &window, verdict) != 0) {
            return -1;
        }
        geometry_start_ladder(work);
        add_ways_points(work->ladder, work->l1_entries, doublings);
        const int status = ladder_measure_window(work->ladder, &window, &effort, work->session, verdict);
        const struct knee knee = geometry_read_knee(work, LADDER_MINIMUM);

        window_close(&window);
        if (status != 0) {
            return -1;
        }
        if (knee.verdict == KNEE_FOUND && knee.pages > capacity[doublings]) {
            capacity[doublings] = knee.pages;
        }
    }
    return 0;
}

int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict)
{
    struct tlb_level *const level = geometry_find_measured(work->result, 1, work->session->base_page_bytes);
    uint64_t capacity[WAYS_STRIDES] = {work->l1_entries};
    int ways = KNEE_WAYS_UNKNOWN;

    for (unsigned look = 0; look < 2 && ways == KNEE_WAYS_UNKNOWN; look++) {
        if (measure_capacities(work, capacity, verdict) != 0) {
            return -1;
        }
        ways = knee_find_ways(capacity, WAYS_STRIDES);
    }
    if (level != NULL) {
        level->ways = ways == KNEE_WAYS_FULL ? TLB_WAYS_FULL : ways;
        (void)snprintf(level->note, sizeof(level->note), "knee at page strides 1..128: %u %u %u %u %u %u %u %u",
                       (unsigned)capacity[0], (unsigned)capacity[1], (unsigned)capacity[2], (unsigned)capacity[3],
                       (unsigned)capacity[4], (unsigned)capacity[5], (unsigned)capacity[6], (unsigned)capacity[7]);
    }
    return 0;
}
