/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "output/report.h"
#include "output/report_text.h"
#include "output/table.h"

enum { MOST_CURVES = 32 };

static bool in_same_plot(const struct curve *a, const struct curve *b)
{
    return strcmp(a->x_name, b->x_name) == 0 && strcmp(a->layout, b->layout) == 0;
}

/* What an access touches, by layout. */
static const char *layout_words(const char *layout)
{
    static const struct {
        const char *layout, *words;
    } known[] = {
        {"line_per_page", "one cache line in each base page, in random order"},
        {"random_64b", "every cache line, in random order"},
        {"aliased", "virtual pages on a few frames, so that all data stay in the cache"},
        {"distinct", "one cache line of its own in each page"},
        {"zeroes", "read-only pages that all map the zero page"},
        {"scatter", "one hot line in each huge page"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].layout, layout) == 0)
            return known[i].words;
    return layout;
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
        (void)fputc('\n', out);
        report_wrapped(out, "", 0, "%s: %s", title, layout_words(list->items[i].layout));
        report_plot(out, group, count);
    }
}

static void report_clock(FILE *out, const struct core_clock *clock)
{
    if (!isfinite(clock->core_hz) || clock->core_hz <= 0)
        report_wrapped(out, "core clock", REPORT_LABEL_COLUMNS, "not known: cycles are not given");
    else
        report_wrapped(out, "core clock", REPORT_LABEL_COLUMNS,
                       "%.2f GHz while measuring, L1 data cache hit %.2f ns = %.1f cycles", clock->core_hz / 1e9,
                       clock->l1_hit_ns, clock->l1_hit_cycles);
}

/* Above this share of probes with an idle sibling its effect is too small to report. */
#define IDLE_FRACTION_TOLD 0.9

static void report_sharing(FILE *out, double alone_fraction)
{
    if (alone_fraction < IDLE_FRACTION_TOLD)
        report_wrapped(out, "core sharing", REPORT_LABEL_COLUMNS,
                       "the SMT sibling was busy in %.0f %% of the probes: it evicts TLB "
                       "entries; levels and penalties come from its pauses",
                       100 * (1 - alone_fraction));
}

static void report_penalty(FILE *out, const struct penalty *p)
{
    bool is_hit = strcmp(p->level, "l2_hit") == 0;
    int decimals = report_decimals((p->ns_max - p->ns_min) / 2);
    char page[PAGE_TEXT_BYTES];
    char ns[REPORT_NUMBER_BYTES];
    char range[2 * REPORT_NUMBER_BYTES] = "";
    char cycles[REPORT_NUMBER_BYTES] = "";

    if (isfinite(p->ns_min) && isfinite(p->ns_max))
        (void)snprintf(range, sizeof(range), " (%.*f to %.*f)", decimals, p->ns_min, decimals, p->ns_max);
    if (isfinite(p->cycles))
        (void)snprintf(cycles, sizeof(cycles), " = %.*f cycles", p->cycles < 10 ? 1 : 0, p->cycles);
    report_wrapped(out, is_hit ? "L2 TLB hit" : "page walk", REPORT_LABEL_COLUMNS,
                   "%s pages: %s ns%s%s on top of an L1 TLB hit", page_text(p->page_bytes, page),
                   report_signed(p->ns, decimals, ns), range, cycles);
}

static void report_witness(FILE *out, const struct walk_witness *witness)
{
    if (witness->verdict.status == STATUS_OK && witness->held_pages > 0)
        report_wrapped(out, "counted walks", REPORT_LABEL_COLUMNS,
                       "the processor counts them at %.1f %% of the accesses to %" PRIu64 " pages, at %.0f %% of those "
                       "to %" PRIu64,
                       100 * witness->held_fraction, witness->held_pages, 100 * witness->missed_fraction,
                       witness->missed_pages);
    else
        report_wrapped(out, "counted walks", REPORT_LABEL_COLUMNS, "%s", verdict_words(&witness->verdict));
}

static void report_geometry(FILE *out, const struct geometry_result *geometry)
{
    (void)fputs("\nmeasured\n", out);
    report_clock(out, &geometry->clock);
    report_sharing(out, geometry->core_alone_fraction);
    for (size_t i = 0; i < geometry->penalty_count; i++)
        report_penalty(out, &geometry->penalties[i]);
    report_witness(out, &geometry->witness);
    report_curves(out, "translation", &geometry->curves);
}

static void report_delta_table(FILE *out, const struct latency_result *latency, const char *layout)
{
    struct table table = {.empty = "? "};

    for (size_t i = 0; i < latency->delta_count; i++) {
        const struct paired_delta *d = &latency->deltas[i];
        struct table_column column = {0};
        char size[SIZE_TEXT_BYTES];
        char row[TABLE_TEXT_BYTES];
        char text[REPORT_NUMBER_BYTES];

        if (strcmp(d->layout, layout) != 0)
            continue;
        (void)snprintf(row, sizeof(row), "%10s", size_text((int64_t)d->x, size));
        (void)snprintf(column.heading, sizeof(column.heading), "%s ", d->backing); /* above the number, not its star */
        table_set(&table, row, column, "%s", report_interval(d->delta_ns, d->ci95_low_ns, d->ci95_high_ns, text));
    }
    if (table.row_count == 0)
        return;
    (void)fputc('\n', out);
    report_wrapped(
        out, "", 0,
        "difference from base pages in ns per access (negative is faster, +- half the 95 %% interval, * = it "
        "leaves out 0): %s",
        layout_words(layout));
    table_print(&table, " footprint", out);
}

static void report_latency(FILE *out, const struct environment *environment, const struct run_result *run)
{
    const struct latency_result *latency = run->latency;

    report_curves(out, "latency", &latency->curves);
    for (unsigned layout = 0; layout < LAYOUT_PACKED; layout++) /* the control is no result */
        report_delta_table(out, latency, LATENCY_CURVE_NAMES[layout]);
    report_pressure(out, run->pressure);
    report_walks(out, environment, run->walks);
}

static void report_scatter(FILE *out, const struct scatter_result *scatter)
{
    report_curves(out, "scatter", &scatter->curves);
    (void)fputc('\n', out);
    if (scatter->crossing_hot_lines >= 0)
        report_wrapped(out, "scatter", REPORT_LABEL_COLUMNS,
                       "from %" PRId64 " hot lines on, %s pages are slower than base pages",
                       scatter->crossing_hot_lines, scatter->crossing_backing);
    else if (scatter->crossing_status == STATUS_NOT_REACHED)
        report_wrapped(out, "scatter", REPORT_LABEL_COLUMNS,
                       "huge pages were not slower than base pages anywhere between %" PRIu64 " and %" PRIu64
                       " hot lines",
                       scatter->tested_min, scatter->tested_max);
    else
        report_wrapped(out, "scatter", REPORT_LABEL_COLUMNS, "where huge pages stop helping is unknown: %s",
                       STATUS_TEXTS[scatter->crossing_status].words);
}

void report_run(FILE *out, const struct environment *environment, const struct run_result *run)
{
    if (run->geometry != NULL) {
        report_levels(out, environment, &run->geometry->levels, &run->geometry->disagreements);
        report_geometry(out, run->geometry);
    }
    if (run->latency != NULL)
        report_latency(out, environment, run);
    if (run->rows != NULL)
        report_rows(out, run->rows);
    if (run->scatter != NULL)
        report_scatter(out, run->scatter);
    report_verdicts(out, environment, run);
    report_missing(out, run);
}
