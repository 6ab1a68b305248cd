/* SPDX-License-Identifier: Apache-2.0 */
/* What the core itself does, told by additions: its clock, and how much of it this thread gets. */
#pragma once

/* Core cycles per second from a chain of dependent additions, one cycle each; NAN when every try was disturbed. The
 * time stamp counter runs at another rate and says nothing about it. */
double core_clock_hz(void);

/*
 * Additions per cycle, from two to three microseconds of them; NAN when something interrupted them.
 *
 * Hardware threads (SMT) share a core's ports, caches and TLBs, and a guest sees nothing of a sibling that runs another
 * guest: no steal, no switch, no topology. Independent additions show it: a core ends several of them a cycle, and
 * fewer beside a busy sibling, while a chain of dependent ones takes a cycle each either way. Measured on a Zen 3
 * guest: of batches over 62 of the 64 entries of the first level, 0.97 and more were undisturbed where the width was
 * within 12 % of its best, and 0.00 to 0.02 where it was a third lower; such spells last from microseconds to seconds.
 */
double issue_throughput_probe(void);
