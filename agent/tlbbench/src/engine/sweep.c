/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sweep.h"

#include "base/clock.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "base/verdict.h"
#include "engine/chase.h"
#include "engine/guard.h"
#include "engine/session.h"
#include "engine/smt_watch.h"
#include "engine/steal.h"
#include "engine/sweep_samples.h"
#include "engine/tlb_flush.h"
#include "engine/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DISTURBED_TRIES = 4, /* per batch, before it counts as dropped for good */
    WARM_ACCESSES_MIN = 2048,
    WARM_LAPS = 2,          /* the first lap loads the caches and translations, the second settles replacement */
    EXTRA_ROUNDS = 6,       /* added while points lack quiet batches */
    RISE_POINTS = 3,        /* make a knee (knee.c) */
    ALONE_WAIT_NS = 300000, /* for a sibling thread to pause, before a point's batches */
};

/* Of all batches; above it the core is too busy for any number to be believed. */
#define DROPPED_SHARE_MAX 0.5
/* Above the lowest point by this share: a miss of the first level costs several times as much. */
#define RISEN_SHARE 0.05
/* Of a ladder's points; with fewer its shape is gone. */
#define KEPT_POINTS_SHARE_MIN 0.6

void ladder_add_point(struct ladder *ladder, uint64_t pages)
{
    size_t place = ladder->count;

    for (size_t index = 0; index < ladder->count; index++) {
        if (ladder->cells[index].pages == pages) {
            return;
        }
    }
    if (pages == 0 || ladder->count == LADDER_POINTS_MAX) {
        return;
    }
    while (place > 0 && ladder->cells[place - 1].pages > pages) {
        ladder->cells[place] = ladder->cells[place - 1];
        place--;
    }
    memset(&ladder->cells[place], 0, sizeof(ladder->cells[place]));
    ladder->cells[place].pages = pages;
    ladder->count++;
}

/* Makes a cycle's translations and data the ones that TLBs and caches hold. Returns the switches so far: after one
 * more, another task's are there instead. */
static long settle(struct chase *chase, uint64_t pages)
{
    static long crowded_out; /* switches when other tasks' entries were last gone */
    const uint64_t laps = WARM_LAPS * pages;

    (void)timing_thread_cpu_ns(); /* a switch that is due happens here (timing_guard_begin()) */
    const long switches = timing_switches();

    if (switches != crowded_out) {
        translations_crowd_out();
        crowded_out = switches;
    }
    translations_drop();
    chase_walk(chase, laps > WARM_ACCESSES_MIN ? laps : WARM_ACCESSES_MIN);
    return switches;
}

/* Waits a little for the core to be unshared. */
static bool await_alone(struct ladder *ladder, const struct ladder_effort *effort)
{
    const uint64_t start_ns = timing_now_ns();
    bool alone = core_watch_look(&ladder->watch);

    while (!alone && timing_now_ns() - start_ns < ALONE_WAIT_NS &&
           (effort->end.end_ns == 0 || !deadline_passed(effort->end))) {
        alone = core_watch_look(&ladder->watch);
    }
    return alone;
}

static void time_side(struct ladder *ladder, struct ladder_samples *samples, struct chase chase, uint64_t pages,
                      const struct ladder_effort *effort)
{
    bool alone = await_alone(ladder, effort);

    if (!alone && samples_answer(samples)) {
        return;
    }
    long switches = settle(&chase, pages);

    if (samples->accesses == 0) {
        samples->accesses = chase_batch_accesses(&chase, effort->batch_seconds);
    }
    for (unsigned batch = 0; batch < effort->batches; batch++) {
        bool quiet = false;
        double ns = NAN;

        for (unsigned try = 0; try < DISTURBED_TRIES && !quiet; try++) {
            if (timing_switches() != switches) {
                switches = settle(&chase, pages);
            }
            quiet = chase_time_batch(&chase, samples->accesses, &ns);
            samples->dropped += quiet ? 0 : 1;
        }
        if (quiet) {
            const bool alone_after = core_watch_look(&ladder->watch);

            samples_keep(samples, ns, alone && alone_after);
            alone = alone_after;
        }
    }
}

