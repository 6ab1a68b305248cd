/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the SMT sibling left the core alone around a batch. */
#ifndef TLBBENCH_ENGINE_SMT_WATCH_H
#define TLBBENCH_ENGINE_SMT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { CORE_WATCH_BINS = 400 };

/* All zero at first. */
struct core_watch {
    uint32_t widths[CORE_WATCH_BINS]; /* how often a probe was so wide */
    uint64_t counted;
    uint64_t looks;
    uint64_t alone; /* of the looks */
};

/* Probes once. True when the sibling, if there is one, left the core alone. Until enough
 * probes went through there is nothing to compare with, and it counts as alone. */
bool core_watch_look(struct core_watch *watch);

/* Looks for this long, to see the core alone at least for a moment; then counts from nothing. */
void core_watch_learn(struct core_watch *watch, double seconds);

/* Share of the looks so far that found the core alone, NAN before the first. */
double core_watch_share(const struct core_watch *watch);

#endif
