/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor counted, in the document and in the report. */
#include "output/report.h"
#include "output/report_text.h"
#include "output/to_json.h"

static const char *const MODE_NAMES[COUNT_MODES] = {"user", "kernel"};

static void mode_to_json(const struct mode_counts *mode, const char *key, struct json *j)
{
    json_begin_object(j, key);
    for (int kind = 0; kind < COUNT_KINDS; kind++)
        if (isnan(mode->values[kind]))
            json_null(j, COUNT_NAMES[kind]);
        else
            json_u64(j, COUNT_NAMES[kind], (uint64_t)llround(mode->values[kind]));
    json_double(j, "walk_fraction", mode->walk_fraction);
    json_end_object(j);
}

static void event_to_json(const struct counters_result *result, const struct event_count *count, struct json *j)
{
    char config[24];

    (void)snprintf(config, sizeof(config), "0x%" PRIx64, pmu_event_config(count->event));
    json_begin_object(j, NULL);
    json_string(j, "name", count->event->name);
    json_string(j, "counts", COUNT_NAMES[count->event->count]);
    json_string(j, "mode", MODE_NAMES[count->mode]);
    json_u64(j, "group", count->group);
    json_string(j, "config", config);
    json_bool(j, "supported", count->is_supported);
    json_u64(j, "value", count->sum.value);
    json_u64(j, "enabled_ns", count->sum.enabled_ns);
    json_u64(j, "running_ns", count->sum.running_ns);
    json_double(j, "scaled", count->scaled);
    json_string(j, "source", result->set->source);
    json_string(j, "source_date", result->set->date);
    json_end_object(j);
}

void counters_to_json(const struct counters_request *request, const struct counters_result *result, struct json *j)
{
    json_begin_object(j, "counters");
    verdict_to_json(&result->verdict, j);
    json_u64_or_null(j, "pid", (uint64_t)request->pid, 0);
    json_text_or_null(j, "cgroup", request->cgroup != NULL ? request->cgroup : "");
    json_string(j, "event_set", result->set->id);
    json_string(j, "walk_cycles_are", WALK_CYCLES_NAMES[result->set->walk_cycles]);
    json_u64(j, "threads", result->threads);
    json_u64(j, "targets_counted", result->threads_counted);
    json_double(j, "seconds", result->seconds);
    json_double(j, "running_fraction", result->running_fraction);
    json_double(j, "overhead_fraction", result->overhead_fraction);
    json_text_or_null(j, "kernel_reason", result->kernel_verdict.reason);
    for (int mode = 0; mode < COUNT_MODES; mode++)
        mode_to_json(&result->modes[mode], MODE_NAMES[mode], j);
    mode_to_json(&result->total, "total", j);
    json_begin_array(j, "events");
    for (size_t i = 0; result->threads_counted > 0 && i < result->count; i++)
        event_to_json(result, &result->counts[i], j);
    json_end_array(j);
    json_end_object(j);
}

static void print_mode(FILE *out, const char *name, const struct mode_counts *mode)
{
    (void)fprintf(out, "  %-7s", name);
    for (int kind = 0; kind < COUNT_KINDS; kind++)
        if (isnan(mode->values[kind]))
            (void)fprintf(out, " %17s", "?");
        else
            (void)fprintf(out, " %17.3g", mode->values[kind]);
    if (isnan(mode->walk_fraction))
        (void)fputs("       ?\n", out);
    else
        (void)fprintf(out, "  %4.1f %%\n", 100.0 * mode->walk_fraction);
}

void report_counters(FILE *out, const struct counters_result *result)
{
    if (result->verdict.status != STATUS_OK)
        report_wrapped(out, "page walks:", 12, "%s", verdict_words(&result->verdict));
    if (result->threads_counted == 0)
        return;
    (void)fprintf(out, "events of %s (%s, %s), %.1f s\n  %-7s", result->set->id, result->set->source, result->set->date,
                  result->seconds, "");
    for (int kind = 0; kind < COUNT_KINDS; kind++)
        (void)fprintf(out, " %17s", COUNT_NAMES[kind]);
    (void)fputs("   walks\n", out);
    for (int mode = 0; mode < COUNT_MODES; mode++)
        print_mode(out, MODE_NAMES[mode], &result->modes[mode]);
    print_mode(out, "total", &result->total);
    if (result->running_fraction < 1.0)
        report_wrapped(out, "  -", 4,
                       "multiplexed: the event counted least was counted %.0f %% of the time; the counts "
                       "are scaled",
                       100.0 * result->running_fraction);
    if (result->set->walk_cycles == WALK_CYCLES_NONE)
        report_wrapped(out, "  -", 4, "this processor counts walks, but not the cycles that they take");
    if (result->kernel_verdict.reason[0] != '\0')
        report_wrapped(out, "  -", 4, "the kernel's side is not counted: %s", result->kernel_verdict.reason);
    if (result->threads_counted < result->threads)
        report_wrapped(out, "  -", 4, "%zu of %zu threads are counted", result->threads_counted, result->threads);
}

void witness_to_json(const struct walk_witness *witness, struct json *j)
{
    json_begin_object(j, "counted_walks");
    verdict_to_json(&witness->verdict, j);
    json_u64_or_null(j, "held_pages", witness->held_pages, 0);
    json_double(j, "held_fraction", witness->held_fraction);
    json_u64_or_null(j, "missed_pages", witness->missed_pages, 0);
    json_double(j, "missed_fraction", witness->missed_fraction);
    json_end_object(j);
}

void report_witness(FILE *out, const struct walk_witness *witness)
{
    if (witness->verdict.status == STATUS_OK && witness->held_pages > 0)
        REPORT_LINE(out, "counted walks",
                    "the processor counts them at %.1f %% of the accesses to %" PRIu64 " pages, at %.0f %% of those "
                    "to %" PRIu64,
                    100 * witness->held_fraction, witness->held_pages, 100 * witness->missed_fraction,
                    witness->missed_pages);
    else
        REPORT_LINE(out, "counted walks", "%s", verdict_words(&witness->verdict));
}
