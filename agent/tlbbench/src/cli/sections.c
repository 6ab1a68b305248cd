/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sections.h"

/* A size whose pool was never filled is a fact about the node; one that was requested, by name or by reserving, or
 * whose pool is used up, is missing. */
static bool is_missing(const struct section_call *call, enum status status, uint64_t page_bytes)
{
    const struct pool *pool = environment_pool(call->session->environment, page_bytes);

    switch (status) {
    case STATUS_OK:
    case STATUS_FRACTURED:
    case STATUS_NOT_REACHED:
    case STATUS_CPUID_HIDDEN:
        return false;
    case STATUS_THP_NOT_GRANTED: /* the kernel's settings, where nobody requested THP by name */
        return call->options->thp;
    case STATUS_NO_FREE_HUGEPAGES:
        return call->options->reserve || call->options->page_sizes.count > 0 || (pool != NULL && pool->nr > 0);
    default:
        return true;
    }
}

static bool curves_miss(const struct section_call *call, const struct curve_list *curves)
{
    for (size_t index = 0; index < curves->count; index++)
        if (is_missing(call, curves->items[index].verdict.status, curves->items[index].backing.page_bytes))
            return true;
    return false;
}

static int measure_geometry(const struct section_call *call)
{
    call->result->geometry = &call->result->own->geometry;
    return geometry_measure(call->session, call->result->geometry);
}

static bool geometry_is_partial(const struct section_call *call)
{
    const struct geometry_result *geometry = call->result->geometry;

    for (size_t index = 0; index < geometry->effective_page_count; index++)
        if (is_missing(call, geometry->effective_pages[index].verdict.status,
                       geometry->effective_pages[index].backing.page_bytes))
            return true;
    return curves_miss(call, &geometry->curves);
}

/* --- latency: the curves, the walks, then the pressure, which share its time -------------------------------------- */

/* The parts' shares of the section's time, and what they need at most, by profile. */
#define WALKS_SHARE 0.12
#define PRESSURE_SHARE 0.33
static const double WALKS_SECONDS[] = {[PROFILE_QUICK] = 2.5, [PROFILE_FULL] = 20};
static const double PRESSURE_SECONDS[] = {[PROFILE_QUICK] = 7.5, [PROFILE_FULL] = 36};

struct part_progress {
    const struct session *whole;
    double from, share;
};

static void report_part(void *context, double fraction)
{
    const struct part_progress *part = context;

    session_report_progress(part->whole, part->from + part->share * fraction);
}

static void begin_part(struct session *part, struct part_progress *progress, double share, double seconds)
{
    progress->from += progress->share;
    progress->share = share;
    part->deadline = deadline_earlier(progress->whole->deadline, deadline_after(seconds));
}

/* A part gets its share of what is left; all of it where no part comes after. */
static int measure_latency(const struct section_call *call)
{
    const struct options *options = call->options;
    struct run_result *result = call->result;
    bool has_curves = (options->latency.curves & (SET_BIT(LAYOUT_COUNT) - 1)) != 0;
    bool has_walks = (options->latency.curves & SET_BIT(LATENCY_WALKS)) != 0;
    bool has_pressure = (options->latency.curves & SET_BIT(LATENCY_PRESSURE)) != 0;
    double whole = fmax(deadline_remaining_seconds(call->session->deadline), 1e-3);
    double walks = (has_curves || has_pressure ? WALKS_SHARE : 1) * whole;
    struct part_progress progress = {call->session, 0, 0};
    struct session part = *call->session;

    walks = has_walks ? fmin(walks, WALKS_SECONDS[options->profile]) : 0;
    double pressure = (has_curves ? PRESSURE_SHARE : 1) * (whole - walks);

    pressure = has_pressure ? fmin(pressure, PRESSURE_SECONDS[options->profile]) : 0;
    result->latency = &result->own->latency;
    result->pressure = &result->own->pressure;
    result->walks = &result->own->walks;
    part.progress = report_part;
    part.progress_context = &progress;
    verdict_set(&result->walks->verdict, STATUS_SKIPPED,
                has_walks ? "the measurement did not come to it" : "--curves left it out");
    verdict_set(&result->pressure->verdict, STATUS_SKIPPED,
                has_pressure ? "the measurement did not come to it" : "--curves left it out");
    begin_part(&part, &progress, has_curves ? 1 - (walks + pressure) / whole : 0, whole - walks - pressure);
    if (has_curves && latency_measure(&part, &options->latency, result->latency) != 0)
        return -1;
    begin_part(&part, &progress, walks / whole, walks);
    if (has_walks && walks_measure(&part, result->walks) != 0)
        return -1;
    begin_part(&part, &progress, pressure / whole, pressure);
    return has_pressure ? pressure_measure(&part, result->pressure) : 0;
}

static bool latency_is_partial(const struct section_call *call)
{
    enum status pressure = call->result->pressure->verdict.status;

    /* Without a large page the curves say whose it is; without a size to compare with there was nothing to do. */
    return curves_miss(call, &call->result->latency->curves) ||
           (pressure != STATUS_SKIPPED && pressure != STATUS_NO_FREE_HUGEPAGES && pressure != STATUS_THP_NOT_GRANTED &&
            is_missing(call, pressure, 0));
}

static int measure_rows(const struct section_call *call)
{
    call->result->rows = &call->result->own->rows;
    return rows_measure(call->session, &call->options->rows, call->result->rows);
}

static bool rows_is_partial(const struct section_call *call)
{
    const struct rows_result *rows = call->result->rows;

    for (size_t index = 0; index < rows->measurement_count; index++) {
        const struct row_measurement *item = &rows->measurements[index];

        if (is_missing(call, item->verdict.status, item->backing.page_bytes))
            return true;
    }
    return false;
}

static int measure_scatter(const struct section_call *call)
{
    call->result->scatter = &call->result->own->scatter;
    return scatter_measure(call->session, call->result->scatter);
}

static bool scatter_is_partial(const struct section_call *call)
{
    return curves_miss(call, &call->result->scatter->curves);
}

struct verdict *section_verdict(const struct section *section, struct run_result *result)
{
    void *found = NULL;

    memcpy(&found, (const char *)result + section->result, sizeof(found));
    return found;
}

const struct section SECTIONS[SECTION_COUNT] = {
    {"geometry", COMMAND_GEOMETRY, 5, 8, 25, measure_geometry, offsetof(struct run_result, geometry),
     geometry_is_partial},
    {"latency", COMMAND_LATENCY, 20, 18, 145, measure_latency, offsetof(struct run_result, latency),
     latency_is_partial},
    {"rows", COMMAND_ROWS, 30, 27, 105, measure_rows, offsetof(struct run_result, rows), rows_is_partial},
    {"scatter", COMMAND_SCATTER, 5, 5, 20, measure_scatter, offsetof(struct run_result, scatter), scatter_is_partial},
};
