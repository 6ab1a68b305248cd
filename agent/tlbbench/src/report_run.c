/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "report_pressure.h"
#include "report_rows.h"
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

/* Columns of the table of one layout: the backings in the order they come. */
struct delta_table {
    const char *backings[8];
    size_t count;
};

static void add_backing(struct delta_table *table, const char *backing)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->backings[i], backing) == 0)
            return;
    if (table->count < sizeof table->backings / sizeof table->backings[0])
        table->backings[table->count++] = backing;
}

static const struct paired_delta *find_delta(const struct latency_result *latency, const char *layout, uint64_t x,
                                             const char *backing)
{
    for (size_t i = 0; i < latency->delta_count; i++) {
        const struct paired_delta *d = &latency->deltas[i];

        if (d->x == x && strcmp(d->layout, layout) == 0 && strcmp(d->backing, backing) == 0)
            return d;
    }
    return NULL;
}

/* A difference whose 95 % interval leaves out zero is marked. */
static void report_delta(FILE *out, const struct paired_delta *d)
{
    if (d == NULL || !isfinite(d->delta_ns))
        (void)fprintf(out, " %10s ", "?");
    else
        (void)fprintf(out, " %+10.2f%c", d->delta_ns, d->ci95_low_ns > 0 || d->ci95_high_ns < 0 ? '*' : ' ');
}

static void report_delta_table(FILE *out, const struct latency_result *latency, const char *layout)
{
    struct delta_table table = {.count = 0};
    char size[SIZE_TEXT_BYTES];

    for (size_t i = 0; i < latency->delta_count; i++)
        if (strcmp(latency->deltas[i].layout, layout) == 0)
            add_backing(&table, latency->deltas[i].backing);
    (void)fprintf(out,
                  "\nagainst base pages, layout %s (ns per access, negative is faster, * = the 95 %% interval leaves "
                  "out 0)\n%12s",
                  layout, "");
    for (size_t b = 0; b < table.count; b++)
        (void)fprintf(out, " %10s ", table.backings[b]);
    (void)fputc('\n', out);
    for (size_t i = 0; i < latency->delta_count; i++) {
        const struct paired_delta *d = &latency->deltas[i];

        bool is_first = strcmp(d->layout, layout) == 0;

        for (size_t k = 0; k < i; k++)
            is_first = is_first && !(strcmp(latency->deltas[k].layout, layout) == 0 && latency->deltas[k].x == d->x);
        if (!is_first)
            continue;
        (void)fprintf(out, "%12s", size_text((int64_t)d->x, size));
        for (size_t b = 0; b < table.count; b++)
            report_delta(out, find_delta(latency, layout, d->x, table.backings[b]));
        (void)fputc('\n', out);
    }
}

static void report_latency(FILE *out, const struct latency_result *latency)
{
    report_curves(out, "latency", &latency->curves);
    for (size_t i = 0; i < latency->delta_count; i++) {
        bool is_first = strcmp(latency->deltas[i].layout, "packed") != 0; /* the control is no result */

        for (size_t k = 0; k < i; k++)
            is_first = is_first && strcmp(latency->deltas[k].layout, latency->deltas[i].layout) != 0;
        if (is_first)
            report_delta_table(out, latency, latency->deltas[i].layout);
    }
    report_pressure(out, &latency->pressure);
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
