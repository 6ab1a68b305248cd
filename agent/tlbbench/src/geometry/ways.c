/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the levels, from the knees at page strides that are powers of two. */
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

/* Measures the sweep over base pages at a stride of 2^doublings pages, in short batches: its knees are read from
 * minima. */
static int sweep_stride(struct geometry_work *work, unsigned doublings, double share, struct verdict *verdict)
{
    size_t pages_max = (size_t)work->sweep->cells[work->sweep->count - 1].pages;
    struct window window;

    if (geometry_open_window(work, &work->session->backings[0], UINT64_C(1) << doublings, pages_max, &window,
                             verdict) != 0)
        return -1;
    struct sweep_effort effort = geometry_effort(work, share);
    struct sweep_source source = sweep_of_window(&window);

    effort.rounds_max = 0;
    effort.batch_seconds /= 2;
    int status = sweep_measure(work->sweep, &source, &effort, work->session, verdict);

    window_close(&window);
    return status;
}

/* The knee at one stride. Interference can only bring a knee down, so of several passes the largest counts. */
static int measure_capacity(struct geometry_work *work, unsigned doublings, double share, struct verdict *verdict)
{
    geometry_start_sweep(work);
    add_ways_points(work->sweep, work->l1_entries, doublings);
    int status = sweep_stride(work, doublings, share, verdict);
    struct knee knee = geometry_read_knee(work);

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

/*
 * Ways of the second level, from the knees at page strides so wide that all pages fall into one set. Processors hash
 * many address bits to a set, so that the strides lie beyond all of them. The ways are told only where every stride
 * says the same and the level's interval holds that many of a power of two of sets. A first level that holds as many
 * pages of one set as the second leaves nothing to see.
 */
enum {
    FIRST_DOUBLINGS = 21, /* three times the seven bits that choose one of 128 sets */
    STRIDES = 3,
    PAGES_MAX = 40, /* no second level in the catalogue has more than 24 ways */
    SEEN_MIN = 3,   /* points between the end of the first level and of the second: a plateau (knee.c) */
};

/* Pages of one set that the second level holds, 0 = not to be seen. Negative when the part cannot go on. */
static int measure_set(struct geometry_work *work, unsigned doublings, double share, struct verdict *verdict)
{
    struct knee_point points[SWEEP_POINTS_MAX];

    geometry_start_sweep(work);
    for (uint64_t pages = 1; pages <= PAGES_MAX; pages++)
        sweep_add_point(work->sweep, pages);
    if (sweep_stride(work, doublings, share, verdict) != 0) /* too few addresses, or noise: not to be seen */
        return verdict->status == STATUS_STOPPED ? -1 : 0;
    size_t count = sweep_knee_points(work->sweep, work->l1_hit_ns, points);
    struct knee first = knee_find(points, count, work->l1_hit_ns);

    if (first.verdict != KNEE_FOUND)
        return 0;
    struct knee_interval second = knee_find_interval(points, NULL, count, first.pages + 1);
    /* The plateau must be that of hits in the second level. */
    double hit_ns = second.plateau_ns - first.plateau_ns;
    bool is_hit = fabs(hit_ns - work->l2_penalty_ns) <= 0.5 * work->l2_penalty_ns;

    return second.verdict == KNEE_FOUND && is_hit && second.soft_start_pages >= first.pages + SEEN_MIN
               ? (int)second.soft_start_pages
               : 0;
}

/* Entries in so many ways of a power of two of sets, as far as the interval holds just one such number; else 0. */
static unsigned entries_of_ways(const struct tlb_level *level, unsigned ways)
{
    unsigned found = 0;

    for (unsigned entries = ways; entries <= level->entries_max; entries *= 2) {
        if (entries >= level->entries_min && found > 0)
            return 0;
        found = entries >= level->entries_min ? entries : found;
    }
    return found;
}

int geometry_measure_second_ways(struct geometry_work *work, struct verdict *verdict)
{
    const struct session *session = work->session;
    struct tlb_level *level = geometry_find_measured(work->result, 2, session->base_page_bytes);
    const struct tlb_level *first = geometry_find_measured(work->result, 1, session->base_page_bytes);
    int ways = 0;

    if (level == NULL || first == NULL || isnan(work->l2_penalty_ns))
        return 0;
    bool is_hidden = first->ways == TLB_WAYS_FULL && first->entries >= PAGES_MAX;

    for (unsigned stride = 0; stride < STRIDES && !is_hidden && (stride == 0 || ways > 0); stride++) {
        int found = measure_set(work, FIRST_DOUBLINGS + stride, 1.0 / (STRIDES - stride), verdict);

        if (found < 0)
            return -1;
        ways = stride == 0 || found == ways ? found : 0;
    }
    unsigned entries = ways > 0 ? entries_of_ways(level, (unsigned)ways) : 0;

    if (entries > 0) {
        level->ways = ways;
        level->entries = entries;
        return 0;
    }
    text_append(level->note, sizeof(level->note),
                is_hidden ? "; ways cannot be told (the first level hides them)" : "; ways cannot be told");
    return 0;
}
