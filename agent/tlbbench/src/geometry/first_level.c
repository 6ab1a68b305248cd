/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first level: a coarse sweep, then fine ones around its knee with new access permutations. Interference can only
 * evict entries: another task, a SMT sibling of the core, an access permutation that the replacement does not like. So
 * one low figure at a number of pages proves that the level holds them, and the passes are read together; that there
 * are no more entries takes figures behind the knee that nothing disturbed, and two passes that say the same.
 */
#include "geometry/work.h"

enum {
    COARSE_PAGES_MIN = 4,
    COARSE_PAGES_MAX = 384, /* in distinct lines 24 KiB: inside every first-level data cache, with room for conflicts */
    WINDOW_PAGES = 2 * COARSE_PAGES_MAX,
    FINE_MARGIN_PAGES = 2,
    FINE_POINTS_MAX = 96,
    PASSES_MAX = 6,
    PASSES_NEEDED = 2,
    PASS_AGREEMENT_PAGES = 2,
    RISE_POINTS = 3, /* make a knee (knee.c) */
};

/* Of the time left to the part: the coarse sweep, then each pass. */
#define COARSE_SHARE 0.35
static const double PASS_SHARES[PASSES_MAX] = {0.4, 0.5, 0.5, 0.6, 0.7, 1.0};
/* Of the section's time left, for the last pass where a SMT sibling kept the core busy all the time: nothing else
 * can be measured without this level. */
#define SMT_PATIENCE 0.3

/* The best of all sweeps so far, by number of pages. */
struct evidence {
    double ratio[WINDOW_PAGES + 1];  /* to the lowest point of the same sweep, since the clock changes; 0 = no figure */
    bool unshared[WINDOW_PAGES + 1]; /* a figure comes from a core that no SMT sibling was busy on */
};

static double lowest_ns(const struct sweep *sweep)
{
    double low = INFINITY;

    for (size_t index = 0; index < sweep->count; index++)
        if (sweep->cells[index].view.stats.batches > 0)
            low = fmin(low, sweep->cells[index].view.stats.ns_min);
    return low;
}

static void add_sweep(struct evidence *evidence, const struct sweep *sweep)
{
    double low = lowest_ns(sweep);

    for (size_t index = 0; index < sweep->count; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];
        double ratio = cell->view.stats.ns_min / low;

        if (cell->pages > WINDOW_PAGES || cell->view.stats.batches == 0)
            continue;
        if (evidence->ratio[cell->pages] == 0 || ratio < evidence->ratio[cell->pages])
            evidence->ratio[cell->pages] = ratio;
        evidence->unshared[cell->pages] = evidence->unshared[cell->pages] || !sweep_is_contended_at(cell);
    }
}

static struct knee read_evidence(const struct evidence *evidence)
{
    struct knee_point points[WINDOW_PAGES];
    size_t count = 0;

    for (uint64_t pages = 1; pages <= WINDOW_PAGES; pages++)
        if (evidence->ratio[pages] > 0)
            points[count++] = (struct knee_point){.pages = pages, .ns = evidence->ratio[pages]};
    return knee_find(points, count, 1);
}

/* True when the rise behind the knee may be a sibling's making. */
static bool is_contended_past(const struct evidence *evidence, uint64_t knee)
{
    unsigned looked = 0;

    for (uint64_t pages = knee + 1; pages <= WINDOW_PAGES && looked < RISE_POINTS; pages++) {
        if (evidence->ratio[pages] > 0 && !evidence->unshared[pages])
            return true;
        looked += evidence->ratio[pages] > 0 ? 1 : 0;
    }
    return false;
}

/* Every number of pages between the coarse neighbours, behind five points of the plateau. Returns the knee of this
 * sweep by itself. */
