/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many virtual base pages over the kernel's one zero page: what a read of untouched private memory maps. A load
 * there needs a translation and hits the first-level cache, as in a window (window.h), but takes no memory at all, is
 * not part of the resident size, and is one mapping, whatever its length. It holds no pointers, so it is chased by a
 * table.
 *
 * Caches that predict the way from the linear address (AMD Zen) mispredict here once pages outnumber lines: the plateau
 * of a sweep lies higher by that, evenly; where it ends is right, and what a miss costs.
 */
#pragma once

#include "base/rng.h"
#include "base/verdict.h"
#include "engine/chase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zero_window {
    char *base;
    uint64_t page_bytes;
    size_t pages_max;
};

/* Reserves the addresses. Returns 0, or -1 with the reason. */
int zero_window_open(struct zero_window *view, uint64_t page_bytes, size_t pages_max, struct verdict *verdict);
void zero_window_close(struct zero_window *view);

/* A cycle of one line in each of the first `pages` pages, in a random order; `packed`: the same lines of the first page
 * alone. A sweep_link (sweep.h): `context` is the view, and `order` becomes the table. */
struct chase zero_window_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order);
