/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs' times in /proc/stat. */
#pragma once

#include "base/std.h"

/* The columns that are used here: user nice system idle iowait irq softirq steal. */
enum { PROC_STAT_IDLE = 3, PROC_STAT_STEAL = 7, PROC_STAT_COLUMNS };

struct proc_stat_cpu {
    int cpu;                          /* -1 = the sum of all */
    int64_t ticks[PROC_STAT_COLUMNS]; /* USER_HZ since boot; -1 = not listed */
};

/* The next CPU of an open /proc/stat; false behind the last. Lines that are no CPU's in between are left out. */
bool proc_stat_next(FILE *file, struct proc_stat_cpu *found);
