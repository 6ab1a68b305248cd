/* SPDX-License-Identifier: Apache-2.0 */
/* What a ladder may cost. On a quiet core the plan is met with time to spare; where other work holds the core, every
 * part gets its share of the time that is left, so that all end with something, if coarser. */
#include "geometry/core_migration.h"

#include "base/clock.h"
#include "engine/cpus.h"
#include "engine/session.h"
#include "engine/smt_watch.h"
#include "engine/sweep.h"
#include "geometry/work.h"

#include <math.h>

/* A core is held by others when a ladder got less than this share of it; shorter ones say too little. */
#define HELD_CPU_SHARE 0.9
#define LOOK_NS_MIN 3e7
/* Another core is worth a move when it idled by this share of the time more than this one ran us. */
#define MOVE_GAIN_SHARE 0.1
/* Looks that say something of a core, and the share of unshared ones below which another core is tried. */
enum { LOOKS_MIN = 200 };
#define SHARED_SHARE_MAX 0.5
/* Of a batch, where the sibling's pauses are short. */
#define SHARED_BATCH_SHARE 0.35
#define IDLE_SHARE_MIN 0.9
/* Of a section's time; the rest is for what was begun last. */
#define PLANNED_SHARE 0.9
#define LAST_MARGIN_SECONDS 0.1

/* On a held core batches shrink with the share of it, to this at least: time is short and slices end. */
#define HELD_BATCH_SHARE_MIN 0.25

struct deadline geometry_planned_end(const struct session *session)
{
    return deadline_after(PLANNED_SHARE * deadline_remaining_seconds(session->deadline));
}

/* Other work that came after the core was chosen makes a ladder slow long before it makes it noisy. Then the core that
 * idled most meanwhile is taken, if it would give more. */
static void leave_held_core(struct geometry_work *work)
{
    double idle_share;

    work->held = true;
    if (work->movable == NULL) {
        return;
    }
    const int idlest = timing_idlest_cpu(&work->idle, &work->movable->cpus, &idle_share);

    if (idlest >= 0 && idlest != work->movable->cpu && idle_share > work->cpu_share + MOVE_GAIN_SHARE) {
        work->movable->cpu = idlest;
        (void)timing_pin_cpu(idlest);
    }
}

/* Share of the ladder's looks since the last ladder that found the core unshared; NAN when there were few. */
static double alone_share(const struct geometry_work *work)
{
    const struct core_watch *const now = &work->ladder->watch;
    const uint64_t looks = now->looks - work->watched_looks;

    return looks >= LOOKS_MIN ? (double)(now->alone - work->watched_alone) / (double)looks : NAN;
}

/* A guest that runs on the sibling thread of one core seldom has that of another, too. An idle core is tried for a
 * moment. */
static void leave_shared_core(struct geometry_work *work)
{
    struct core_watch *const watch = &work->ladder->watch;
    const double share = alone_share(work);
    double idle_share;

    if (work->movable == NULL || isnan(share) || share > SHARED_SHARE_MAX) {
        return;
    }
    const int idlest = timing_idlest_cpu(&work->idle, &work->movable->cpus, &idle_share);

    if (idlest < 0 || idlest == work->movable->cpu || idle_share < IDLE_SHARE_MIN || timing_pin_cpu(idlest) != 0) {
        return;
    }
    const uint64_t alone_before = watch->alone;

    for (unsigned look = 0; look < LOOKS_MIN; look++) {
        (void)core_watch_look(watch);
    }
    if ((double)(watch->alone - alone_before) / LOOKS_MIN > share + MOVE_GAIN_SHARE) {
        work->movable->cpu = idlest;
    } else {
        (void)timing_pin_cpu(work->movable->cpu);
    }
}

void geometry_look(struct geometry_work *work)
{
    const double wall_ns = (double)(timing_now_ns() - work->idle.wall_ns);
    const double cpu_ns = (double)(timing_thread_cpu_ns() - work->cpu_ns);

    if (work->idle.wall_ns != 0 && wall_ns <= LOOK_NS_MIN) {
        return;
    }
    work->cpu_share = work->idle.wall_ns == 0 ? 1 : cpu_ns / wall_ns;
    if (work->cpu_share < HELD_CPU_SHARE) {
        leave_held_core(work);
    } else if (work->idle.wall_ns != 0) {
        leave_shared_core(work);
    }
    work->watched_looks = work->ladder->watch.looks;
    work->watched_alone = work->ladder->watch.alone;
    timing_look_idle(&work->idle);
    work->cpu_ns = timing_thread_cpu_ns();
}

void geometry_start_ladder(struct geometry_work *work)
{
    geometry_look(work);
    work->ladder->count = 0;
    work->ladder->seed = ++work->stream;
}

struct ladder_effort geometry_effort(const struct geometry_work *work, double share)
{
    struct ladder_effort effort = work->effort;
    const double planned = share * deadline_remaining_seconds(work->part_end);
    const double left = deadline_remaining_seconds(work->session->deadline) - LAST_MARGIN_SECONDS;

    effort.end = deadline_after(planned);
    /* What lies past the part's own end comes out of the parts behind it: a tenth of what is left at most. */
    effort.last = deadline_after(fmax(0, fmin(left, 2 * planned + 0.1 * left)));
    if (work->cpu_share < HELD_CPU_SHARE) {
        effort.batch_seconds *= fmax(work->cpu_share, HELD_BATCH_SHARE_MIN);
    } else if (core_watch_share(&work->ladder->watch) < SHARED_SHARE_MAX) {
        effort.batch_seconds *= SHARED_BATCH_SHARE;
    }
    return effort;
}
