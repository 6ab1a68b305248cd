/* SPDX-License-Identifier: Apache-2.0 */
/* The second level: a soft rise, read as an interval over several fresh mappings; and what misses cost. */
#include "geometry/work.h"

/* Constants that name no source: as in timing/knee.c. */
enum {
    SHORT_SWEEP_PAGES = 3072, /* shows a second level of 2048 entries whole */
    HIT_SWEEP_PAGES = 1100,   /* six steps past twice the largest first level; as a window 4.3 MiB of aliases */
    MAPPINGS = 5,             /* fresh ones that every point sees */
    MAPPINGS_MAX = 55,        /* for points whose median is uncertain after that */
    MAPPINGS_MIN = 3,         /* where time is short */
    HIT_CELLS = 5,
    FINE_POINTS = 8, /* between the soft start of the rise and its half: the estimate rests on where it passes 15 % */
};

/* The second plateau is clean from here on, also where the first level replaces at random. */
#define SECOND_PLATEAU_FROM 2
/* Whoever shares the core evicts entries that a cycle of thousands of pages does not win back within a batch: the rise
 * then appears softer and earlier than it is, also in the batches that ran undisturbed. */
#define DROPPED_SHARE_MAX 0.25
/* From here on the upper end of the interval is the end of the sweep, not the half of a rise that began too early. */
#define DROPPED_SHARE_WIDE 0.05
/* Of the half of the rise: sweeps that all end this far past it repeat what they say of the top. */
#define REACH 1.5
/* Of the soft start: by here every access misses, also where others take a fourth of the entries. */
#define REST_REACH 1.5
#define REST_STEP 1.06
/* A last step of the sweep that adds less than this share of the whole rise is past the steep part. */
#define STEEP_STEP_SHARE 0.15
/* Of an L1 hit's cycles from a whole number; beyond it the calibration was disturbed. */
#define WHOLE_CYCLE_ERROR 0.2

/* `hit_ns` is an L1 hit timed in the same rounds as `ns`: a hit takes a whole number of cycles, so their ratio gives
 * cycles whatever the clock did since the calibration. */
static double cycles_of(const struct geometry_work *work, double ns, double hit_ns)
{
    double hit_cycles = round(work->result->clock.l1_hit_cycles);

    return fabs(work->result->clock.l1_hit_cycles - hit_cycles) <= WHOLE_CYCLE_ERROR
               ? ns / hit_ns * hit_cycles
               : ns * work->result->clock.core_hz / 1e9;
}

static void add_penalty(struct geometry_work *work, const char *level, uint64_t page_bytes, double ns, double margin_ns,
                        double hit_ns)
{
    struct geometry_result *result = work->result;

    if (result->penalty_count == GEOMETRY_PENALTIES_MAX)
        return;
    result->penalties[result->penalty_count++] = (struct penalty){
        .level = level,
        .page_bytes = page_bytes,
        .ns = ns,
        .ns_min = fmax(0, ns - margin_ns),
        .ns_max = ns + margin_ns,
        .cycles = cycles_of(work, ns, hit_ns),
    };
}

/* Median of three MADs over the points of a range: how far a repeated median may fall. */
static double plateau_margin(const struct sweep *sweep, uint64_t from, uint64_t to)
{
    double margins[SWEEP_POINTS_MAX];
    size_t count = 0;

    for (size_t index = 0; index < sweep->count; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];

        if (cell->pages >= from && cell->pages <= to && cell->view.stats.batches > 0)
            margins[count++] = 3 * cell->view.stats.ns_mad;
    }
    return count > 0 ? statistics_median(margins, count) : NAN;
}

/* On a quiet core at most one point in six lies this far above its best: those of the soft rise. More of them say that
 * entries or page tables kept being lost, also where no batch was cut. What counts is whether the best was reached
 * again: of many batches by a tenth, of few by half. */
#define RESTLESS_EXCESS_SHARE 0.05
#define RESTLESS_POINTS_SHARE 0.25
#define MANY_BATCHES 30

static bool is_restless(const struct sweep *sweep)
{
    size_t restless = 0;

    for (size_t index = 0; index < sweep->count; index++) {
        const struct point_stats *stats = &sweep->cells[index].view.stats;

        double again_ns = stats->batches >= MANY_BATCHES ? stats->ns_p10 : stats->ns_p50;

        restless += again_ns > (1 + RESTLESS_EXCESS_SHARE) * stats->ns_min ? 1 : 0;
    }
    return (double)restless > RESTLESS_POINTS_SHARE * (double)sweep->count;
}

/* On a contended CPU points have few access permutations, and the best of few may still be a bad one. */
static bool is_disturbed(const struct geometry_work *work)
{
    return work->contended || sweep_dropped_share(work->sweep) > DROPPED_SHARE_WIDE || is_restless(work->sweep);
}

