/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of one side of a sweep's point: what is kept, what stands for it, and whether more are needed. Not for
 * other modules than the sweep. */
#pragma once

#include "base/statistics.h"

enum {
    SWEEP_SAMPLES_MAX = 128,  /* batches kept of one point */
    SWEEP_CONTENDED_MAX = 16, /* and of those that a SMT sibling disturbed */
    SWEEP_SAMPLES_MIN = 3,    /* fewer kept batches make no median */
    SWEEP_IDLE_MIN = 2,       /* batches with an idle SMT sibling that stand for themselves */
};

struct sweep_samples {
    double ns[SWEEP_SAMPLES_MAX]; /* of a core that this thread had for itself */
    size_t count;
    double contended_ns[SWEEP_CONTENDED_MAX]; /* beside a busy sibling: they stand in where there are too few others */
    size_t contended_count;
    unsigned dropped;
    uint64_t accesses; /* of one batch, found in the first round */
    struct point_stats stats;
};

void samples_keep(struct sweep_samples *samples, double ns, bool alone);

/* Batches kept, under SMT contention or not. */
size_t samples_all(const struct sweep_samples *samples);
bool samples_lack_idle(const struct sweep_samples *samples, size_t wanted);
bool samples_are_uncertain(const struct sweep_samples *samples);

/* Least ns of all batches, also of those under SMT contention; infinite when there are none. */
double samples_best(const struct sweep_samples *samples);

/* Drops what was stolen of the batches from `first` on. */
void samples_drop_stolen(struct sweep_samples *samples, size_t first);
void samples_summarise(struct sweep_samples *samples);
