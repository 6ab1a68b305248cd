/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep may cost. On a quiet core the plan is met with time to spare; where the CPU is contended, every
 * part gets its share of the time that is left, so that all end with something, if coarser. */
#include "geometry/work.h"

/* Constants that name no source: as in timing/knee.c. */

/* A CPU is contended when a sweep got less than this share of it; shorter ones say too little. */
#define CONTENDED_CPU_SHARE 0.9
#define WATCH_NS_MIN 3e7
/* Another core is worth a move when it idled by this share of the time more than this one ran us. */
#define MOVE_GAIN_SHARE 0.1
/* Samples that say something of a core, and the share of ones with an idle sibling below which another core is tried.
 */
enum { WATCH_SAMPLES_MIN = 200 };
#define SIBLING_IDLE_SHARE_MIN 0.5
/* Of a batch, where the sibling's pauses are short. */
#define SMT_BATCH_SHARE 0.35
#define IDLE_SHARE_MIN 0.9
/* Of a section's time; the rest is for what was begun last. */
#define PLANNED_SHARE 0.9
#define LAST_MARGIN_SECONDS 0.1

/* On a contended CPU batches shrink with the share of it, to this at least: time is short and slices end. */
#define CONTENDED_BATCH_SHARE_MIN 0.25

struct deadline geometry_planned_end(const struct session *session)
{
    return deadline_after(PLANNED_SHARE * deadline_remaining_seconds(session->deadline));
}

/* Other work that came after the core was chosen makes a sweep slow long before it makes it noisy. Then the core that
 * idled most meanwhile is taken, if it would give more. */
static void leave_contended_cpu(struct geometry_work *work)
{
    double idle_share;

    work->contended = true;
    int idlest = cpus_idlest(&work->idle, &work->session->cpus, &idle_share);

    if (idlest >= 0 && idlest != work->session->cpu && idle_share > work->cpu_share + MOVE_GAIN_SHARE) {
        work->session->cpu = idlest;
        (void)cpus_pin(idlest);
    }
}

/* Share of the samples since the last sweep that found the sibling idle; NAN when there were few. */
static double idle_share_since(const struct geometry_work *work)
{
    const struct smt_watch *now = &work->sweep->watch;
    uint64_t samples = now->samples - work->watched_samples;

    return samples >= WATCH_SAMPLES_MIN ? (double)(now->idle - work->watched_idle) / (double)samples : NAN;
}

/* A guest that runs on the SMT sibling of one core seldom has that of another, too. An idle core is tried for a
 * moment. */
static void leave_contended_core(struct geometry_work *work)
{
    struct smt_watch *watch = &work->sweep->watch;
    double share = idle_share_since(work);
    double idle_share;

    if (isnan(share) || share > SIBLING_IDLE_SHARE_MIN)
        return;
    int idlest = cpus_idlest(&work->idle, &work->session->cpus, &idle_share);

    if (idlest < 0 || idlest == work->session->cpu || idle_share < IDLE_SHARE_MIN || cpus_pin(idlest) != 0)
        return;
    uint64_t idle_before = watch->idle;

    for (unsigned look = 0; look < WATCH_SAMPLES_MIN; look++)
        (void)smt_watch_sample(watch);
    if ((double)(watch->idle - idle_before) / WATCH_SAMPLES_MIN > share + MOVE_GAIN_SHARE)
        work->session->cpu = idlest;
    else
        (void)cpus_pin(work->session->cpu);
}

void geometry_watch_core(struct geometry_work *work)
{
    double wall_ns = (double)(clock_now_ns() - work->idle.wall_ns);
    double cpu_ns = (double)(clock_thread_cpu_ns() - work->cpu_ns);

    if (work->idle.wall_ns != 0 && wall_ns <= WATCH_NS_MIN)
        return;
    work->cpu_share = work->idle.wall_ns == 0 ? 1 : cpu_ns / wall_ns;
    if (work->cpu_share < CONTENDED_CPU_SHARE)
        leave_contended_cpu(work);
    else if (work->idle.wall_ns != 0)
        leave_contended_core(work);
    work->watched_samples = work->sweep->watch.samples;
    work->watched_idle = work->sweep->watch.idle;
    cpus_sample_idle(&work->idle);
    work->cpu_ns = clock_thread_cpu_ns();
}

void geometry_start_sweep(struct geometry_work *work)
{
    geometry_watch_core(work);
    work->sweep->count = 0;
    work->sweep->seed = ++work->stream;
}

struct sweep_effort geometry_effort(const struct geometry_work *work, double share)
{
    struct sweep_effort effort = work->effort;
    double planned = share * deadline_remaining_seconds(work->part_end);
    double left = deadline_remaining_seconds(work->session->deadline) - LAST_MARGIN_SECONDS;

    effort.end = deadline_after(planned);
    /* What lies past the part's own end comes out of the parts behind it: a tenth of what is left at most. */
    effort.last = deadline_after(fmax(0, fmin(left, 2 * planned + 0.1 * left)));
    if (work->cpu_share < CONTENDED_CPU_SHARE)
        effort.batch_seconds *= fmax(work->cpu_share, CONTENDED_BATCH_SHARE_MIN);
    else if (smt_watch_idle_share(&work->sweep->watch) < SIBLING_IDLE_SHARE_MIN)
        effort.batch_seconds *= SMT_BATCH_SHARE;
    return effort;
}
