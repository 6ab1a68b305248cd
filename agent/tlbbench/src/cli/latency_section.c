/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/latency_section.h"

/* The parts' shares of the section's time, and what they need at most. */
#define WALKS_SHARE 0.12
#define QUICK_WALKS_SECONDS 2.5
#define FULL_WALKS_SECONDS 20.0
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

static bool wants(const struct options *options, enum latency_curve part)
{
    return (options->latency.curves & SET_BIT(part)) != 0;
}

static bool wants_curves(const struct options *options)
{
    return (options->latency.curves & (SET_BIT(LAYOUT_COUNT) - 1)) != 0;
}

/* Of what is left of the section's time; all of it where no part comes after. */
static double part_seconds(const struct options *options, double left_seconds, double share, const double most[2])
{
    double seconds = options->profile == PROFILE_FULL ? most[1] : most[0];

    return share * left_seconds < seconds ? share * left_seconds : seconds;
}

static void begin_part(struct session *part, struct part_progress *progress, double share, double seconds)
{
    progress->from += progress->share;
    progress->share = share;
    part->deadline = deadline_earlier(progress->whole->deadline, deadline_after(seconds));
}

int latency_section_measure(struct session *session, const struct options *options, struct run_result *result)
{
    static const double walks_most[] = {QUICK_WALKS_SECONDS, FULL_WALKS_SECONDS};
    static const double pressure_most[] = {QUICK_PRESSURE_SECONDS, FULL_PRESSURE_SECONDS};
    double whole = fmax(deadline_remaining_seconds(session->deadline), 1e-3);
    bool has_walks = wants(options, LATENCY_WALKS);
    bool has_pressure = wants(options, LATENCY_PRESSURE);
    double walks = !has_walks                              ? 0
                   : wants_curves(options) || has_pressure ? part_seconds(options, whole, WALKS_SHARE, walks_most)
                                                           : part_seconds(options, whole, 1, walks_most);
    double pressure =
        !has_pressure ? 0
                      : part_seconds(options, whole - walks, wants_curves(options) ? PRESSURE_SHARE : 1, pressure_most);
    struct part_progress progress = {session, 0, 0};
    struct session part = *session;

    result->latency = calloc(1, sizeof(*result->latency));
    result->pressure = calloc(1, sizeof(*result->pressure));
    result->walks = calloc(1, sizeof(*result->walks));
    if (result->latency == NULL || result->pressure == NULL || result->walks == NULL)
        return -1;
    part.progress = report_part;
    part.progress_context = &progress;
    verdict_set(&result->pressure->verdict, STATUS_SKIPPED, "the measurement did not come to it");
    result->walks->verdict = result->pressure->verdict;
    if (wants_curves(options)) {
        begin_part(&part, &progress, 1 - (walks + pressure) / whole, whole - walks - pressure);
        if (latency_measure(&part, &options->latency, result->latency) != 0)
            return -1;
    }
    if (has_walks) {
        begin_part(&part, &progress, walks / whole, walks);
        if (walks_measure(&part, result->walks) != 0)
            return -1;
    } else {
        verdict_set(&result->walks->verdict, STATUS_SKIPPED, "--curves left it out");
    }
    if (!has_pressure) {
        verdict_set(&result->pressure->verdict, STATUS_SKIPPED, "--curves left it out");
        return 0;
    }
    begin_part(&part, &progress, pressure / whole, pressure);
    return pressure_measure(&part, result->pressure);
}
