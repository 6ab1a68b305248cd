/* SPDX-License-Identifier: Apache-2.0 */
#include "ladder.h"

#include "statistics.h"
#include "translations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DISTURBED_TRIES = 4, /* per batch, before it counts as dropped for good */
    WARM_ACCESSES_MIN = 2048,
    WARM_LAPS = 2,    /* the first lap loads the caches and translations, the second settles replacement */
    SAMPLES_MIN = 3,  /* fewer kept batches make no median */
    EXTRA_ROUNDS = 6, /* added while points lack quiet batches */
};

/* Of all batches; above it the core is too busy for any number to be believed. */
#define DROPPED_SHARE_MAX 0.5

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

static void time_side(struct ladder_samples *samples, struct chase chase, uint64_t pages,
                      const struct ladder_effort *effort)
{
    const uint64_t laps = WARM_LAPS * pages;

    chase_walk(&chase, laps > WARM_ACCESSES_MIN ? laps : WARM_ACCESSES_MIN);
    if (samples->accesses == 0) {
        samples->accesses = chase_batch_accesses(&chase, effort->batch_seconds);
    }
    for (unsigned batch = 0; batch < effort->batches; batch++) {
        bool quiet = false;
        double ns = NAN;

        for (unsigned try = 0; try < DISTURBED_TRIES && !quiet; try++) {
            quiet = chase_time_batch(&chase, samples->accesses, &ns);
            samples->dropped += quiet ? 0 : 1;
        }
        if (quiet && samples->count < LADDER_SAMPLES_MAX) {
            samples->ns[samples->count++] = ns;
        }
    }
}

static void summarise(struct ladder *ladder)
{
    for (size_t index = 0; index < ladder->count; index++) {
        struct ladder_cell *const cell = &ladder->cells[index];

        statistics_summarise(cell->view.ns, cell->view.count, cell->view.dropped, &cell->view.stats);
        statistics_summarise(cell->packed.ns, cell->packed.count, cell->packed.dropped, &cell->packed.stats);
    }
}

static bool has_enough_samples(const struct ladder *ladder, bool control)
{
    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        if (cell->view.count < SAMPLES_MIN || (control && cell->packed.count < SAMPLES_MIN)) {
            return false;
        }
    }
    return true;
}

