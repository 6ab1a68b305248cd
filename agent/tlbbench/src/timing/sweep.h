/* SPDX-License-Identifier: Apache-2.0 */
/* Times cycles of growing length over a window: several rounds with new seeds, the points of a round in random order,
 * every batch behind the noise guard. */
#pragma once

#include "timing/knee.h"
#include "timing/session.h"
#include "timing/smt_watch.h"
#include "timing/sweep_samples.h"
#include "timing/window.h"

enum { SWEEP_POINTS_MAX = KNEE_POINTS_MAX };

struct sweep_cell {
    uint64_t pages;
    struct sweep_samples view;
    struct sweep_samples packed; /* the cache-only control; empty without it */
};

/* The cells are large, so a sweep lives on the heap. */
struct sweep {
    struct sweep_cell cells[SWEEP_POINTS_MAX];
    size_t count;
    uint64_t seed;
    struct smt_watch watch;
};

struct sweep_effort {
    unsigned rounds;      /* of every point, each with a new access permutation */
    unsigned rounds_max;  /* of points whose median is uncertain after that; 0 = no more */
    unsigned smt_rounds;  /* more, of points without enough batches with an idle SMT sibling, until `end` */
    unsigned idle_wanted; /* such batches of every point; 0 = of those alone where the sweep seems to rise */
    size_t from_cell;     /* points before are left as they are */
    unsigned batches;     /* of a round, each from where the last one ended */
    double batch_seconds;
    bool control;
    struct deadline end;  /* once each point has a median, no round starts that would end later; end_ns 0 = none */
    struct deadline last; /* later than that, points without a median are given up; end_ns 0 = never */
};

/* Adds a point unless it is there; keeps the points ascending. */
void sweep_add_point(struct sweep *sweep, uint64_t pages);

/* Links one cycle of `pages` pages and returns its start. `order` has room for as many and stays until it is timed. */
typedef struct chase sweep_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order);

/* What the cycles lie in. */
struct sweep_source {
    sweep_link *link;
    void *context;
    struct window *window; /* mapped as far as the points need; NULL = nothing to map */
};

struct sweep_source sweep_of_window(struct window *window);

/* Measures the points. Returns 0; -1 when stopped or noisy, with the reason (points measured so far keep their
 * samples). Where time was short, points that got too few quiet batches are taken out of the sweep. */
int sweep_measure(struct sweep *sweep, const struct sweep_source *source, const struct sweep_effort *effort,
                  const struct session *session, struct verdict *verdict);

/* True while a point (or its control) has fewer quiet batches; while a median needs more. */
bool sweep_lacks_batches(const struct sweep *sweep, size_t batches, bool control);
bool sweep_is_uncertain(const struct sweep *sweep);

/* Takes out the points with fewer than `batches` quiet ones (and of the control). A coarser sweep gives wider
 * intervals, and still right ones; -1 and noisy where too few points are left for that. */
int sweep_give_up_points(struct sweep *sweep, size_t batches, bool control, struct verdict *verdict);

/* True when a point (or its control) has only figures of a core that a SMT sibling shared. */
bool sweep_is_contended_at(const struct sweep_cell *cell);

/* The same of one of the first points longer than `pages`: a knee there may be one of the sibling's making. */
bool sweep_is_contended_past(const struct sweep *sweep, uint64_t pages);

/* Share of all batches that were disturbed, 0 .. 1. */
double sweep_dropped_share(const struct sweep *sweep);