static void summarise(struct ladder *ladder)
{
    for (size_t index = 0; index < ladder->count; index++) {
        struct ladder_cell *const cell = &ladder->cells[index];

        samples_summarise(&cell->view);
        samples_summarise(&cell->packed);
    }
}

/* Kept batches that a point needs: a median's, or all that were asked for. */
static size_t samples_needed(const struct ladder_effort *effort)
{
    const size_t asked = (size_t)effort->rounds * effort->batches;

    return asked < LADDER_SAMPLES_MIN ? asked : LADDER_SAMPLES_MIN;
}

static bool lacks_samples(const struct ladder_cell *cell, size_t batches, bool control)
{
    return samples_all(&cell->view) < batches || (control && samples_all(&cell->packed) < batches);
}

/* True when the point's figures come from a shared core. */
static bool is_shared(const struct ladder_cell *cell, bool control)
{
    return (cell->view.count < LADDER_ALONE_MIN && cell->view.shared_count > 0) ||
           (control && cell->packed.count < LADDER_ALONE_MIN && cell->packed.shared_count > 0);
}

static bool lacks_alone(const struct ladder_cell *cell, const struct ladder_effort *effort)
{
    return samples_lack_alone(&cell->view, effort->alone_wanted) ||
           (effort->control && samples_lack_alone(&cell->packed, effort->alone_wanted));
}

bool ladder_is_shared_at(const struct ladder_cell *cell)
{
    return is_shared(cell, true);
}

bool ladder_is_shared_past(const struct ladder *ladder, uint64_t pages)
{
    unsigned looked = 0;

    for (size_t index = 0; index < ladder->count && looked < RISE_POINTS; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        if (cell->pages > pages) {
            if (is_shared(cell, true)) {
                return true;
            }
            looked++;
        }
    }
    return false;
}

bool ladder_lacks_batches(const struct ladder *ladder, size_t batches, bool control)
{
    for (size_t index = 0; index < ladder->count; index++) {
        if (lacks_samples(&ladder->cells[index], batches, control)) {
            return true;
        }
    }
    return false;
}

bool ladder_is_uncertain(const struct ladder *ladder)
{
    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        if (samples_are_uncertain(&cell->view) ||
            (samples_all(&cell->packed) > 0 && samples_are_uncertain(&cell->packed))) {
            return true;
        }
    }
    return false;
}

int ladder_give_up_points(struct ladder *ladder, size_t batches, bool control, struct verdict *verdict)
{
    const size_t points = ladder->count;
    size_t kept = 0;

    for (size_t index = 0; index < points; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        if (!lacks_samples(cell, batches, control)) {
            if (kept != index) {
                ladder->cells[kept] = *cell;
            }
            kept++;
        }
    }
    ladder->count = kept;
    if ((double)kept < KEPT_POINTS_SHARE_MIN * (double)points) {
        verdict_set(verdict, STATUS_NOISY,
                    "other work held the core: fewer than %zu quiet batches at %zu of %zu points", batches,
                    points - kept, points);
        return -1;
    }
    return 0;
}

double ladder_dropped_share(const struct ladder *ladder)
{
    size_t kept = 0;
    size_t dropped = 0;

    for (size_t index = 0; index < ladder->count; index++) {
        kept += ladder->cells[index].view.count + ladder->cells[index].view.shared_count;
        kept += ladder->cells[index].packed.count + ladder->cells[index].packed.shared_count;
        dropped += ladder->cells[index].view.dropped + ladder->cells[index].packed.dropped;
    }
    return kept + dropped > 0 ? (double)dropped / (double)(kept + dropped) : 0;
}

static int judge_noise(const struct ladder *ladder, struct verdict *verdict)
{
    const double dropped = ladder_dropped_share(ladder);

    if (dropped > DROPPED_SHARE_MAX) {
        verdict_set(verdict, STATUS_NOISY, "other work held the core: %.0f %% of the batches disturbed", 100 * dropped);
        return -1;
    }
    return 0;
}

