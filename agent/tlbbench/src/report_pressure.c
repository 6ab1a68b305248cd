/* SPDX-License-Identifier: Apache-2.0 */
#include "report_pressure.h"

#include "report.h"

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

        if (strcmp(p->backing, row->backing) == 0 && p->footprint_bytes == row->footprint_bytes &&
            p->lines_between == column.lines_between && p->wait_ns == column.wait_ns)
            return p;
    }
    return NULL;
}

static bool is_first_of_row(const struct pressure_result *pressure, size_t index)
{
    const struct pressure_point *point = &pressure->points[index];

    for (size_t i = 0; i < index; i++)
        if (strcmp(pressure->points[i].backing, point->backing) == 0 &&
            pressure->points[i].footprint_bytes == point->footprint_bytes)
            return false;
    return true;
}

/* A saving whose 95 % interval leaves out zero is marked. */
static void report_row(FILE *out, const struct pressure_result *pressure, const struct pressure_point *row,
                       const struct columns *columns)
{
    char size[SIZE_TEXT_BYTES];

    (void)fprintf(out, "  %-6s %10s", row->backing, size_text((int64_t)row->footprint_bytes, size));
    for (size_t c = 0; c < columns->count; c++) {
        const struct pressure_point *p = find(pressure, row, columns->items[c]);

        if (p == NULL || !isfinite(p->delta_ns))
            (void)fprintf(out, " %9s ", "?");
        else
            (void)fprintf(out, " %9.1f%c", -p->delta_ns, p->ci95_low_ns > 0 || p->ci95_high_ns < 0 ? '*' : ' ');
    }
    (void)fputc('\n', out);
}

static void report_column(FILE *out, struct column column)
{
    char text[32];

    if (column.wait_ns == 0)
        (void)snprintf(text, sizeof(text), "%u", column.lines_between);
    else
        (void)snprintf(text, sizeof(text), "%u+%uus", column.lines_between, column.wait_ns / 1000);
    (void)fprintf(out, " %9s ", text);
}

void report_pressure(FILE *out, const struct pressure_result *pressure)
{
    struct columns columns = {.count = 0};
    char size[SIZE_TEXT_BYTES];

    if (pressure->point_count == 0)
        return;
    for (size_t i = 0; i < pressure->point_count; i++)
        add_column(&columns, (struct column){pressure->points[i].wait_ns, pressure->points[i].lines_between});
    (void)fprintf(
        out,
        "\nsaving under pressure (ns per access against base pages, negative is slower, * = the 95 %% interval "
        "leaves out 0)\n  %-6s %10s  by cache lines read between two accesses, from %s of %s pages (+us: and a wait)\n "
        " %17s",
        "pages", "footprint", size_text((int64_t)pressure->region_bytes, size), pressure->region_backing, "");
    for (size_t c = 0; c < columns.count; c++)
        report_column(out, columns.items[c]);
    (void)fputc('\n', out);
    for (size_t i = 0; i < pressure->point_count; i++)
        if (is_first_of_row(pressure, i))
            report_row(out, pressure, &pressure->points[i], &columns);
    (void)fputs("  What a page walk costs a program that reads other data in between: the more it reads and the "
                "longer it\n  takes, the fewer page-table lines stay in the caches. A database is nearer the "
                "right-hand columns.\n",
                out);
}
