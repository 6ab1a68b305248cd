/* SPDX-License-Identifier: Apache-2.0 */
#include "output/report.h"
#include "output/report_text.h"

#include <ctype.h>

enum {
    PLOT_COLUMNS = 64, /* at most: a narrow terminal gets fewer */
    PLOT_MARGIN = 12,  /* of the values and of the last label */
    PLOT_ROWS = 12,
    PLOT_MARKS = 8, /* distinct backings in one plot */
};

struct plot {
    int columns;
    char cells[PLOT_ROWS][PLOT_COLUMNS + 1];
    double x_min, x_max; /* log2 */
    double y_max;
    char backings[PLOT_MARKS][16];
    char marks[PLOT_MARKS + 1]; /* a text */
    size_t mark_count;
};

static void find_ranges(struct plot *plot, const struct curve *const *curves, size_t count)
{
    plot->x_min = INFINITY;
    plot->x_max = -INFINITY;
    plot->y_max = 0;
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < curves[c]->point_count; i++) {
            const struct curve_point *point = &curves[c]->points[i];

            if (point->x == 0 || !isfinite(point->stats.ns_p50))
                continue;
            plot->x_min = fmin(plot->x_min, log2((double)point->x));
            plot->x_max = fmax(plot->x_max, log2((double)point->x));
            plot->y_max = fmax(plot->y_max, point->stats.ns_p50);
        }
    }
}

/* The backing's first letter or digit, or the next free letter when that is taken. */
static char mark_of(struct plot *plot, const char *backing)
{
    for (size_t i = 0; i < plot->mark_count; i++)
        if (strcmp(plot->backings[i], backing) == 0)
            return plot->marks[i];
    if (plot->mark_count == PLOT_MARKS)
        return '*';
    char mark = isalnum((unsigned char)backing[0]) ? backing[0] : 'a';

    for (char next = 'a'; strchr(plot->marks, mark) != NULL; next++)
        mark = next;
    (void)snprintf(plot->backings[plot->mark_count], sizeof(plot->backings[0]), "%s", backing);
    plot->marks[plot->mark_count++] = mark;
    return mark;
}

static void draw(struct plot *plot, const struct curve *curve, char mark)
{
    for (size_t i = 0; i < curve->point_count; i++) {
        const struct curve_point *point = &curve->points[i];

        if (point->x == 0 || !isfinite(point->stats.ns_p50))
            continue;
        double across = (log2((double)point->x) - plot->x_min) / (plot->x_max - plot->x_min);
        double up = fmax(point->stats.ns_p50, 0) / plot->y_max;
        char *cell =
            &plot->cells[PLOT_ROWS - 1 - (int)lround(up * (PLOT_ROWS - 1))][(int)lround(across * (plot->columns - 1))];

        if (*cell == ' ')
            *cell = mark;
        else if (*cell != mark)
            *cell = '+';
    }
}

static void x_text(char text[SIZE_TEXT_BYTES], const char *x_name, double log_x)
{
    uint64_t x = (uint64_t)llround(exp2(log_x));

    if (strcmp(x_name, "footprint_bytes") == 0)
        (void)size_text((int64_t)x, text);
    else
        (void)snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64, x);
}

/* The last label ends where the axis ends; the middle one stands below its middle. */
static void print_axis(FILE *out, const struct plot *plot, const char *x_name)
{
    char left[SIZE_TEXT_BYTES];
    char middle[SIZE_TEXT_BYTES];
    char right[SIZE_TEXT_BYTES];
    char line[PLOT_COLUMNS + 1];

    x_text(left, x_name, plot->x_min);
    x_text(middle, x_name, (plot->x_min + plot->x_max) / 2);
    x_text(right, x_name, plot->x_max);
    memset(line, '-', (size_t)plot->columns);
    line[plot->columns] = '\0';
    (void)fprintf(out, "%9s+%s\n", "", line);
    memset(line, ' ', (size_t)plot->columns);
    memcpy(line, left, strlen(left));
    memcpy(line + (size_t)plot->columns / 2 - strlen(middle) / 2, middle, strlen(middle));
    memcpy(line + (size_t)plot->columns - strlen(right), right, strlen(right));
    (void)fprintf(out, "%10s%s\n%10s", "", line, "");
    for (size_t i = 0; i < plot->mark_count; i++)
        (void)fprintf(out, "%s%c = %s", i > 0 ? ", " : "", plot->marks[i], plot->backings[i]);
    (void)fputs(plot->mark_count > 1 ? ", + = several\n" : "\n", out);
}

