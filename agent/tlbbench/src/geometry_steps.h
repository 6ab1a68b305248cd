/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of geometry_measure(), each in its file. Not for other modules. */
#ifndef TLBBENCH_GEOMETRY_STEPS_H
#define TLBBENCH_GEOMETRY_STEPS_H

#include "early_page.h"
#include "geometry.h"
#include "ladder.h"
#include "window.h"

enum { GEOMETRY_STRIDES = 8 }; /* page strides of 1 to 128: enough for 128 sets */

struct geometry_first_level {
    uint64_t entries, entries_min, entries_max; /* entries 0 = the ladder is flat */
    double plateau_ns;
    bool agreed; /* two passes found it; else the interval is all there is */
    bool shared; /* a busy sibling thread of the core may have taken entries: a lower bound */
};

/* What the steps hand to each other. */
struct geometry_work {
    const struct session *session;
    struct geometry_result *result;
    struct ladder *ladder; /* reused by every step */
    struct ladder_effort effort;
    struct deadline part_end; /* when the running part is to end */
    enum window_slots slots;
    double l1_hit_ns;                              /* NAN until known */
    struct geometry_first_level first;             /* of base pages */
    uint64_t l1_entries;                           /* of base pages; 0 = unknown */
    double l2_penalty_ns;                          /* NAN = unknown */
    double second_hit_ns;                          /* an L1 hit timed in the rounds of l2_penalty_ns; NAN = unknown */
    uint64_t capacity[GEOMETRY_STRIDES];           /* largest first-level knee seen at each stride; 0 = none */
    unsigned ways_looks;                           /* that geometry_measure_ways() took */
    struct early_page early[SESSION_BACKINGS_MAX]; /* as session_list_backings() lists them */
    size_t granules_left;                          /* backings that wait for theirs, in this try */
    bool granules_tried;                   /* the granules had a try: those that it left out have their turn now */
    uint64_t stream;                       /* a new random stream for every ladder */
    struct session *movable;               /* `session`, whose core is changed when other work holds it; NULL = stay */
    struct idle_look idle;                 /* when the last ladder started */
    uint64_t watched_looks, watched_alone; /* of the ladder's watch when the last ladder started */
    uint64_t cpu_ns;                       /* of this thread at that time */
    double cpu_share;                      /* of the core that the last ladder got */
    bool held;                             /* other work has held the core since the part began */
};

/* Notes what share of the core this thread got since the last look, and leaves a core that other work holds. */
void geometry_look(struct geometry_work *work);

/* Clears the ladder for a new one with its own random stream; leaves a core that other work held during the last. */
void geometry_start_ladder(struct geometry_work *work);

/* When a section's parts are planned to be over. */
struct deadline geometry_planned_end(const struct session *session);

/* The effort of a ladder that may take `share` of what is left of the part's time. */
struct ladder_effort geometry_effort(const struct geometry_work *work, double share);

/* Keeps a copy of the ladder in the result's curves. `packed` selects the control. */
void geometry_keep_curve(struct geometry_work *work, const char *name, const struct backing *backing, bool packed,
                         const char *layout, const struct verdict *verdict);

/* A cycle that hits the first level took this long: the fastest is the L1 hit, since a busy sibling thread slows it. */
void geometry_note_hit(struct geometry_work *work, double ns);

/* --- shared by the steps */

/* Opens a window with the slots that the calibration chose and notes the memory it takes. */
int geometry_open_window(const struct geometry_work *work, const struct backing *backing, uint64_t stride_pages,
                         size_t pages_max, struct window *window, struct verdict *verdict);

struct knee geometry_read_knee(const struct geometry_work *work, enum ladder_statistic statistic);

/* Points from `from` to `to`, six to a doubling. */
void geometry_add_points(struct ladder *ladder, double from, double to);

const char *geometry_layout_name(const struct geometry_work *work);

int geometry_add_level(struct geometry_work *work, const struct tlb_level *level, struct verdict *verdict);

/* The most pages of a backing that a ladder may alias. */
size_t geometry_pages_max(const struct backing *backing);

/* --- the steps */

/* Core clock, L1 hit, and whether several pages on one cache line cost anything. */
int geometry_calibrate(struct geometry_work *work, struct verdict *verdict);

/* First level for pages of `backing`; stores the level and its curves. Returns 0 with found->entries == 0 when the
 * ladder is flat. */
int geometry_measure_first_level(struct geometry_work *work, const struct backing *backing,
                                 struct geometry_first_level *found, struct verdict *verdict);

/* What a hit of the second level costs for base pages. */
int geometry_measure_hit(struct geometry_work *work, const struct backing *backing, struct verdict *verdict);

/* The second level behind a first one that was found. For base pages geometry_measure_hit() comes first. */
int geometry_measure_second_level(struct geometry_work *work, const struct backing *backing,
                                  const struct geometry_first_level *first, struct verdict *verdict);

/* The steps below return 1 when they are done and more time could give a better result: then they may be called again.
 */

/* Ways of the first level for base pages. */
int geometry_measure_ways(struct geometry_work *work, struct verdict *verdict);

/* Has large pages cleared on another core while the other parts run; geometry_end_early_pages() gives up the rest. */
void geometry_start_early_pages(struct geometry_work *work);
void geometry_end_early_pages(struct geometry_work *work);

/* True when no backing waits for another try. */
bool geometry_granules_known(const struct geometry_result *result);

/* What one entry covers for every backing that is available. */
int geometry_measure_granules(struct geometry_work *work, struct verdict *verdict);

/* Finds the measured level of a page size in the result, or NULL. */
struct tlb_level *geometry_find_measured(struct geometry_result *result, unsigned level, uint64_t page_bytes);

#endif
