/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry/work.h"
#include "timing/core_probe.h"

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

/* Core clock, L1 hit, and whether several pages on one cache line cost anything. */
int geometry_calibrate(struct geometry_work *work, struct verdict *verdict)
{
    double lines_ns, packed_ns, shared_ns, ignored_ns;

    work->result->clock.core_hz = core_clock_hz();
    if (time_calibration(work, WINDOW_SLOTS_LINES, &lines_ns, &packed_ns, verdict) != 0 ||
        time_calibration(work, WINDOW_SLOTS_SHARED, &shared_ns, &ignored_ns, verdict) != 0)
        return -1;
    work->l1_hit_ns = INFINITY;
    geometry_note_hit(work, fmin(lines_ns, packed_ns));
    work->result->alias_cost_ns = shared_ns - lines_ns;
    if (shared_ns - lines_ns > SHARED_LINE_COST_SHARE * lines_ns) {
        work->slots = WINDOW_SLOTS_LINES;
        work->result->method = METHOD_DISTINCT_LINES;
    } else {
        work->slots = WINDOW_SLOTS_WORDS;
        work->result->method = METHOD_ALIASED;
    }
    return 0;
}