static const char *x_words(const char *x_name)
{
    if (strcmp(x_name, "footprint_bytes") == 0)
        return "footprint";
    if (strcmp(x_name, "hot_lines") == 0)
        return "hot lines";
    return strcmp(x_name, "pages") == 0 ? "pages visited" : x_name;
}

void report_plot(FILE *out, const struct curve *const *curves, size_t count)
{
    struct plot plot = {.columns = (int)report_width(out) - PLOT_MARGIN};

    plot.columns = plot.columns < PLOT_COLUMNS ? plot.columns : PLOT_COLUMNS;
    find_ranges(&plot, curves, count);
    if (!(plot.x_max > plot.x_min) || !(plot.y_max > 0))
        return; /* nothing to draw between */
    for (int row = 0; row < PLOT_ROWS; row++)
        (void)snprintf(plot.cells[row], sizeof(plot.cells[row]), "%*s", plot.columns, "");
    for (size_t c = 0; c < count; c++)
        draw(&plot, curves[c], mark_of(&plot, curves[c]->backing.name));
    (void)fprintf(out, "      ns per access over %s\n", x_words(curves[0]->x_name));
    for (int row = 0; row < PLOT_ROWS; row++) {
        /* Every third row carries its value. */
        if (row % 3 == 0 || row == PLOT_ROWS - 1)
            (void)fprintf(out, "%8.1f |", plot.y_max * (PLOT_ROWS - 1 - row) / (PLOT_ROWS - 1));
        else
            (void)fprintf(out, "%8s |", "");
        (void)fprintf(out, "%s\n", text_without_end(plot.cells[row]));
    }
    print_axis(out, &plot, curves[0]->x_name);
}

enum { MOST_CURVES = 32 };

static bool in_same_plot(const struct curve *a, const struct curve *b)
{
    return strcmp(a->x_name, b->x_name) == 0 && strcmp(a->layout, b->layout) == 0;
}

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

/* One plot for each layout, in the order of the curves, but for those that support a number and are no result of their
 * own: the control that touches no further page, and the fracture test. */
static void report_curves(FILE *out, const char *title, const struct curve_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct curve *group[MOST_CURVES];
        size_t count = 0;
        bool is_first = true;

        for (size_t k = 0; k < i; k++)
            is_first = is_first && !(in_same_plot(&list->items[k], &list->items[i]) && list->items[k].point_count > 0);
        if (!is_first || list->items[i].point_count == 0 || strcmp(list->items[i].layout, "packed") == 0 ||
            strcmp(list->items[i].layout, "part_per_line") == 0)
            continue;
        for (size_t k = i; k < list->count && count < MOST_CURVES; k++)
            if (in_same_plot(&list->items[k], &list->items[i]) && list->items[k].point_count > 0)
                group[count++] = &list->items[k];
        REPORT_PARAGRAPH(out, "%s: %s", title, layout_words(list->items[i].layout));
        report_plot(out, group, count);
    }
}

static void report_clock(FILE *out, const struct core_clock *clock)
{
    if (!isfinite(clock->core_hz) || clock->core_hz <= 0)
        REPORT_LINE(out, "core clock", "not known: cycles are not given");
    else
        REPORT_LINE(out, "core clock", "%.2f GHz while measuring, L1 data cache hit %.2f ns = %.1f cycles",
                    clock->core_hz / 1e9, clock->l1_hit_ns, clock->l1_hit_cycles);
}

/* Above this share of probes with an idle sibling its effect is too small to report. */
#define IDLE_FRACTION_TOLD 0.9

static void report_sharing(FILE *out, double alone_fraction)
{
    if (alone_fraction < IDLE_FRACTION_TOLD)
        REPORT_LINE(out, "core sharing",
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
    REPORT_LINE(out, is_hit ? "L2 TLB hit" : "page walk", "%s pages: %s ns%s%s on top of an L1 TLB hit",
                page_text(p->page_bytes, page), report_signed(p->ns, decimals, ns), range, cycles);
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
    REPORT_PARAGRAPH(
        out,
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
        REPORT_LINE(out, "scatter", "from %" PRId64 " hot lines on, %s pages are slower than base pages",
                    scatter->crossing_hot_lines, scatter->crossing_backing);
    else if (scatter->crossing_status == STATUS_NOT_REACHED)
        REPORT_LINE(out, "scatter",
                    "huge pages were not slower than base pages anywhere between %" PRIu64 " and %" PRIu64 " hot lines",
                    scatter->tested_min, scatter->tested_max);
    else
        REPORT_LINE(out, "scatter", "where huge pages stop helping is unknown: %s",
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
