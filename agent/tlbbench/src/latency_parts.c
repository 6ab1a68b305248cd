/* SPDX-License-Identifier: Apache-2.0 */
#include "latency_series.h"

#include "latency_pressure.h"

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
    const struct part_progress *const part = context;

    session_report_progress(part->whole, part->from + part->share * fraction);
}

static bool wants_curves(const struct session *session)
{
    return (session->options->curves & (OPTION_BIT(LAYOUT_COUNT) - 1)) != 0;
}

static bool wants_pressure(const struct session *session)
{
    return (session->options->curves & OPTION_BIT(LATENCY_PRESSURE)) != 0;
}

static double pressure_seconds(const struct session *session, double whole_seconds)
{
    const double most = session->options->profile == PROFILE_FULL ? FULL_PRESSURE_SECONDS : QUICK_PRESSURE_SECONDS;
    const double share = wants_curves(session) ? PRESSURE_SHARE * whole_seconds : whole_seconds;

    if (!wants_pressure(session)) {
        return 0;
    }
    return share < most ? share : most;
}

int latency_measure(const struct session *session, struct latency_result *result)
{
    const double whole_seconds = deadline_remaining_seconds(session->deadline);
    const double seconds = pressure_seconds(session, whole_seconds);
    const double share = whole_seconds > 0 ? seconds / whole_seconds : 0;
    struct part_progress progress = {session, 0, 1 - share};
    struct session part = *session;

    part.progress = report_part;
    part.progress_context = &progress;
    part.deadline = deadline_after(whole_seconds - seconds);
    *result = (struct latency_result){.pressure.verdict = {STATUS_SKIPPED, "the measurement did not come to it"}};
    if (wants_curves(session) && latency_measure_curves(&part, result) != 0) {
        return -1;
    }
    if (!wants_pressure(session)) {
        verdict_set(&result->pressure.verdict, STATUS_SKIPPED, "--curves left it out");
        return 0;
    }
    progress = (struct part_progress){session, 1 - share, share};
    part.deadline = deadline_earlier(session->deadline, deadline_after(seconds));
    const int status = latency_measure_pressure(&part, &result->pressure);

    if (result->pressure.peak_mapped_bytes > result->peak_mapped_bytes) {
        result->peak_mapped_bytes = result->pressure.peak_mapped_bytes;
    }
    return status;
}