static struct knee measure_fine(struct geometry_work *work, struct window *window, struct knee near, double share,
                                struct verdict *verdict)
{
    uint64_t first = near.pages > FINE_MARGIN_PAGES ? near.pages - FINE_MARGIN_PAGES : 1;
    /* One step further than the bracket: a disturbed point may have closed it too early. */
    uint64_t bracket = near.next_pages - near.pages;
    uint64_t last = near.next_pages + bracket + (near.pages / 8) + FINE_MARGIN_PAGES;
    uint64_t step = (last - first) / FINE_POINTS_MAX + 1;

    geometry_start_sweep(work);
    struct sweep_effort effort = geometry_effort(work, share);
    struct sweep_source source = sweep_of_window(window);

    for (uint64_t eighth = 3; eighth <= 7; eighth++)
        sweep_add_point(work->sweep, near.pages * eighth / 8);
    for (uint64_t pages = first; pages <= last && pages <= window->pages_max; pages += step)
        sweep_add_point(work->sweep, pages);
    if (sweep_measure(work->sweep, &source, &effort, work->session, verdict) != 0)
        return (struct knee){.verdict = KNEE_UNCLEAR};
    return geometry_read_knee(work);
}

/* How many passes found this knee, to `pages` pages. */
static unsigned count_passes(const uint64_t *knees, unsigned count, uint64_t knee, uint64_t pages)
{
    unsigned agreeing = 0;

    for (unsigned pass = 0; pass < count; pass++)
        agreeing += knees[pass] + pages >= knee && knees[pass] <= knee + pages ? 1 : 0;
    return agreeing;
}

/* Fine passes until two say what all say together, on a core that no SMT sibling shared. Returns false only when
 * stopped. */
static bool confirm_first_level(struct geometry_work *work, struct window *window, struct evidence *evidence,
                                struct geometry_first_level *found, struct verdict *verdict)
{
    struct knee knee = read_evidence(evidence);
    uint64_t knees[PASSES_MAX];
    unsigned count = 0;

    for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
        struct verdict pass_verdict = {.status = STATUS_OK};
        struct knee fine = measure_fine(work, window, knee, PASS_SHARES[pass], &pass_verdict);

        if (pass_verdict.status != STATUS_OK && pass_verdict.status != STATUS_NOISY) {
            *verdict = pass_verdict;
            return false;
        }
        if (pass_verdict.status == STATUS_OK)
            add_sweep(evidence, work->sweep);
        struct knee together = read_evidence(evidence);

        knee = together.verdict == KNEE_FOUND ? together : knee;
        if (fine.verdict == KNEE_FOUND && !sweep_is_contended_past(work->sweep, fine.pages))
            knees[count++] = fine.pages;
        if (count_passes(knees, count, knee.pages, 0) >= PASSES_NEEDED)
            break;
        if (pass + 2 == PASSES_MAX && count == 0)
            work->part_end = deadline_after(SMT_PATIENCE * deadline_remaining_seconds(work->session->deadline));
    }
    *found = (struct geometry_first_level){
        .entries = knee.pages,
        .entries_min = knee.pages - 1,
        .entries_max = knee.next_pages,
        .plateau_ns = lowest_ns(work->sweep),
        .agreed = count_passes(knees, count, knee.pages, work->contended ? 0 : PASS_AGREEMENT_PAGES) >= PASSES_NEEDED,
        .shared = is_contended_past(evidence, knee.pages),
    };
    return true;
}

static enum confidence first_level_confidence(const struct geometry_work *work,
                                              const struct geometry_first_level *found)
{
    uint64_t width = found->entries_max - found->entries_min;

    return !found->agreed || found->shared ? CONFIDENCE_LOW
           : width > 2 || work->contended  ? CONFIDENCE_MEDIUM
                                           : CONFIDENCE_HIGH;
}

