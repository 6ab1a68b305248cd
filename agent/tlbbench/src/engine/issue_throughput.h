/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of its core this thread gets. Hardware threads (SMT) share a core's ports, caches and TLBs, and a guest sees
 * nothing of a sibling that runs another guest: no steal, no switch, no topology. Independent additions show it: a core
 * ends several of them a cycle, and fewer beside a busy sibling, while a chain of dependent ones takes a cycle each
 * either way. Measured on a Zen 3 guest: of batches over 62 of the 64 entries of the first level, 0.97 and more were
 * undisturbed where the width was within 12 % of its best, and 0.00 to 0.02 where it was a third lower; such spells
 * last from microseconds to seconds.
 */
#ifndef TLBBENCH_ISSUE_THROUGHPUT_H
#define TLBBENCH_ISSUE_THROUGHPUT_H

#include <stdbool.h>
#include <stdint.h>

/* Additions per cycle, from two to three microseconds of them; NAN when something interrupted them. */
double issue_throughput_probe(void);

#endif
