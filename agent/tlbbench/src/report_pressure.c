/* SPDX-License-Identifier: Apache-2.0 */
#include "report_pressure.h"

#include "report.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_COLUMNS = 8 };

struct columns {
    unsigned lines_between[MOST_COLUMNS];
    size_t count;
};

static void add_column(struct columns *columns, unsigned lines_between)
{
    size_t at = columns->count;

    for (size_t i = 0; i < columns->count; i++)
        if (columns->lines_between[i] == lines_between)
            return;
    if (columns->count == MOST_COLUMNS)
        return;
    for (; at > 0 && columns->lines_between[at - 1] > lines_between; at--)
        columns->lines_between[at] = columns->lines_between[at - 1];
    columns->lines_between[at] = lines_between;
    columns->count++;
}

static const struct pressure_point *find(const struct pressure_result *pressure, const struct pressure_point *row,
                                         unsigned lines_between)
{
    for (size_t i = 0; i < pressure->point_count; i++) {
        const struct pressure_point *p = &pressure->points[i];

        if (strcmp(p->backing, row->backing) == 0 && p->footprint_bytes == row->footprint_bytes &&
            p->lines_between == lines_between)
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
        const struct pressure_point *p = find(pressure, row, columns->lines_between[c]);

        if (p == NULL || !isfinite(p->delta_ns))
            (void)fprintf(out, " %9s ", "?");
        else
            (void)fprintf(out, " %9.1f%c", -p->delta_ns, p->ci95_low_ns > 0 || p->ci95_high_ns < 0 ? '*' : ' ');
    }
    (void)fputc('\n', out);
}

void report_pressure(FILE *out, const struct pressure_result *pressure)
{
    struct columns columns = {.count = 0};
    char size[SIZE_TEXT_BYTES];

    if (pressure->point_count == 0)
        return;
    for (size_t i = 0; i < pressure->point_count; i++)
        add_column(&columns, pressure->points[i].lines_between);
    (void)fprintf(
        out,
        "\nsaving under pressure (ns per access against base pages, negative is slower, * = the 95 %% interval "
        "leaves out 0)\n  %-6s %10s  by cache lines read between two accesses, from %s of %s pages\n  %17s",
        "pages", "footprint", size_text((int64_t)pressure->region_bytes, size), pressure->region_backing, "");
    for (size_t c = 0; c < columns.count; c++)
        (void)fprintf(out, " %9u ", columns.lines_between[c]);
    (void)fputc('\n', out);
    for (size_t i = 0; i < pressure->point_count; i++)
        if (is_first_of_row(pressure, i))
            report_row(out, pressure, &pressure->points[i], &columns);
    (void)fputs("  What a page walk costs a program that reads other data in between: the more it reads, the fewer "
                "page-table lines\n  stay in the caches. A database is nearer the right-hand columns.\n",
                out);
}