/* Hypervisor steal that the guest's own clocks do not show: more than this share of a round spoils the round. */
#define STEAL_SHARE_MAX 0.02

static bool stolen_round(uint64_t ticks_before, uint64_t start_ns, int cpu)
{
    const double ns_per_tick = 1e7; /* USER_HZ is 100 on every architecture here */
    const double stolen = (double)(timing_steal_ticks(cpu) - ticks_before) * ns_per_tick;

    /* One tick may round up a stall of microseconds. */
    return stolen > ns_per_tick && stolen > STEAL_SHARE_MAX * (double)(timing_now_ns() - start_ns);
}

struct round {
    struct ladder *ladder;
    ladder_link *link;
    void *context;
    const struct ladder_effort *effort;
    const struct session *session;
    uint32_t *order;
    uint32_t cells[LADDER_POINTS_MAX]; /* to be measured, in this order */
    size_t count;
    bool gave_up; /* effort->last passed */
};

static double lowest(const struct ladder *ladder)
{
    double low = INFINITY;

    for (size_t index = 0; index < ladder->count; index++) {
        low = fmin(low, samples_best(&ladder->cells[index].view));
    }
    return low;
}

/* The cells that round `number` measures: all at first, then those that need more. A sibling only adds to a figure, so
 * a low one stands; it is where the ladder seems to rise that the sibling's part in it matters. */
static void choose_cells(struct round *round, size_t first_cell, unsigned number)
{
    const struct ladder_effort *const effort = round->effort;
    const unsigned planned = effort->rounds > effort->rounds_max ? effort->rounds : effort->rounds_max;
    const bool patient = effort->end.end_ns != 0 && !deadline_passed(effort->end) &&
                         number < planned + EXTRA_ROUNDS + effort->alone_rounds;

    const double risen_ns = (1 + RISEN_SHARE) * lowest(round->ladder);
    unsigned risen = 0;

    round->count = 0;
    for (size_t index = first_cell; index < round->ladder->count; index++) {
        const struct ladder_cell *const cell = &round->ladder->cells[index];
        const bool uncertain =
            number < effort->rounds_max &&
            (samples_are_uncertain(&cell->view) || (effort->control && samples_are_uncertain(&cell->packed)));

        const bool lacking =
            number < planned + EXTRA_ROUNDS && lacks_samples(cell, samples_needed(effort), effort->control);

        risen += samples_best(&cell->view) > risen_ns ? 1 : 0;
        const bool waits = patient && (lacks_alone(cell, effort) ||
                                       (risen > 0 && risen <= RISE_POINTS && is_shared(cell, effort->control)));

        if (number < effort->rounds || uncertain || lacking || waits) {
            round->cells[round->count++] = (uint32_t)index;
        }
    }
}

static int measure_round(struct round *round, unsigned number, struct verdict *verdict)
{
    const struct ladder_effort *const effort = round->effort;
    struct rng rng = rng_new(round->session->seed, round->ladder->seed * 1000 + number);
    size_t counts[LADDER_POINTS_MAX][2] = {{0}};
    const uint64_t ticks = timing_steal_ticks(round->session->cpu);
    const uint64_t start_ns = timing_now_ns();

    size_t measured = 0;

    chase_shuffle(round->cells, round->count, &rng);
    for (size_t step = 0; step < round->count && !round->gave_up; step++) {
        struct ladder_cell *const cell = &round->ladder->cells[round->cells[step]];

        counts[round->cells[step]][0] = cell->view.count;
        counts[round->cells[step]][1] = cell->packed.count;
        if (session_must_stop(round->session, verdict)) {
            return -1;
        }
        if (effort->control) {
            time_side(round->ladder, &cell->packed, round->link(round->context, true, cell->pages, &rng, round->order),
                      cell->pages, effort);
        }
        time_side(round->ladder, &cell->view, round->link(round->context, false, cell->pages, &rng, round->order),
                  cell->pages, effort);
        round->gave_up = effort->last.end_ns != 0 && deadline_passed(effort->last);
        measured++;
    }
    if (stolen_round(ticks, start_ns, round->session->cpu)) {
        for (size_t step = 0; step < measured; step++) {
            struct ladder_cell *const cell = &round->ladder->cells[round->cells[step]];

            samples_drop_stolen(&cell->view, counts[round->cells[step]][0]);
            samples_drop_stolen(&cell->packed, counts[round->cells[step]][1]);
        }
    }
    return 0;
}