static void store_first_level(struct geometry_work *work, const struct backing *backing,
                              const struct geometry_first_level *found)
{
    geometry_watch_core(work);
    geometry_note_hit(work, found->plateau_ns);
    /* Interference evicts entries: where passes differ for it, the largest of them is no upper end. */
    bool is_lower_bound = found->shared || (!found->agreed && work->contended);
    struct tlb_level level = {
        .level = 1,
        .kind = TLB_DATA,
        .page_bytes = backing->page_bytes,
        .entries = (unsigned)found->entries,
        .entries_min = (unsigned)found->entries_min,
        .entries_max = is_lower_bound ? COARSE_PAGES_MAX : (unsigned)found->entries_max,
        .ways = TLB_WAYS_UNKNOWN,
        .source = SOURCE_MEASURED,
        .confidence = first_level_confidence(work, found),
    };

    if (found->shared)
        (void)snprintf(level.note, sizeof(level.note), "a busy SMT sibling evicts entries: a lower bound");
    else if (!found->agreed)
        (void)snprintf(level.note, sizeof(level.note), "no two passes over single pages found the same knee");
    tlb_levels_add(&work->result->levels, &level);
}

/* The sweep up to COARSE_PAGES_MAX, waited for once where a SMT sibling kept the core busy around its knee. */
static int measure_coarse(struct geometry_work *work, struct window *window, struct knee *coarse,
                          struct verdict *verdict)
{
    double from = window->page_bytes > window->base_bytes ? 1 : COARSE_PAGES_MIN; /* some cores have 4 entries of 1G */

    geometry_start_sweep(work);
    geometry_add_points(work->sweep, from, COARSE_PAGES_MAX);
    struct sweep_effort effort = geometry_effort(work, COARSE_SHARE);
    struct sweep_source source = sweep_of_window(window);
    int status = sweep_measure(work->sweep, &source, &effort, work->session, verdict);

    *coarse = geometry_read_knee(work);
    if (status == 0 && coarse->verdict == KNEE_FOUND && sweep_is_contended_past(work->sweep, coarse->pages)) {
        work->part_end = deadline_after(SMT_PATIENCE * deadline_remaining_seconds(work->session->deadline));
        effort = geometry_effort(work, COARSE_SHARE);
        status = sweep_measure(work->sweep, &source, &effort, work->session, verdict);
        *coarse = geometry_read_knee(work);
    }
    return status;
}

static int sweep_first_level(struct geometry_work *work, struct window *window, const struct backing *backing,
                             struct geometry_first_level *found, struct verdict *verdict)
{
    struct evidence evidence = {{0}, {false}};
    struct knee coarse;
    char name[64];

    if (measure_coarse(work, window, &coarse, verdict) != 0)
        return -1;
    if (coarse.verdict == KNEE_NONE)
        verdict_set(verdict, STATUS_CANNOT_TELL, "%d pages of %s took no longer than a few: no first level was seen",
                    COARSE_PAGES_MAX, backing->name);
    (void)snprintf(name, sizeof(name), "geometry first level %s", backing->name);
    geometry_keep_curve(work, name, backing, false, geometry_layout_name(work), verdict);
    if (coarse.verdict == KNEE_NONE)
        return 0;
    if (coarse.verdict == KNEE_UNCLEAR)
        return FAILED(verdict, STATUS_NOISY, "no clear plateau in the first %d pages of %s", COARSE_PAGES_MAX,
                      backing->name);
    add_sweep(&evidence, work->sweep);
    if (!confirm_first_level(work, window, &evidence, found, verdict))
        return -1;
    (void)snprintf(name, sizeof(name), "geometry first-level knee %s", backing->name);
    geometry_keep_curve(work, name, backing, false, geometry_layout_name(work), verdict);
    store_first_level(work, backing, found);
    return 0;
}

int geometry_measure_first_level(struct geometry_work *work, const struct backing *backing,
                                 struct geometry_first_level *found, struct verdict *verdict)
{
    struct window window;

    *found = (struct geometry_first_level){0};
    if (geometry_open_window(work, backing, 1, WINDOW_PAGES, &window, verdict) != 0)
        return -1;
    int status = sweep_first_level(work, &window, backing, found, verdict);

    window_close(&window);
    if (status == 0 && backing->kind == BACKING_BASE)
        work->l1_entries = found->entries;
    return status;
}
