/* SPDX-License-Identifier: Apache-2.0 */
/* Times cycles of growing length over a window: several rounds with new seeds, the points of a round in random order,
 * every batch behind the noise guard. */
#ifndef TLBBENCH_LADDER_H
#define TLBBENCH_LADDER_H

#include "base/clock.h"
#include "base/rng.h"
#include "base/verdict.h"
#include "engine/chase.h"
#include "engine/session.h"
#include "engine/smt_watch.h"
#include "engine/sweep_samples.h"
#include "engine/window.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LADDER_POINTS_MAX = 160 };

struct ladder_cell {
    uint64_t pages;
    struct ladder_samples view;
    struct ladder_samples packed; /* the cache-only control; empty without it */
};

/* The cells are large, so a ladder lives on the heap. */
struct ladder {
    struct ladder_cell cells[LADDER_POINTS_MAX];
    size_t count;
    uint64_t seed;
    struct core_watch watch;
};

struct ladder_effort {
    unsigned rounds;       /* of every point, each with a new order of visits */
    unsigned rounds_max;   /* of points whose median is uncertain after that; 0 = no more */
    unsigned alone_rounds; /* more, of points without enough batches on an unshared core, until `end` */
    unsigned alone_wanted; /* such batches of every point; 0 = of those alone where the ladder seems to rise */
    unsigned batches;      /* of a round, each from where the last one ended */
    double batch_seconds;
    bool control;
    struct deadline end;  /* once each point has a median, no round starts that would end later; end_ns 0 = none */
    struct deadline last; /* later than that, points without a median are given up; end_ns 0 = never */
};

/* Adds a point unless it is there; keeps the points ascending. */
void ladder_add_point(struct ladder *ladder, uint64_t pages);

/* Links one cycle of `pages` pages and returns its start. `order` has room for as many and stays until it is timed. */
typedef struct chase ladder_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order);

/* Measures all points. Returns 0; -1 when stopped or noisy, with the reason (points measured so far keep their
 * samples). Where time was short, points that got too few quiet batches are taken out of the ladder. */
int ladder_measure(struct ladder *ladder, ladder_link *link, void *context, const struct ladder_effort *effort,
                   const struct session *session, struct verdict *verdict);

/* The same for a window: maps what the points need first. */
int ladder_measure_window(struct ladder *ladder, struct window *window, const struct ladder_effort *effort,
                          const struct session *session, struct verdict *verdict);

/* Adds one longer cycle to a ladder that was measured and measures it alone. */
int ladder_extend(struct ladder *ladder, uint64_t pages, ladder_link *link, void *context,
                  const struct ladder_effort *effort, const struct session *session, struct verdict *verdict);
int ladder_extend_window(struct ladder *ladder, uint64_t pages, struct window *window,
                         const struct ladder_effort *effort, const struct session *session, struct verdict *verdict);

/* True while a point (or its control) has fewer quiet batches; while a median needs more. */
bool ladder_lacks_batches(const struct ladder *ladder, size_t batches, bool control);
bool ladder_is_uncertain(const struct ladder *ladder);

/* Takes out the points with fewer than `batches` quiet ones (and of the control). A coarser ladder gives wider
 * intervals, and still right ones; -1 and noisy where too few points are left for that. */
int ladder_give_up_points(struct ladder *ladder, size_t batches, bool control, struct verdict *verdict);

/* True when a point has only figures of a core that a sibling thread shared. */
bool ladder_is_shared_at(const struct ladder_cell *cell);

/* The same of one of the first points longer than `pages`: a knee there may be one of the sibling's making. */
bool ladder_is_shared_past(const struct ladder *ladder, uint64_t pages);

/* Share of all batches that were disturbed, 0 .. 1. */
double ladder_dropped_share(const struct ladder *ladder);

#endif
