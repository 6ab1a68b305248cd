/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of geometry_measure(), each in its file. Not for other modules. */
#ifndef TLBBENCH_GEOMETRY_WORK_H
#define TLBBENCH_GEOMETRY_WORK_H

#include "base/clock.h"
#include "base/verdict.h"
#include "engine/cpus.h"
#include "engine/knee.h"
#include "engine/session.h"
#include "engine/sweep.h"
#include "engine/sweep_curve.h"
#include "engine/window.h"
#include "geometry/result.h"
#include "machine/tlb_levels.h"
#include "memory/backing.h"
#include "memory/early_page.h"

enum { GEOMETRY_STRIDES = 8 }; /* page strides of 1 to 128: enough for 128 sets */

struct geometry_first_level {
    uint64_t entries, entries_min, entries_max; /* entries 0 = the sweep is flat */
    double plateau_ns;
    bool agreed; /* two passes found it; else the interval is all there is */
    bool shared; /* a busy SMT sibling of the core may have taken entries: a lower bound */
};

/* What the steps hand to each other. */
struct geometry_work {
    struct session *session; /* its CPU changes when other work contends for it */
    struct geometry_result *result;
    struct sweep *sweep; /* reused by every step */
    struct sweep_effort effort;
    struct deadline part_end; /* when the running part is to end */
    enum window_slots slots;
    double l1_hit_ns;                              /* NAN until known */
    struct geometry_first_level first;             /* of base pages */
    uint64_t l1_entries;                           /* of base pages; 0 = unknown */
    double l2_penalty_ns;                          /* NAN = unknown */
    double second_hit_ns;                          /* an L1 hit timed in the rounds of l2_penalty_ns; NAN = unknown */
    uint64_t capacity[GEOMETRY_STRIDES];           /* largest first-level knee seen at each stride; 0 = none */
    unsigned ways_passes;                          /* that geometry_measure_ways() took */
    struct early_page early[SESSION_BACKINGS_MAX]; /* as session_list_backings() lists them */
    size_t pages_left;                             /* backings that wait for theirs, in this try */
    bool pages_tried;        /* the effective page sizes had a try: those that it left out have their turn now */
    uint64_t stream;         /* a new random stream for every sweep */
    struct idle_sample idle; /* when the last sweep started */
    uint64_t watched_samples, watched_idle; /* of the sweep's watch when the last sweep started */
    uint64_t cpu_ns;                        /* of this thread at that time */
    double cpu_share;                       /* of the core that the last sweep got */
    bool contended;                         /* other work has held the core since the part began */
};

/* Keeps a copy of the sweep in the result's curves. `packed` selects the control. */
void geometry_keep_curve(struct geometry_work *work, const char *name, const struct backing *backing, bool packed,
                         const char *layout, const struct verdict *verdict);

/* A cycle that hits the first level took this long: the fastest is the L1 hit, since a busy SMT sibling slows it. */
void geometry_note_hit(struct geometry_work *work, double ns);

/* Opens a window with the slots that the calibration chose and notes the memory it takes. */
int geometry_open_window(const struct geometry_work *work, const struct backing *backing, uint64_t stride_pages,
                         size_t pages_max, struct window *window, struct verdict *verdict);

struct knee geometry_read_knee(const struct geometry_work *work);

/* Points from `from` to `to`, six to a doubling. */
void geometry_add_points(struct sweep *sweep, double from, double to);

const char *geometry_layout_name(const struct geometry_work *work);

int geometry_add_level(struct geometry_work *work, const struct tlb_level *level, struct verdict *verdict);

/* The most pages of a backing that a sweep may alias. */
size_t geometry_pages_max(const struct backing *backing);

#endif
