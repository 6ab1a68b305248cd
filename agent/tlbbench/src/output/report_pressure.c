/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "output/report_parts.h"
#include "output/report_text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_COLUMNS = 8 };

/* What happens between two accesses. */
struct column {
    unsigned wait_ns;
    unsigned lines_between;
};

struct columns {
    struct column items[MOST_COLUMNS];
    size_t count;
};

static bool is_after(struct column a, struct column b)
{
    return a.wait_ns > b.wait_ns || (a.wait_ns == b.wait_ns && a.lines_between > b.lines_between);
}

/* Keeps them sorted: without a wait first. */
static void add_column(struct columns *columns, struct column column)
{
    size_t at = columns->count;

    for (size_t i = 0; i < columns->count; i++)
        if (!is_after(columns->items[i], column) && !is_after(column, columns->items[i]))
            return;
    if (columns->count == MOST_COLUMNS)
        return;
    for (; at > 0 && is_after(columns->items[at - 1], column); at--)
        columns->items[at] = columns->items[at - 1];
    columns->items[at] = column;
    columns->count++;
}

static const struct pressure_point *find(const struct pressure_result *pressure, const struct pressure_point *row,
                                         struct column column)
{
    for (size_t i = 0; i < pressure->point_count; i++) {
        const struct pressure_point *p = &pressure->points[i];

        if (strcmp(p->backing.name, row->backing.name) == 0 && p->footprint_bytes == row->footprint_bytes &&
            p->lines_between == column.lines_between && p->wait_ns == column.wait_ns)
            return p;
    }
    return NULL;
}

static bool is_first_of_row(const struct pressure_result *pressure, size_t index)
{
    const struct pressure_point *point = &pressure->points[index];

    for (size_t i = 0; i < index; i++)
        if (strcmp(pressure->points[i].backing.name, point->backing.name) == 0 &&
            pressure->points[i].footprint_bytes == point->footprint_bytes)
            return false;
    return true;
}

/* A saving whose 95 % interval leaves out zero is marked. */
static void saving_text(const struct pressure_point *p, char text[REPORT_NUMBER_BYTES])
{
    char number[REPORT_NUMBER_BYTES];

    if (p == NULL || !isfinite(p->delta_ns)) {
        (void)snprintf(text, REPORT_NUMBER_BYTES, "? ");
        return;
    }
    int decimals = report_decimals((p->ci95_high_ns - p->ci95_low_ns) / 2);

    (void)snprintf(text, REPORT_NUMBER_BYTES, "%.16s%s", report_signed(-p->delta_ns, decimals, number),
                   p->ci95_low_ns > 0 || p->ci95_high_ns < 0 ? "*" : " ");
}

static void report_row(FILE *out, const struct pressure_result *pressure, const struct pressure_point *row,
                       const struct columns *columns)
{
    char size[SIZE_TEXT_BYTES];
    char line[REPORT_NUMBER_BYTES * (MOST_COLUMNS + 1)] = "";

    text_append(line, sizeof(line), "  %-4s %9s", row->backing.name, size_text((int64_t)row->footprint_bytes, size));
    for (size_t c = 0; c < columns->count; c++) {
        char text[REPORT_NUMBER_BYTES];

        saving_text(find(pressure, row, columns->items[c]), text);
        text_append(line, sizeof(line), " %8s", text);
    }
    (void)fprintf(out, "%s\n", text_without_end(line));
}

/* One line above the table: what stands in each column. */
static void report_heading(FILE *out, const struct columns *columns, const char *first, const char *second,
                           bool of_wait)
{
    char line[REPORT_NUMBER_BYTES * (MOST_COLUMNS + 1)] = "";

    text_append(line, sizeof(line), "  %-4s %9s", first, second);
    for (size_t c = 0; c < columns->count; c++) {
        char text[REPORT_NUMBER_BYTES] = "-";

        if (!of_wait)
            (void)snprintf(text, sizeof(text), "%u", columns->items[c].lines_between);
        else if (columns->items[c].wait_ns > 0)
            (void)snprintf(text, sizeof(text), "%u us", columns->items[c].wait_ns / 1000);
        text_append(line, sizeof(line), " %7s ", text);
    }
    (void)fprintf(out, "%s\n", text_without_end(line));
}

static void report_columns(FILE *out, const struct columns *columns)
{
    bool any_wait = false;

    for (size_t c = 0; c < columns->count; c++)
        any_wait = any_wait || columns->items[c].wait_ns > 0;
    report_heading(out, columns, "page", "lines", false);
    if (any_wait)
        report_heading(out, columns, "", "wait", true);
}

void report_pressure(FILE *out, const struct pressure_result *pressure)
{
    struct columns columns = {.count = 0};
    char size[SIZE_TEXT_BYTES];

    if (pressure->point_count == 0)
        return;
    for (size_t i = 0; i < pressure->point_count; i++)
        add_column(&columns, (struct column){pressure->points[i].wait_ns, pressure->points[i].lines_between});
    (void)fputc('\n', out);
    report_wrapped(
        out, "", 0,
        "saving under pressure in ns per access against base pages (positive is faster, * = the 95 %% interval "
        "leaves out 0), by the cache lines read from %s of %s pages, and the wait, between two accesses",
        size_text((int64_t)pressure->region_bytes, size), pressure->region_backing);
    report_columns(out, &columns);
    for (size_t i = 0; i < pressure->point_count; i++)
        if (is_first_of_row(pressure, i))
            report_row(out, pressure, &pressure->points[i], &columns);
    report_wrapped(
        out, "", 2,
        "What a page walk costs a program that reads other data in between: the more it reads and the longer "
        "it takes, the fewer page-table lines stay in the caches. A database is nearer the right-hand "
        "columns.");
}
