/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of geometry_measure(), each in its file. Not for other modules. */
#pragma once

#include "geometry/result.h"
#include "timing/cpus.h"

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
    double l1_hit_ns;                    /* NAN until known */
    struct geometry_first_level first;   /* of base pages */
    uint64_t l1_entries;                 /* of base pages; 0 = unknown */
    double l2_penalty_ns;                /* NAN = unknown */
    double second_hit_ns;                /* an L1 hit timed in the rounds of l2_penalty_ns; NAN = unknown */
    uint64_t capacity[GEOMETRY_STRIDES]; /* largest first-level knee seen at each stride; 0 = none */
    unsigned ways_passes;                /* that geometry_measure_ways() took */
    size_t pages_left;                   /* backings that wait for theirs, in this try */
    bool pages_tried;        /* the effective page sizes had a try: those that it left out have their turn now */
    uint64_t stream;         /* a new random stream for every sweep */
    struct idle_sample idle; /* when the last sweep started */
    uint64_t watched_samples, watched_idle; /* of the sweep's watch when the last sweep started */
    uint64_t cpu_ns;                        /* of this thread at that time */
    double cpu_share;                       /* of the core that the last sweep got */
    struct verdict unseen;                  /* CANNOT_TELL: a level of base pages that no sweep showed */
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
#define GEOMETRY_STEP 1.122462048
void geometry_add_points(struct sweep *sweep, double from, double to);

const char *geometry_layout_name(const struct geometry_work *work);

/* The most pages of a backing that a sweep may alias. */
size_t geometry_pages_max(const struct backing *backing);

/* --- core.c: which CPU the sweeps run on, what a sweep may cost there, and the calibration --------------------------
 */

/* Notes what share of the CPU this thread got since the last call, and moves off a contended CPU. */
void geometry_watch_core(struct geometry_work *work);

/* Clears the sweep for a new one with its own random stream; leaves a core that other work held during the last. */
void geometry_start_sweep(struct geometry_work *work);

/* When a section's parts are planned to be over. */
struct deadline geometry_planned_end(const struct session *session);

/* The effort of a sweep that may take `share` of what is left of the part's time. */
struct sweep_effort geometry_effort(const struct geometry_work *work, double share);

/* --- the steps, in their order, each in the file of its name ----------------------------------------------------
 * Each returns 0; -1 with the reason; or 1 when it is done and more time could give a better result: then it may be
 * called again. */

/* Core clock, L1 hit, and whether several pages on one cache line cost anything. */
int geometry_calibrate(struct geometry_work *work, struct verdict *verdict);

/* First level for pages of `backing`; stores the level and its curves. A flat sweep leaves found->entries 0. */
int geometry_measure_first_level(struct geometry_work *work, const struct backing *backing,
                                 struct geometry_first_level *found, struct verdict *verdict);

/* What a hit of the second level costs for base pages. */
int geometry_measure_hit(struct geometry_work *work, struct verdict *verdict);

/* The second level behind a first one that was found. For base pages geometry_measure_hit() comes first. */
int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing,
                                  const struct geometry_first_level *first, struct verdict *verdict);

/* True when the second level holds large pages in pieces that the first level holds whole. */
bool geometry_second_level_has_pieces(struct geometry_work *work, const struct backing *backing,
                                      const struct geometry_first_level *first);

/* What one TLB entry covers, for every backing. */
int geometry_measure_effective_pages(struct geometry_work *work, struct verdict *verdict);

/* How many backings wait for another try. */
size_t geometry_open_pages(const struct geometry_result *result);

/* Ways of the second level for base pages, behind those of the first; where they cannot be told its note says so. */
int geometry_measure_second_ways(struct geometry_work *work, struct verdict *verdict);

/* Asks the processor's counter of walks what it says of the second level that was found for base pages; lowers the
 * level's confidence where it contradicts. Never fails: the result's witness says why it is silent. */
void geometry_call_witness(struct geometry_work *work);

/* Ways of the first level for base pages. */
int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict);
