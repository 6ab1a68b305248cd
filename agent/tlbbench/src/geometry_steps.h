/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of geometry_measure(), each in its file. Not for other modules. */
#ifndef TLBBENCH_GEOMETRY_STEPS_H
#define TLBBENCH_GEOMETRY_STEPS_H

#include "geometry.h"
#include "ladder.h"
#include "window.h"

/* What the steps hand to each other. */
struct geometry_work {
    const struct session *session;
    struct geometry_result *result;
    struct ladder *ladder; /* reused by every step */
    struct ladder_effort effort;
    enum window_slots slots;
    double l1_hit_ns;         /* NAN until known */
    uint64_t l1_entries;      /* of base pages; 0 = unknown */
    double l2_penalty_ns;     /* NAN = unknown */
    uint64_t stream;          /* a new random stream for every ladder */
    struct session *movable;  /* `session`, whose core is changed when other work holds it; NULL = stay */
    uint64_t wall_ns, cpu_ns; /* when the last ladder started; 0 = none has */
};

/* Clears the ladder for a new one with its own random stream; leaves a core that other work held during the last. */
void geometry_start_ladder(struct geometry_work *work);

/* Keeps a copy of the ladder in the result's curves. `packed` selects the control. */
void geometry_keep_curve(struct geometry_work *work, const char *name, const struct backing *backing, bool packed,
                         const char *layout, const struct verdict *verdict);

/* --- shared by the steps */

struct geometry_first_level {
    uint64_t entries, entries_min, entries_max;
    double plateau_ns;
};

/* Opens a window with the slots that the calibration chose and notes the memory it takes. */
int geometry_open_window(const struct geometry_work *work, const struct backing *backing, uint64_t stride_pages,
                         size_t pages_max, struct window *window, struct verdict *verdict);

struct knee geometry_read_knee(const struct geometry_work *work, enum ladder_statistic statistic);

/* Points from `from` to `to`, six to a doubling. */
void geometry_add_points(struct ladder *ladder, double from, double to);

const char *geometry_layout_name(const struct geometry_work *work);

/* Trades batches of a round for rounds: more visiting orders at the same cost. */
void geometry_spread_rounds(struct ladder_effort *effort, unsigned batches);

int geometry_add_level(struct geometry_work *work, const struct tlb_level *level, struct verdict *verdict);

/* The second level behind a first one that was found; up to `pages_max` aliases. */
int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing, size_t pages_max,
                                  const struct geometry_first_level *first, struct verdict *verdict);

/* --- the steps */

/* Core clock, L1 hit, and whether several pages on one cache line cost anything. */
int geometry_calibrate(struct geometry_work *work, struct verdict *verdict);

/* First and second level for pages of `backing`; stores levels, penalties and curves. */
int geometry_measure_levels(struct geometry_work *work, const struct backing *backing, struct verdict *verdict);

/* Ways of the first level for base pages. */
int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict);

/* What one entry covers for every backing that is available. */
int geometry_measure_granules(struct geometry_work *work, struct verdict *verdict);

/* Finds the measured level of a page size in the result, or NULL. */
struct tlb_level *geometry_find_measured(struct geometry_result *result, unsigned level, uint64_t page_bytes);

#endif
