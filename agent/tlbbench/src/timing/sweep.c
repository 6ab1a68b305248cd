/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/sweep.h"

#include "timing/guard.h"

enum {
    DISTURBED_TRIES = 4, /* per batch, before it counts as dropped for good */
    WARM_ACCESSES_MIN = 2048,
    WARM_LAPS = 2,    /* the first lap loads the caches and translations, the second warms up the replacement state */
    EXTRA_ROUNDS = 6, /* added while points lack quiet batches */
    RISE_POINTS = 3,  /* make a knee (knee.c) */
    SIBLING_WAIT_NS = 300000, /* for a SMT sibling to pause, before a point's batches */
};

/* Of all batches; above it the core is too busy for any number to be believed. */
#define DROPPED_SHARE_MAX 0.5
/* Above the lowest point by this share: a miss of the first level costs several times as much. */
#define RISEN_SHARE 0.05
/* Of a sweep's points; with fewer its shape is gone. */
#define KEPT_POINTS_SHARE_MIN 0.6

void sweep_add_point(struct sweep *sweep, uint64_t pages)
{
    size_t place = sweep->count;

    for (size_t index = 0; index < sweep->count; index++)
        if (sweep->cells[index].pages == pages)
            return;
    if (pages == 0 || sweep->count == SWEEP_POINTS_MAX)
        return;
    while (place > 0 && sweep->cells[place - 1].pages > pages) {
        sweep->cells[place] = sweep->cells[place - 1];
        place--;
    }
    memset(&sweep->cells[place], 0, sizeof(sweep->cells[place]));
    sweep->cells[place].pages = pages;
    sweep->count++;
}

/* Makes a cycle's translations and data the ones that TLBs and caches hold. Returns the switches so far: after one
 * more, another task's are there instead. */
static long warm_up(struct chase *chase, uint64_t pages)
{
    static long crowded_out; /* switches when other tasks' entries were last gone */
    uint64_t laps = WARM_LAPS * pages;

    (void)clock_thread_cpu_ns(); /* a switch that is due happens here (guard_begin()) */
    long switches = guard_switches();

    if (switches != crowded_out) {
        tlb_evict_foreign();
        crowded_out = switches;
    }
    tlb_flush();
    chase_walk(chase, laps > WARM_ACCESSES_MIN ? laps : WARM_ACCESSES_MIN);
    return switches;
}

static bool await_idle_sibling(struct sweep *sweep, const struct sweep_effort *effort)
{
    uint64_t start_ns = clock_now_ns();
    bool alone = smt_watch_sample(&sweep->watch);

    while (!alone && clock_now_ns() - start_ns < SIBLING_WAIT_NS &&
           (effort->end.end_ns == 0 || !deadline_passed(effort->end)))
        alone = smt_watch_sample(&sweep->watch);
    return alone;
}

static void time_side(struct sweep *sweep, struct sweep_samples *samples, struct chase chase, uint64_t pages,
                      const struct sweep_effort *effort)
{
    if (!await_idle_sibling(sweep, effort) && samples_all(samples) >= SWEEP_SAMPLES_MIN)
        return;
    long switches = warm_up(&chase, pages);

    if (samples->accesses == 0)
        samples->accesses = chase_batch_accesses(&chase, effort->batch_seconds);
    for (unsigned batch = 0; batch < effort->batches; batch++) {
        bool idle_before = false;
        bool quiet = false;
        double ns = NAN;

        for (unsigned try = 0; try < DISTURBED_TRIES && !quiet; try++) {
            if (guard_switches() != switches)
                switches = warm_up(&chase, pages);
            idle_before = smt_watch_sample(&sweep->watch);
            quiet = chase_time_batch(&chase, samples->accesses, &ns);
            samples->dropped += quiet ? 0 : 1;
        }
        if (quiet) {
            bool idle_after = smt_watch_sample(&sweep->watch);

            samples_keep(samples, ns, idle_before && idle_after);
        }
    }
}

static void summarise(struct sweep *sweep)
{
    for (size_t index = 0; index < sweep->count; index++) {
        struct sweep_cell *cell = &sweep->cells[index];

        samples_summarise(&cell->view);
        samples_summarise(&cell->packed);
    }
}

/* Kept batches that a point needs: a median's, or all that were requested. */
static size_t samples_needed(const struct sweep_effort *effort)
{
    size_t asked = (size_t)effort->rounds * effort->batches;

    return asked < SWEEP_SAMPLES_MIN ? asked : SWEEP_SAMPLES_MIN;
}