/* True when another round like the last would end too late. */
static bool time_is_up(const struct ladder_effort *effort, uint64_t round_ns)
{
    return effort->end.end_ns != 0 && timing_now_ns() + round_ns > effort->end.end_ns;
}

static int measure_rounds(struct round *round, size_t first_cell, struct verdict *verdict)
{
    const struct ladder_effort *const effort = round->effort;
    uint64_t round_ns = 0;

    for (unsigned number = 0; !round->gave_up; number++) {
        const uint64_t start_ns = timing_now_ns();

        choose_cells(round, first_cell, number);
        if (round->count == 0 || (time_is_up(effort, round_ns) &&
                                  !ladder_lacks_batches(round->ladder, samples_needed(effort), effort->control))) {
            break;
        }
        if (measure_round(round, number, verdict) != 0) {
            return -1;
        }
        round_ns = timing_now_ns() - start_ns;
    }
    return 0;
}

static int measure_from(struct ladder *ladder, size_t first_cell, ladder_link *link, void *context,
                        const struct ladder_effort *effort, const struct session *session, struct verdict *verdict)
{
    const uint64_t longest = ladder->count > 0 ? ladder->cells[ladder->count - 1].pages : 0;
    struct round round = {.ladder = ladder,
                          .link = link,
                          .context = context,
                          .effort = effort,
                          .session = session,
                          .order = malloc((size_t)longest * sizeof(*round.order) + 1)};

    if (round.order == NULL) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the order of %llu pages", (unsigned long long)longest);
        return -1;
    }
    int result = measure_rounds(&round, first_cell, verdict);

    free(round.order);
    summarise(ladder);
    if (result == 0) {
        result = ladder_give_up_points(ladder, samples_needed(effort), effort->control, verdict);
    }
    return result == 0 ? judge_noise(ladder, verdict) : -1;
}

int ladder_measure(struct ladder *ladder, ladder_link *link, void *context, const struct ladder_effort *effort,
                   const struct session *session, struct verdict *verdict)
{
    return measure_from(ladder, 0, link, context, effort, session, verdict);
}

static struct chase link_window(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order)
{
    return (struct chase){.position = packed ? window_link_packed(context, pages, rng, order)
                                             : window_link_view(context, pages, rng, order)};
}

int ladder_measure_window(struct ladder *ladder, struct window *window, const struct ladder_effort *effort,
                          const struct session *session, struct verdict *verdict)
{
    if (ladder->count == 0 || window_map(window, ladder->cells[ladder->count - 1].pages, verdict) != 0) {
        return -1;
    }
    return ladder_measure(ladder, link_window, window, effort, session, verdict);
}

int ladder_extend(struct ladder *ladder, uint64_t pages, ladder_link *link, void *context,
                  const struct ladder_effort *effort, const struct session *session, struct verdict *verdict)
{
    const size_t first_cell = ladder->count;

    ladder_add_point(ladder, pages);
    return measure_from(ladder, first_cell, link, context, effort, session, verdict);
}

int ladder_extend_window(struct ladder *ladder, uint64_t pages, struct window *window,
                         const struct ladder_effort *effort, const struct session *session, struct verdict *verdict)
{
    if (window_map(window, pages, verdict) != 0) {
        return -1;
    }
    return ladder_extend(ladder, pages, link_window, window, effort, session, verdict);
}