static int judge_noise(const struct ladder *ladder, bool control, struct verdict *verdict)
{
    size_t kept = 0;
    size_t dropped = 0;

    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        kept += cell->view.count;
        dropped += cell->view.dropped;
        if (cell->view.count < SAMPLES_MIN || (control && cell->packed.count < SAMPLES_MIN)) {
            verdict_set(verdict, STATUS_NOISY, "other work held the core: fewer than %d quiet batches at %llu pages",
                        SAMPLES_MIN, (unsigned long long)cell->pages);
            return -1;
        }
    }
    if ((double)dropped > DROPPED_SHARE_MAX * (double)(kept + dropped)) {
        verdict_set(verdict, STATUS_NOISY, "other work held the core: %zu of %zu batches disturbed", dropped,
                    kept + dropped);
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

/* Forgets the samples of a round that was spoiled. */
static void rewind_samples(struct ladder *ladder, const size_t counts[LADDER_POINTS_MAX][2])
{
    for (size_t index = 0; index < ladder->count; index++) {
        struct ladder_cell *const cell = &ladder->cells[index];

        cell->view.dropped += (unsigned)(cell->view.count - counts[index][0]);
        cell->view.count = counts[index][0];
        cell->packed.dropped += (unsigned)(cell->packed.count - counts[index][1]);
        cell->packed.count = counts[index][1];
    }
}

static int measure_round(struct ladder *ladder, size_t first_cell, unsigned round, ladder_link *link, void *context,
                         const struct ladder_effort *effort, const struct session *session, uint32_t *order,
                         struct verdict *verdict)
{
    struct rng rng = rng_new(session->options->seed, ladder->seed * 1000 + round);
    size_t counts[LADDER_POINTS_MAX][2] = {{0}};
    uint32_t sequence[LADDER_POINTS_MAX];
    const uint64_t ticks = timing_steal_ticks(session->cpu);
    const uint64_t start_ns = timing_now_ns();

    for (size_t index = 0; index < ladder->count; index++) {
        counts[index][0] = ladder->cells[index].view.count;
        counts[index][1] = ladder->cells[index].packed.count;
        sequence[index] = (uint32_t)index;
    }
    chase_shuffle(sequence + first_cell, ladder->count - first_cell, &rng);
    for (size_t step = first_cell; step < ladder->count; step++) {
        struct ladder_cell *const cell = &ladder->cells[sequence[step]];

        if (session_must_stop(session, verdict)) {
            return -1;
        }
        if (effort->control) {
            translations_drop();
            time_side(&cell->packed, link(context, true, cell->pages, &rng, order), cell->pages, effort);
        }
        translations_drop();
        time_side(&cell->view, link(context, false, cell->pages, &rng, order), cell->pages, effort);
    }
    if (stolen_round(ticks, start_ns, session->cpu)) {
        rewind_samples(ladder, (const size_t(*)[2])counts);
    }
    return 0;
}

static int measure_from(struct ladder *ladder, size_t first_cell, ladder_link *link, void *context,
                        const struct ladder_effort *effort, const struct session *session, struct verdict *verdict)
{
    const uint64_t longest = ladder->count > 0 ? ladder->cells[ladder->count - 1].pages : 0;
    uint32_t *const order = malloc((size_t)longest * sizeof(*order) + 1);
    int result = 0;

    if (order == NULL) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the order of %llu pages", (unsigned long long)longest);
        return -1;
    }
    for (unsigned round = 0; result == 0 && round < effort->rounds + EXTRA_ROUNDS; round++) {
        if (round >= effort->rounds && has_enough_samples(ladder, effort->control)) {
            break;
        }
        result = measure_round(ladder, first_cell, round, link, context, effort, session, order, verdict);
    }
    free(order);
    summarise(ladder);
    return result == 0 ? judge_noise(ladder, effort->control, verdict) : -1;
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

static double chosen(const struct point_stats *stats, enum ladder_statistic statistic)
{
    return statistic == LADDER_MEDIAN ? stats->ns_p50 : stats->ns_min;
}

size_t ladder_knee_points(const struct ladder *ladder, enum ladder_statistic statistic, double hit_ns,
                          struct knee_point points[LADDER_POINTS_MAX])
{
    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];
        const double control_ns = cell->packed.count > 0 ? chosen(&cell->packed.stats, statistic) - hit_ns : 0;

        points[index] = (struct knee_point){
            .pages = cell->pages,
            .ns = chosen(&cell->view.stats, statistic) - control_ns,
            .mad = statistic == LADDER_MEDIAN ? cell->view.stats.ns_mad : 0,
        };
    }
    return ladder->count;
}

double ladder_dropped_share(const struct ladder *ladder)
{
    size_t kept = 0;
    size_t dropped = 0;

    for (size_t index = 0; index < ladder->count; index++) {
        kept += ladder->cells[index].view.count + ladder->cells[index].packed.count;
        dropped += ladder->cells[index].view.dropped + ladder->cells[index].packed.dropped;
    }
    return kept + dropped > 0 ? (double)dropped / (double)(kept + dropped) : 0;
}

int ladder_to_curve(const struct ladder *ladder, bool packed, struct curve *curve)
{
    curve->x_name = "pages";
    curve->points = calloc(ladder->count, sizeof(*curve->points));
    if (curve->points == NULL) {
        return -1;
    }
    curve->point_count = ladder->count;
    for (size_t index = 0; index < ladder->count; index++) {
        const struct ladder_cell *const cell = &ladder->cells[index];

        curve->points[index].x = cell->pages;
        curve->points[index].stats = packed ? cell->packed.stats : cell->view.stats;
    }
    return 0;
}

struct curve *curve_list_add(struct curve_list *list)
{
    struct curve *const grown = realloc(list->items, (list->count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return NULL;
    }
    list->items = grown;
    grown[list->count] = (struct curve){.x_name = "pages", .layout = "", .granted_fraction = NAN};
    return &grown[list->count++];
}

void curve_list_free(struct curve_list *list)
{
    for (size_t index = 0; index < list->count; index++) {
        free(list->items[index].points);
    }
    free(list->items);
    *list = (struct curve_list){0};
}
