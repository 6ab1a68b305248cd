/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the first level, from the knees at page strides that are powers of two. */
#include "geometry/work.h"

enum { PASSES_MAX = 6 };

static void add_ways_points(struct sweep *sweep, uint64_t entries, unsigned doublings)
{
    for (uint64_t pages = 1; pages <= 16; pages++)
        sweep_add_point(sweep, pages);
    geometry_add_points(sweep, 16, 1.3 * (double)entries);
    for (unsigned half = 0; half <= doublings; half++) {
        uint64_t capacity = entries >> half;

        sweep_add_point(sweep, capacity);
        sweep_add_point(sweep, capacity + 1);
        sweep_add_point(sweep, capacity + 2);
    }
}

/* The knee at one stride. Interference can only bring a knee down, so of several passes the largest counts. */
static int measure_capacity(struct geometry_work *work, unsigned doublings, double share, struct verdict *verdict)
{
    struct backing base = {.kind = BACKING_BASE, .page_bytes = work->session->base_page_bytes};
    size_t pages_max = (size_t)work->l1_entries * 3 / 2 + 16;
    struct window window;

    if (geometry_open_window(work, &base, 1u << doublings, pages_max, &window, verdict) != 0)
        return -1;
    geometry_start_sweep(work);
    struct sweep_effort effort = geometry_effort(work, share);
    struct sweep_source source = sweep_of_window(&window);

    effort.rounds_max = 0; /* the knee is read from minima */
    effort.batch_seconds /= 2;
    add_ways_points(work->sweep, work->l1_entries, doublings);
    int status = sweep_measure(work->sweep, &source, &effort, work->session, verdict);
    struct knee knee = geometry_read_knee(work);

    window_close(&window);
    if (status == 0 && knee.verdict == KNEE_FOUND && knee.pages > work->capacity[doublings])
        work->capacity[doublings] = knee.pages;
    return status;
}

static int find_ways(const struct geometry_work *work)
{
    return work->capacity[GEOMETRY_STRIDES - 1] > 0 ? knee_find_ways(work->capacity, GEOMETRY_STRIDES)
                                                    : KNEE_WAYS_UNKNOWN;
}

/* A stride that loses no entry shows what stride 1 lost to a disturbance. */
static void raise_first_level(struct geometry_work *work, struct tlb_level *level)
{
    for (unsigned doublings = 1; doublings < GEOMETRY_STRIDES; doublings++)
        if (work->capacity[doublings] > work->capacity[0])
            work->capacity[0] = work->capacity[doublings];
    if (work->capacity[0] > level->entries) {
        uint64_t end = work->capacity[0] + work->capacity[0] / 8;

        level->entries = (unsigned)work->capacity[0];
        level->entries_max = level->entries_max > end ? level->entries_max : (unsigned)end;
        level->confidence = CONFIDENCE_LOW;
        (void)snprintf(level->note, sizeof(level->note), "more entries than at stride 1: from wider page strides");
    }
}

static void store_ways(struct geometry_work *work)
{
    struct tlb_level *level = geometry_find_measured(work->result, 1, work->session->base_page_bytes);
    const uint64_t *capacity = work->capacity;

    if (level == NULL)
        return;
    raise_first_level(work, level);
    int ways = find_ways(work);

    level->ways = ways == KNEE_WAYS_FULL ? TLB_WAYS_FULL : ways;
    if (level->confidence == CONFIDENCE_LOW)
        return; /* its note says more */
    (void)snprintf(level->note, sizeof(level->note), "knee at page strides 1..128: %u %u %u %u %u %u %u %u",
                   (unsigned)capacity[0], (unsigned)capacity[1], (unsigned)capacity[2], (unsigned)capacity[3],
                   (unsigned)capacity[4], (unsigned)capacity[5], (unsigned)capacity[6], (unsigned)capacity[7]);
}

/* Strides whose knee another pass could still move: one as late as at stride 1 cannot be better. */
static unsigned open_strides(const struct geometry_work *work, unsigned from)
{
    unsigned open = 0;

    for (unsigned doublings = from; doublings < GEOMETRY_STRIDES; doublings++)
        open += work->capacity[doublings] < work->l1_entries ? 1 : 0;
    return open;
}

/* Measures every open stride once. Returns -1 when the part cannot go on. */
static int measure_strides(struct geometry_work *work, struct verdict *verdict)
{
    unsigned passes_left = PASSES_MAX - work->ways_passes;

    for (unsigned doublings = 1; doublings < GEOMETRY_STRIDES; doublings++) {
        unsigned open = open_strides(work, doublings);
        struct verdict stride_verdict = {.status = STATUS_OK};

        if (work->capacity[doublings] >= work->l1_entries)
            continue;
        /* A noisy sweep is one pass less; the next comes to this stride again. Most end before their time. */
        if (measure_capacity(work, doublings, fmin(1, 2.0 / (open * passes_left)), &stride_verdict) != 0 &&
            stride_verdict.status != STATUS_NOISY) {
            *verdict = stride_verdict;
            return -1;
        }
    }
    work->ways_passes++;
    return 0;
}

int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict)
{
    int ways = KNEE_WAYS_UNKNOWN;

    work->capacity[0] = work->l1_entries;
    while (ways == KNEE_WAYS_UNKNOWN && work->ways_passes < PASSES_MAX) {
        if (measure_strides(work, verdict) != 0)
            return -1;
        ways = find_ways(work);
        if (deadline_passed(work->part_end))
            break;
    }
    store_ways(work);
    /* Knees that interference brought down make the ways unknown; another pass takes what time the section has left. */
    return ways == KNEE_WAYS_UNKNOWN && work->ways_passes < PASSES_MAX ? 1 : 0;
}
