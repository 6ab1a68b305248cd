/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "report_verdict.h"
#include "tlb.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CURVES = 32 };

static bool in_same_plot(const struct curve *a, const struct curve *b)
{
    return strcmp(a->x_name, b->x_name) == 0 && strcmp(a->layout, b->layout) == 0;
}

/* Curves that support a number and are no result of their own: the control that touches no further page, and the
 * fracture test. The document holds them. */
static bool is_supporting(const struct curve *curve)
{
    return strcmp(curve->layout, "packed") == 0 || strcmp(curve->layout, "part_per_line") == 0;
}

/* One plot for each layout, in the order of the curves. */
static void report_curves(FILE *out, const char *title, const struct curve_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct curve *group[MOST_CURVES];
        size_t count = 0;
        bool is_first = true;

        for (size_t k = 0; k < i; k++)
            is_first = is_first && !(in_same_plot(&list->items[k], &list->items[i]) && list->items[k].point_count > 0);
        if (!is_first || list->items[i].point_count == 0 || is_supporting(&list->items[i]))
            continue;
        for (size_t k = i; k < list->count && count < MOST_CURVES; k++)
            if (in_same_plot(&list->items[k], &list->items[i]) && list->items[k].point_count > 0)
                group[count++] = &list->items[k];
        (void)fprintf(out, "\n%s, layout %s\n", title, list->items[i].layout);
        report_plot(out, group, count);
    }
}

static void report_clock(FILE *out, const struct core_clock *clock)
{
    if (!isfinite(clock->core_hz) || clock->core_hz <= 0) {
        (void)fputs("core clock    not known: cycles are not given\n", out);
        return;
    }
    (void)fprintf(out, "core clock    %.2f GHz while measuring, L1 data hit %.2f ns = %.1f cycles\n",
                  clock->core_hz / 1e9, clock->l1_hit_ns, clock->l1_hit_cycles);
}

static void report_geometry(FILE *out, const struct geometry_result *geometry)
{
    (void)fputs("\nmeasured\n", out);
    report_clock(out, &geometry->clock);
    for (size_t i = 0; i < geometry->penalty_count; i++) {
        const struct penalty *p = &geometry->penalties[i];
        char page[PAGE_TEXT_BYTES];

        (void)fprintf(out, "%-13s %s pages: +%.2f ns", strcmp(p->level, "l2_hit") == 0 ? "L2 TLB hit" : "page walk",
                      page_text(p->page_bytes, page), p->ns);
        if (isfinite(p->ns_min) && isfinite(p->ns_max))
            (void)fprintf(out, " (%.2f to %.2f)", p->ns_min, p->ns_max);
        if (isfinite(p->cycles))
            (void)fprintf(out, ", %.1f cycles", p->cycles);
        (void)fputc('\n', out);
    }
    report_curves(out, "translation", &geometry->curves);
}

static void report_latency(FILE *out, const struct latency_result *latency)
{
    char size[SIZE_TEXT_BYTES];

    report_curves(out, "latency", &latency->curves);
    if (latency->delta_count > 0)
        (void)fputs("\nagainst base pages (ns per access, 95 % interval; negative is faster)\n", out);
    for (size_t i = 0; i < latency->delta_count; i++) {
        const struct paired_delta *d = &latency->deltas[i];

        (void)fprintf(out, "  %-5s %-14s %10s  %+8.2f  (%+.2f to %+.2f)\n", d->backing, d->layout,
                      size_text((int64_t)d->x, size), d->delta_ns, d->ci95_low_ns, d->ci95_high_ns);
    }
}

static void report_row(FILE *out, const struct row_measurement *m)
{
    char width[SIZE_TEXT_BYTES];
    char page_tables[SIZE_TEXT_BYTES];

    (void)fprintf(out, "  %-8s %-8s %-14s %-9s %7u %-5s", size_text((int64_t)m->row_bytes, width),
                  row_keys_name(m->keys), row_read_name(m->read), row_mode_name(m->mode), m->workers, m->backing);
    if (m->verdict.status != STATUS_OK) {
        (void)fprintf(out, " %s\n", status_name(m->verdict.status));
        return;
    }
    if (m->vm_pte_bytes_per_process <= INT64_MAX)
        (void)size_text((int64_t)m->vm_pte_bytes_per_process, page_tables);
    else
        (void)snprintf(page_tables, sizeof page_tables, "?");
    (void)fprintf(out, " %9.2f %8.0f %8.0f %8.0f %10s\n", m->rows_per_second / 1e6, m->ns_p50, m->ns_p90, m->ns_p99,
                  page_tables);
}

static void report_rows(FILE *out, const struct rows_result *rows)
{
    if (rows->measurement_count > 0)
        (void)fputs(
            "\nrows\n  width    keys     read           by        workers pages  Mrows/s   ns p50      p90      "
            "p99 tables/proc\n",
            out);
    for (size_t i = 0; i < rows->measurement_count; i++)
        report_row(out, &rows->measurements[i]);
    for (size_t i = 0; i < rows->break_even_count; i++)
        (void)fprintf(out, "%s  %s\n", i == 0 ? "\nconnections\n" : "", rows->break_evens[i].text);
}

static void report_scatter(FILE *out, const struct scatter_result *scatter)
{
    report_curves(out, "scatter: one hot line in each of k huge pages", &scatter->curves);
    if (scatter->crossing_hot_lines >= 0)
        (void)fprintf(out, "\nscatter       from %" PRId64 " hot lines on, %s pages no longer beat base pages\n",
                      scatter->crossing_hot_lines, scatter->crossing_backing);
    else if (scatter->crossing_status == STATUS_NOT_REACHED)
        (void)fprintf(out,
                      "\nscatter       huge pages were not slower than base pages anywhere between %" PRIu64
                      " and %" PRIu64 " hot lines\n",
                      scatter->tested_min, scatter->tested_max);
    else
        (void)fprintf(out, "\nscatter       not known: %s\n", status_name(scatter->crossing_status));
}

void report_run(FILE *out, const struct environment *environment, const struct run_result *run)
{
    if (run->geometry != NULL) {
        report_levels(out, environment, &run->geometry->levels, run->geometry->disagreements,
                      run->geometry->disagreement_count);
        report_geometry(out, run->geometry);
    }
    if (run->latency != NULL)
        report_latency(out, run->latency);
    if (run->rows != NULL)
        report_rows(out, run->rows);
    if (run->scatter != NULL)
        report_scatter(out, run->scatter);
    report_verdicts(out, environment, run);
    report_missing(out, run);
}
