/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the SMT sibling left the core alone around a batch. */
#pragma once

#include "base/std.h"

enum { SMT_WATCH_BINS = 400 };

/* All zero at first. */
struct smt_watch {
    uint32_t widths[SMT_WATCH_BINS]; /* how often a probe was so wide */
    uint64_t counted;
    uint64_t samples;
    uint64_t idle; /* of the samples */
};

/* Probes once. True when the sibling, if there is one, left the core alone. Until enough
 * probes went through there is nothing to compare with, and it counts as alone. */
bool smt_watch_sample(struct smt_watch *watch);

/* Samples for this long, to see the core alone at least for a moment; then counts from nothing. */
void smt_watch_learn(struct smt_watch *watch, double seconds);

/* Share of the samples so far that found the core alone, NAN before the first. */
double smt_watch_idle_share(const struct smt_watch *watch);
