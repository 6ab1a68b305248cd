/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/latency_section.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/verdict.h"
#include "latency/result.h"
#include "pressure/result.h"

#include <stdlib.h>

/* The pressure's part of the section's time, and what it needs at most. */
#define PRESSURE_SHARE 0.33
#define QUICK_PRESSURE_SECONDS 7.5
#define FULL_PRESSURE_SECONDS 36.0

struct part_progress {
    const struct session *whole;
    double from, share;
};

static void report_part(void *context, double fraction)
{
    const struct part_progress *part = context;

    session_report_progress(part->whole, part->from + part->share * fraction);
}

static bool wants_curves(const struct options *options)
{
    return (options->latency.curves & (SET_BIT(LAYOUT_COUNT) - 1)) != 0;
}

static bool wants_pressure(const struct options *options)
{
    return (options->latency.curves & SET_BIT(LATENCY_PRESSURE)) != 0;
}

static double pressure_seconds(const struct options *options, double whole_seconds)
{
    double most = options->profile == PROFILE_FULL ? FULL_PRESSURE_SECONDS : QUICK_PRESSURE_SECONDS;
    double share = wants_curves(options) ? PRESSURE_SHARE * whole_seconds : whole_seconds;

    if (!wants_pressure(options))
        return 0;
    return share < most ? share : most;
}

int latency_section_measure(struct session *session, const struct options *options, struct run_result *result)
{
    double whole_seconds = deadline_remaining_seconds(session->deadline);
    double seconds = pressure_seconds(options, whole_seconds);
    double share = whole_seconds > 0 ? seconds / whole_seconds : 0;
    struct part_progress progress = {session, 0, 1 - share};
    struct session part = *session;

    result->latency = calloc(1, sizeof(*result->latency));
    result->pressure = calloc(1, sizeof(*result->pressure));
    if (result->latency == NULL || result->pressure == NULL)
        return -1;
    part.progress = report_part;
    part.progress_context = &progress;
    part.deadline = deadline_after(whole_seconds - seconds);
    verdict_set(&result->pressure->verdict, STATUS_SKIPPED, "the measurement did not come to it");
    if (wants_curves(options) && latency_measure(&part, &options->latency, result->latency) != 0)
        return -1;
    if (!wants_pressure(options)) {
        verdict_set(&result->pressure->verdict, STATUS_SKIPPED, "--curves left it out");
        return 0;
    }
    progress = (struct part_progress){session, 1 - share, share};
    part.deadline = deadline_earlier(session->deadline, deadline_after(seconds));
    return pressure_measure(&part, result->pressure);
}
