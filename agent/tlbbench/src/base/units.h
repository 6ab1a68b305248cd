/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that several modules name. */
#pragma once

#include "base/std.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* x86-64 and most Arm servers; POWER's 128 halves the lines that a cycle uses, which harms nothing. */
enum { CACHE_LINE_BYTES = 64 };

/* `most` is the largest of what was noted. */
static inline void note_peak(uint64_t *most, uint64_t bytes)
{
    *most = bytes > *most ? bytes : *most;
}

/* Odd, so that slots in a row use all lines, fall into cache sets far apart and are no neighbours to prefetch. */
enum { CACHE_LINE_STEP = 37 };
