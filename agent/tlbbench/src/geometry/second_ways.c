/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways of the second level, from the knees at page strides so wide that all pages fall into one set. Processors hash
 * many address bits to a set, so that the strides lie beyond all of them. The ways are told only where every stride
 * says the same and the level's interval holds that many of a power of two of sets. A first level that holds as many
 * pages of one set as the second leaves nothing to see.
 */
#include "geometry/work.h"

#include "base/text.h"

enum {
    FIRST_DOUBLINGS = 21, /* three times the seven bits that choose one of 128 sets */
    STRIDES = 3,
    PAGES_MAX = 40, /* no second level in the catalogue has more than 24 ways */
    SEEN_MIN = 3,   /* points between the end of the first level and of the second: a plateau (knee.c) */
};

/* Pages of one set that the second level holds, 0 = not to be seen. Negative when the part cannot go on. */
static int measure_set(struct geometry_work *work, unsigned doublings, double share, struct verdict *verdict)
{
    const struct backing *base = &work->session->backings[0];
    struct knee_point points[SWEEP_POINTS_MAX];
    struct window window;

    if (geometry_open_window(work, base, UINT64_C(1) << doublings, PAGES_MAX, &window, verdict) != 0)
        return 0; /* fewer addresses: a small address space or RLIMIT_AS */
    geometry_start_sweep(work);
    struct sweep_effort effort = geometry_effort(work, share);
    struct sweep_source source = sweep_of_window(&window);

    effort.rounds_max = 0; /* knees are read from minima */
    effort.batch_seconds /= 2;
    for (uint64_t pages = 1; pages <= PAGES_MAX; pages++)
        sweep_add_point(work->sweep, pages);
    int status = sweep_measure(work->sweep, &source, &effort, work->session, verdict);

    window_close(&window);
    if (status != 0)
        return verdict->status == STATUS_NOISY ? 0 : -1;
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
