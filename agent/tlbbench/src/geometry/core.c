/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep may cost. On a quiet core the plan is met with time to spare; where the CPU is contended, every
 * part gets its share of the time that is left, so that all end with something, if coarser. */
#include "geometry/work.h"
#include "timing/core_probe.h"

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

/* A guest that runs on the SMT sibling of one core seldom has that of another, too. An idle core is tried for a
 * moment. */
static void leave_contended_core(struct geometry_work *work)
{
    struct smt_watch *watch = &work->sweep->watch;
    uint64_t samples = watch->samples - work->watched_samples; /* since the last sweep */
    double share = (double)(watch->idle - work->watched_idle) / (double)samples;
    double idle_share;

    if (samples < WATCH_SAMPLES_MIN || share > SIBLING_IDLE_SHARE_MIN)
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

/* Sharing a line counts as costly from here: twice what placement noise does to an L1 hit. */
#define SHARED_LINE_COST_SHARE 0.10

enum { CALIBRATION_PAGES = 32 }; /* below every first-level TLB in the catalogue, above what one cache line holds */

/* Least ns of one cycle of CALIBRATION_PAGES pages with these slots, and of its packed view: neighbours only add. */
static int time_calibration(struct geometry_work *work, enum window_slots slots, double *view_ns, double *packed_ns,
                            struct verdict *verdict)
{
    uint64_t base = work->session->base_page_bytes;
    struct window_request request = {
        .page_bytes = base, .base_bytes = base, .stride_pages = 1, .pages_max = CALIBRATION_PAGES, .slots = slots};
    struct window window;

    if (window_open(&window, &request, verdict) != 0)
        return -1;
    geometry_start_sweep(work);
    struct sweep_effort effort = geometry_effort(work, 0.5);
    struct sweep_source source = sweep_of_window(&window);

    sweep_add_point(work->sweep, CALIBRATION_PAGES);
    effort.control = true;
    int result = sweep_measure(work->sweep, &source, &effort, work->session, verdict);

    *view_ns = work->sweep->cells[0].view.stats.ns_min;
    *packed_ns = work->sweep->cells[0].packed.stats.ns_min;
    window_close(&window);
    return result;
}

int geometry_calibrate(struct geometry_work *work, struct verdict *verdict)
{
    double lines_ns, packed_ns, shared_ns, ignored_ns;

    work->result->clock.core_hz = core_clock_hz();
    if (time_calibration(work, WINDOW_SLOTS_LINES, &lines_ns, &packed_ns, verdict) != 0 ||
        time_calibration(work, WINDOW_SLOTS_SHARED, &shared_ns, &ignored_ns, verdict) != 0)
        return -1;
    work->l1_hit_ns = INFINITY;
    geometry_note_hit(work, fmin(lines_ns, packed_ns));
    bool is_costly = shared_ns - lines_ns > SHARED_LINE_COST_SHARE * lines_ns;

    work->result->alias_cost_ns = shared_ns - lines_ns;
    work->slots = is_costly ? WINDOW_SLOTS_LINES : WINDOW_SLOTS_WORDS;
    work->result->method = is_costly ? METHOD_DISTINCT_LINES : METHOD_ALIASED;
    return 0;
}
