/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of one side of a ladder's point: what is kept, what stands for it, and whether more are needed. Not for
 * other modules than the ladder. */
#ifndef TLBBENCH_LADDER_SAMPLES_H
#define TLBBENCH_LADDER_SAMPLES_H

#include "ladder.h"

enum {
    LADDER_SAMPLES_MIN = 3, /* fewer kept batches make no median */
    LADDER_ALONE_MIN = 2,   /* batches on an unshared core that stand for themselves */
};

void samples_keep(struct ladder_samples *samples, double ns, bool alone);

/* True when there is enough for a first answer, on a shared core or not. */
bool samples_answer(const struct ladder_samples *samples);
size_t samples_all(const struct ladder_samples *samples);
bool samples_lack_alone(const struct ladder_samples *samples, size_t wanted);
bool samples_are_uncertain(const struct ladder_samples *samples);

/* Least ns of all batches, also of those on a shared core; infinite when there are none. */
double samples_best(const struct ladder_samples *samples);

/* Drops what was stolen of the batches from `first` on. */
void samples_drop_stolen(struct ladder_samples *samples, size_t first);
void samples_summarise(struct ladder_samples *samples);

#endif