static void store_second_level(struct geometry_work *work, const struct backing *backing,
                               const struct knee_interval *found)
{
    struct tlb_level level = {
        .level = 2,
        .kind = TLB_DATA,
        .page_bytes = backing->page_bytes,
        .entries = (unsigned)found->estimate_pages,
        .entries_min = (unsigned)found->least_pages,
        .entries_max = (unsigned)found->most_pages,
        .ways = TLB_WAYS_UNKNOWN,
        .source = SOURCE_MEASURED,
    };
    double width = (double)found->half_rise_pages / (double)found->soft_start_pages;

    level.confidence = width <= 1.35 ? CONFIDENCE_HIGH : width <= 2.5 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
    (void)snprintf(level.note, sizeof(level.note), "the rise starts at %" PRIu64 " pages and is half done at %" PRIu64,
                   found->soft_start_pages, found->half_rise_pages);
    bool shared = sweep_is_contended_past(work->sweep, found->soft_start_pages);

    if (shared || is_disturbed(work)) {
        level.confidence = CONFIDENCE_LOW;
        level.entries_min = (unsigned)fmin(level.entries_min, (double)found->soft_start_pages);
        level.entries_max = (unsigned)work->sweep->cells[work->sweep->count - 1].pages;
        (void)snprintf(level.note, sizeof(level.note),
                       "%s disturbed the sweep: the interval goes from the soft start to the end of the sweep",
                       shared ? "a busy SMT sibling" : "other work");
    }
    tlb_levels_add(&work->result->levels, &level);
}

/* Where a sweep of the second level is measured: a window of distinct frames, or the zero page. */
struct level_sweep {
    const struct backing *backing;
    bool over_zeroes;
    size_t pages_max;
    double reach; /* pages of the longest cycle that every mapping measures */
    bool extends; /* longer and longer until the rise is over */
    uint64_t from;
    double rise_min_ns; /* of a rise that is worth the name: a walk costs more than the hit before it */
};

struct place {
    struct window window;
    struct zero_window zeroes;
};

/* An L1 hit of the same rounds, table and all: from the shortest cycles, several of them because the clock may change
 * from one to the next. */
static double sweep_hit_ns(const struct sweep *sweep)
{
    double hits[HIT_CELLS];
    size_t count = 0;

    while (count < HIT_CELLS && count < sweep->count) {
        hits[count] = sweep->cells[count].packed.stats.ns_min;
        count++;
    }
    return statistics_median(hits, count);
}

/* True when the sweep has climbed past the steep part of the rise, so that longer cycles add nothing but time. */
static bool rise_is_over(const struct geometry_work *work, const struct level_sweep *level_sweep)
{
    const struct sweep *sweep = work->sweep;
    struct knee_point points[SWEEP_POINTS_MAX];
    size_t count = sweep_knee_points(sweep, sweep_hit_ns(sweep), points);
    struct knee_interval found = sweep_find_interval(sweep, sweep_hit_ns(sweep), level_sweep->from);

    if (found.verdict != KNEE_FOUND || points[count - 1].ns - found.plateau_ns < level_sweep->rise_min_ns)
        return false;
    if ((double)points[count - 1].pages < REACH * (double)found.half_rise_pages)
        return false;
    double last_step = points[count - 1].ns - points[count - 2].ns;

    return last_step < STEEP_STEP_SHARE * (points[count - 1].ns - found.plateau_ns);
}

/* Finer steps where the rise is, once the first mappings have shown where that is. */
static void refine(const struct geometry_work *work, const struct level_sweep *level_sweep)
{
    struct knee_interval found = sweep_find_interval(work->sweep, sweep_hit_ns(work->sweep), level_sweep->from);

    if (found.verdict != KNEE_FOUND)
        return;
    uint64_t end = found.shelf_pages > 0 ? found.shelf_pages : found.half_rise_pages;
    double ratio = (double)end / (double)found.soft_start_pages;

    for (unsigned point = 1; point <= FINE_POINTS; point++)
        sweep_add_point(work->sweep, (uint64_t)llround((double)found.soft_start_pages *
                                                       pow(ratio, (double)point / (FINE_POINTS + 1))));
    /* Where the rise may come to rest: a rest is told by three points within a fifth of pages (knee.c). */
    long long last = llround(REST_REACH * (double)found.soft_start_pages);

    for (double pages = (double)end; llround(pages) < last; pages *= REST_STEP)
        sweep_add_point(work->sweep, (uint64_t)llround(pages));
}

