/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading TLB sizes off a sweep: x = pages in the cycle, y = ns per access. Pure functions of the sweep, so they are
 * tested on simulated TLBs and on recorded sweeps. They answer KNEE_UNCLEAR rather than guess.
 */
#pragma once

#include "base/std.h"

struct knee_point {
    uint64_t pages;
    double ns;
};
enum { KNEE_POINTS_MAX = 160 }; /* of an interval's sweep */

enum knee_verdict {
    KNEE_FOUND,
    KNEE_NONE,    /* flat to the end of the sweep */
    KNEE_UNCLEAR, /* no plateau, or points that contradict each other */
};

/* First knee: a plateau from the first point on, then a lasting rise. */
struct knee {
    enum knee_verdict verdict;
    double plateau_ns;
    uint64_t pages;      /* largest number of pages still on the plateau */
    uint64_t next_pages; /* the next point of the sweep, which has risen; the knee lies in between */
};

/* `points` ascend in pages. A point has risen when it is 5 % above the plateau; a rise counts when it lasts for the two
 * points after it too (or to the end), so that one disturbed point is no knee. The plateau has to be that of the
 * measured L1 hit, `hit_ns` (NAN = unknown): a sweep that begins past the first level finds the plateau of the second.
 */
struct knee knee_find(const struct knee_point *points, size_t count, double hit_ns);

/* A softer knee over a known plateau, read as an interval: where the rise starts, where it is half done, and the best
 * single estimate between them. */
struct knee_interval {
    enum knee_verdict verdict;
    double plateau_ns;
    double top_ns;
    uint64_t soft_start_pages; /* largest number of pages still on the plateau */
    uint64_t half_rise_pages;  /* first point where half of the rise is done */
    uint64_t shelf_pages;      /* where the rise comes to rest before it goes on; 0 = it does not rest */
    uint64_t estimate_pages;
    uint64_t least_pages, most_pages; /* what the level may hold, by the estimate's error and how soft the rise is */
};

/* `from_pages` is where the plateau begins (past the knee before it). `medians` are the points' medians in ns, where
 * points are minima; NULL = not known. */
struct knee_interval knee_find_interval(const struct knee_point *points, const double *medians, size_t count,
                                        uint64_t from_pages);

/* Ways of a set-associative first level: `capacity[i]` is the knee with a page stride of 2^i. The capacity halves with
 * each doubling until the pages fall into one set; then it stays at the number of ways. */
enum { KNEE_WAYS_UNKNOWN = 0, KNEE_WAYS_FULL = -1 };
int knee_find_ways(const uint64_t *capacity, size_t count);