static bool lacks_samples(const struct sweep_cell *cell, size_t batches, bool control)
{
    return samples_all(&cell->view) < batches || (control && samples_all(&cell->packed) < batches);
}

/* Without a control that side has no batches, and lacks none. */
static bool lacks_idle(const struct sweep_cell *cell, size_t wanted)
{
    return samples_lack_idle(&cell->view, wanted) || samples_lack_idle(&cell->packed, wanted);
}

bool sweep_is_contended_at(const struct sweep_cell *cell)
{
    return lacks_idle(cell, SWEEP_IDLE_MIN);
}

bool sweep_is_contended_past(const struct sweep *sweep, uint64_t pages)
{
    unsigned looked = 0;

    for (size_t index = 0; index < sweep->count && looked < RISE_POINTS; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];

        if (cell->pages > pages) {
            if (sweep_is_contended_at(cell))
                return true;
            looked++;
        }
    }
    return false;
}

bool sweep_lacks_batches(const struct sweep *sweep, size_t batches, bool control)
{
    for (size_t index = 0; index < sweep->count; index++)
        if (lacks_samples(&sweep->cells[index], batches, control))
            return true;
    return false;
}

bool sweep_is_uncertain(const struct sweep *sweep)
{
    for (size_t index = 0; index < sweep->count; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];

        if (samples_are_uncertain(&cell->view) ||
            (samples_all(&cell->packed) > 0 && samples_are_uncertain(&cell->packed)))
            return true;
    }
    return false;
}

int sweep_give_up_points(struct sweep *sweep, size_t batches, bool control, struct verdict *verdict)
{
    size_t points = sweep->count;
    size_t kept = 0;

    for (size_t index = 0; index < points; index++) {
        const struct sweep_cell *cell = &sweep->cells[index];

        if (!lacks_samples(cell, batches, control)) {
            if (kept != index)
                sweep->cells[kept] = *cell;
            kept++;
        }
    }
    sweep->count = kept;
    if ((double)kept < KEPT_POINTS_SHARE_MIN * (double)points)
        return FAILED(verdict, STATUS_NOISY, "CPU contention: fewer than %zu quiet batches at %zu of %zu points",
                      batches, points - kept, points);
    return 0;
}

double sweep_dropped_share(const struct sweep *sweep)
{
    size_t kept = 0;
    size_t dropped = 0;

    for (size_t index = 0; index < sweep->count; index++) {
        kept += samples_all(&sweep->cells[index].view) + samples_all(&sweep->cells[index].packed);
        dropped += sweep->cells[index].view.dropped + sweep->cells[index].packed.dropped;
    }
    return kept + dropped > 0 ? (double)dropped / (double)(kept + dropped) : 0;
}

struct round {
    struct sweep *sweep;
    const struct sweep_source *source;
    const struct sweep_effort *effort;
    const struct session *session;
    uint32_t *order;
    uint32_t cells[SWEEP_POINTS_MAX]; /* to be measured, in this order */
    size_t count;
    bool gave_up; /* effort->last passed */
};

static double lowest(const struct sweep *sweep)
{
    double low = INFINITY;

    for (size_t index = 0; index < sweep->count; index++)
        low = fmin(low, samples_best(&sweep->cells[index].view));
    return low;
}

/* The cells that round `number` measures: all at first, then those that need more. A sibling only adds to a figure, so
 * a low one stands; it is where the sweep seems to rise that the sibling's part in it matters. */
static void choose_cells(struct round *round, unsigned number)
{
    const struct sweep_effort *effort = round->effort;
    unsigned planned = effort->rounds > effort->rounds_max ? effort->rounds : effort->rounds_max;
    bool patient = effort->end.end_ns != 0 && !deadline_passed(effort->end) &&
                   number < planned + EXTRA_ROUNDS + effort->smt_rounds;

    double risen_ns = (1 + RISEN_SHARE) * lowest(round->sweep);
    unsigned risen = 0;

    round->count = 0;
    for (size_t index = effort->from_cell; index < round->sweep->count; index++) {
        const struct sweep_cell *cell = &round->sweep->cells[index];
        bool uncertain = number < effort->rounds_max && (samples_are_uncertain(&cell->view) ||
                                                         (effort->control && samples_are_uncertain(&cell->packed)));

        bool lacking = number < planned + EXTRA_ROUNDS && lacks_samples(cell, samples_needed(effort), effort->control);

        risen += samples_best(&cell->view) > risen_ns ? 1 : 0;
        bool waits = patient && (lacks_idle(cell, effort->idle_wanted) ||
                                 (risen > 0 && risen <= RISE_POINTS && sweep_is_contended_at(cell)));

        if (number < effort->rounds || uncertain || lacking || waits)
            round->cells[round->count++] = (uint32_t)index;
    }
}