static int sweep_place(struct geometry_work *work, const struct level_sweep *level_sweep, struct place *place,
                       const struct sweep_effort *effort, double *reach, struct verdict *verdict)
{
    struct sweep *sweep = work->sweep;
    struct sweep_source source = level_sweep->over_zeroes
                                     ? (struct sweep_source){.link = zero_window_link, .context = &place->zeroes}
                                     : sweep_of_window(&place->window);
    int status = sweep_measure(sweep, &source, effort, work->session, verdict);
    struct sweep_effort first_effort = *effort;

    first_effort.rounds = effort->rounds > 0 ? effort->rounds : effort->rounds_max;
    while (status == 0 && level_sweep->extends && !deadline_passed(effort->last) &&
           *reach * GEOMETRY_STEP <= (double)level_sweep->pages_max && !rise_is_over(work, level_sweep)) {
        *reach *= GEOMETRY_STEP;
        first_effort.from_cell = sweep->count;
        sweep_add_point(sweep, (uint64_t)llround(*reach));
        status = sweep_measure(sweep, &source, &first_effort, work->session, verdict);
    }
    return status;
}

/* The effort of one mapping: some rounds of every point at first, then of those that are uncertain. */
static struct sweep_effort effort_of_mapping(const struct sweep_effort *whole, bool contended, unsigned mapping)
{
    struct sweep_effort effort = *whole;
    unsigned rounds = contended ? 1 : (whole->rounds + MAPPINGS - 1) / MAPPINGS;

    effort.rounds = mapping < MAPPINGS ? rounds : 0;
    effort.rounds_max = mapping < MAPPINGS ? 0 : rounds;
    effort.smt_rounds = 0; /* another mapping is as good */
    return effort;
}

/* Measures the sweep, if it extends until its rise is over. Every mapping takes part in some conflict of its own
 * (addresses, page tables), so several fresh ones are measured and the best of each point counts. */
static int sweep_mappings(struct geometry_work *work, const struct level_sweep *level_sweep, double share,
                          struct verdict *verdict)
{
    const struct backing *backing = level_sweep->backing;
    double reach = fmin(level_sweep->reach, (double)level_sweep->pages_max);
    uint64_t longest_ns = 0;
    int status = 0;

    geometry_start_sweep(work);
    struct sweep_effort whole = geometry_effort(work, share);

    whole.control = true;
    geometry_add_points(work->sweep, (double)level_sweep->from, reach);
    reach = (double)work->sweep->cells[work->sweep->count - 1].pages;
    for (unsigned mapping = 0; status == 0 && mapping < 2 * MAPPINGS_MAX; mapping++) {
        uint64_t start_ns = clock_now_ns();
        /* The longest cycles are added when some mappings have been measured. */
        bool short_points = sweep_lacks_batches(work->sweep, MAPPINGS_MIN, true);
        bool late = start_ns + longest_ns > whole.end.end_ns;
        struct sweep_effort effort = effort_of_mapping(&whole, work->contended, mapping);
        struct place place = {.window = {.fd = -1}};
        bool enough = mapping >= MAPPINGS_MAX || (mapping >= MAPPINGS && !sweep_is_uncertain(work->sweep));

        if (mapping >= MAPPINGS_MIN && !short_points && (late || enough))
            break;
        if (mapping > 0 && deadline_passed(whole.last))
            break;
        effort.end = short_points ? whole.last : whole.end;
        if (session_must_stop(work->session, verdict))
            return -1;
        status = level_sweep->over_zeroes
                     ? zero_window_open(&place.zeroes, backing->page_bytes, level_sweep->pages_max, verdict)
                     : geometry_open_window(work, backing, 1, level_sweep->pages_max, &place.window, verdict);
        if (status != 0)
            return -1;
        work->sweep->seed = ++work->stream;
        status = sweep_place(work, level_sweep, &place, &effort, &reach, verdict);
        zero_window_close(&place.zeroes);
        window_close(&place.window);
        if (status == 0 && mapping == 0 && level_sweep->extends)
            refine(work, level_sweep);
        longest_ns = clock_now_ns() - start_ns > longest_ns ? clock_now_ns() - start_ns : longest_ns;
    }
    return status == 0 ? sweep_give_up_points(work->sweep, MAPPINGS_MIN, true, verdict) : status;
}

static int judge_sweep(const struct geometry_work *work, const struct level_sweep *level_sweep,
                       const struct knee_interval *found, struct verdict *verdict)
{
    if (sweep_dropped_share(work->sweep) > DROPPED_SHARE_MAX)
        return FAILED(verdict, STATUS_NOISY,
                      "CPU contention in %.0f %% of the batches: other work evicts second-level entries between them",
                      100 * sweep_dropped_share(work->sweep));
    if (found->verdict == KNEE_UNCLEAR)
        return FAILED(verdict, STATUS_NOISY, "no clear second plateau past %" PRIu64 " pages of %s", level_sweep->from,
                      level_sweep->backing->name);
    return 0;
}

