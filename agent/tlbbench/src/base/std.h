/* SPDX-License-Identifier: Apache-2.0 */
/* The C library that most modules use, and sizes that several name. What few use, they include themselves. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