static int measure_round(struct round *round, unsigned number, struct verdict *verdict)
{
    const struct sweep_effort *effort = round->effort;
    struct rng rng = rng_new(round->session->seed, round->sweep->seed * 1000 + number);
    size_t counts[SWEEP_POINTS_MAX][2] = {{0}};
    struct steal_watch steal = steal_begin(round->session->cpu);
    size_t measured = 0;

    permutation_shuffle(round->cells, round->count, &rng);
    for (size_t step = 0; step < round->count && !round->gave_up; step++) {
        struct sweep_cell *cell = &round->sweep->cells[round->cells[step]];

        counts[round->cells[step]][0] = cell->view.count;
        counts[round->cells[step]][1] = cell->packed.count;
        if (session_must_stop(round->session, verdict))
            return -1;
        if (effort->control) {
            time_side(round->sweep, &cell->packed,
                      round->source->link(round->source->context, true, cell->pages, &rng, round->order), cell->pages,
                      effort);
        }
        time_side(round->sweep, &cell->view,
                  round->source->link(round->source->context, false, cell->pages, &rng, round->order), cell->pages,
                  effort);
        round->gave_up = effort->last.end_ns != 0 && deadline_passed(effort->last);
        measured++;
    }
    if (steal_excess_ns(&steal, 1) > 0) {
        for (size_t step = 0; step < measured; step++) {
            struct sweep_cell *cell = &round->sweep->cells[round->cells[step]];

            samples_drop_stolen(&cell->view, counts[round->cells[step]][0]);
            samples_drop_stolen(&cell->packed, counts[round->cells[step]][1]);
        }
    }
    return 0;
}

static int measure_rounds(struct round *round, struct verdict *verdict)
{
    const struct sweep_effort *effort = round->effort;
    uint64_t round_ns = 0;

    for (unsigned number = 0; !round->gave_up; number++) {
        uint64_t start_ns = clock_now_ns();

        bool is_late = effort->end.end_ns != 0 && start_ns + round_ns > effort->end.end_ns;

        choose_cells(round, number);
        if (round->count == 0 ||
            (is_late && !sweep_lacks_batches(round->sweep, samples_needed(effort), effort->control)))
            break;
        if (measure_round(round, number, verdict) != 0)
            return -1;
        round_ns = clock_now_ns() - start_ns;
    }
    return 0;
}

int sweep_measure(struct sweep *sweep, const struct sweep_source *source, const struct sweep_effort *effort,
                  const struct session *session, struct verdict *verdict)
{
    uint64_t longest = sweep->count > 0 ? sweep->cells[sweep->count - 1].pages : 0;
    struct round round = {.sweep = sweep,
                          .source = source,
                          .effort = effort,
                          .session = session,
                          .order = malloc((size_t)longest * sizeof(*round.order) + 1)};

    if (round.order == NULL)
        return FAILED(verdict, STATUS_NO_MEMORY, "no memory for the order of %" PRIu64 " pages", longest);
    int result = source->window != NULL ? window_map(source->window, longest, verdict) : 0;

    result = result == 0 ? measure_rounds(&round, verdict) : result;

    free(round.order);
    summarise(sweep);
    if (result == 0)
        result = sweep_give_up_points(sweep, samples_needed(effort), effort->control, verdict);
    double dropped = sweep_dropped_share(sweep);

    if (result == 0 && dropped > DROPPED_SHARE_MAX)
        return FAILED(verdict, STATUS_NOISY, "CPU contention: %.0f %% of the batches were disturbed", 100 * dropped);
    return result;
}

static struct chase link_window(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order)
{
    return (struct chase){.position = packed ? window_link_packed(context, pages, rng, order)
                                             : window_link_view(context, pages, rng, order)};
}

struct sweep_source sweep_of_window(struct window *window)
{
    return (struct sweep_source){.link = link_window, .context = window, .window = window};
}