static void keep_curves(struct geometry_work *work, const struct level_sweep *level_sweep, const char *what,
                        const struct verdict *verdict)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "geometry %s %s", what, level_sweep->backing->name);
    geometry_keep_curve(work, name, level_sweep->backing, false,
                        level_sweep->over_zeroes ? "zeroes" : geometry_layout_name(work), verdict);
    (void)snprintf(name, sizeof(name), "geometry %s %s, control", what, level_sweep->backing->name);
    geometry_keep_curve(work, name, level_sweep->backing, true, "packed", verdict);
}

static void store_hit(struct geometry_work *work, const struct level_sweep *level_sweep,
                      const struct knee_interval *found, double first_plateau_ns)
{
    double penalty_ns = found->plateau_ns - first_plateau_ns;

    add_penalty(work, "l2_hit", level_sweep->backing->page_bytes, penalty_ns,
                plateau_margin(work->sweep, level_sweep->from, found->soft_start_pages), sweep_hit_ns(work->sweep));
    if (level_sweep->backing->kind == BACKING_BASE)
        work->l2_penalty_ns = penalty_ns;
}

/* Base pages: the plateau of a short sweep over a window, where pages have lines of their own, says what a hit costs.
 * The zero page then show where the level ends, however long that takes. */
int geometry_measure_hit(struct geometry_work *work, struct verdict *verdict)
{
    const struct backing *backing = &work->session->backings[0];
    uint64_t from = SECOND_PLATEAU_FROM * work->first.entries;
    struct level_sweep hit = {.backing = backing,
                              .pages_max = geometry_pages_max(backing),
                              .reach = fmax(HIT_SWEEP_PAGES, 4.0 * (double)from),
                              .from = from};

    if (sweep_mappings(work, &hit, 1, verdict) != 0)
        return -1;
    keep_curves(work, &hit, "second-level hit", verdict);
    struct knee_interval found = sweep_find_interval(work->sweep, work->first.plateau_ns, hit.from);

    if (judge_sweep(work, &hit, &found, verdict) != 0)
        return -1;
    work->second_hit_ns = sweep_hit_ns(work->sweep);
    geometry_note_hit(work, work->second_hit_ns);
    store_hit(work, &hit, &found, work->first.plateau_ns);
    return 0;
}

int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing,
                                  const struct geometry_first_level *first, struct verdict *verdict)
{
    bool whole = work->session->full;
    bool over_zeroes = backing->kind == BACKING_BASE;
    size_t pages_max = geometry_pages_max(backing);
    struct level_sweep level_sweep = {.backing = backing,
                                      .over_zeroes = over_zeroes,
                                      .pages_max = pages_max,
                                      .reach = whole ? (double)pages_max : SHORT_SWEEP_PAGES,
                                      .extends = true,
                                      .from = SECOND_PLATEAU_FROM * first->entries,
                                      .rise_min_ns =
                                          over_zeroes && !isnan(work->l2_penalty_ns) ? work->l2_penalty_ns : 0};

    if (sweep_mappings(work, &level_sweep, 1, verdict) != 0)
        return -1;
    geometry_watch_core(work);
    double base_ns = over_zeroes ? sweep_hit_ns(work->sweep) : first->plateau_ns;
    struct knee_interval found = sweep_find_interval(work->sweep, base_ns, level_sweep.from);

    if (found.verdict == KNEE_NONE)
        verdict_set(verdict, STATUS_CANNOT_TELL, "no second level of %s ended within %" PRIu64 " pages", backing->name,
                    work->sweep->cells[work->sweep->count - 1].pages);
    keep_curves(work, &level_sweep, "second level", verdict);
    if (judge_sweep(work, &level_sweep, &found, verdict) != 0)
        return -1;
    if (!over_zeroes)
        store_hit(work, &level_sweep, &found, first->plateau_ns);
    if (found.verdict == KNEE_NONE && is_disturbed(work))
        return FAILED(verdict, STATUS_NOISY,
                      "other work disturbed the sweep: the end of the second level was not visible");
    if (found.verdict == KNEE_NONE)
        return 0;
    /* A miss costs what it adds to a hit of the second level, and that hit. */
    double hit_penalty_ns = over_zeroes ? work->l2_penalty_ns : found.plateau_ns - first->plateau_ns;

    if (!isnan(hit_penalty_ns)) {
        add_penalty(work, "walk", backing->page_bytes, found.top_ns - found.plateau_ns + hit_penalty_ns,
                    plateau_margin(work->sweep, found.half_rise_pages, UINT64_MAX),
                    over_zeroes ? work->second_hit_ns : sweep_hit_ns(work->sweep));
    }
    store_second_level(work, backing, &found);
    return 0;
}
