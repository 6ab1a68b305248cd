/* SPDX-License-Identifier: Apache-2.0 */
#include "output/report.h"
#include "output/report_text.h"
#include "output/table.h"

#include <math.h>

/* What happens between two accesses, "1024" or "16+20us": without a wait first. */
static struct table_column column_of(const struct pressure_point *p)
{
    struct table_column column = {.rank = (uint64_t)p->wait_ns << 32 | p->lines_between};

    if (p->wait_ns > 0)
        (void)snprintf(column.heading, sizeof(column.heading), "%u+%uus ", p->lines_between, p->wait_ns / 1000);
    else
        (void)snprintf(column.heading, sizeof(column.heading), "%u ", p->lines_between);
    return column;
}

void report_pressure(FILE *out, const struct pressure_result *pressure)
{
    struct table table = {.empty = "? "};
    char size[SIZE_TEXT_BYTES];

    if (pressure->point_count == 0)
        return;
    (void)fputc('\n', out);
    report_wrapped(
        out, "", 0,
        "saving under pressure in ns per access against base pages (positive is faster, * = the 95 %% interval "
        "leaves out 0), by the cache lines read from %s of %s pages, and the wait (+8us), between two accesses",
        size_text((int64_t)pressure->region_bytes, size), pressure->region_backing);
    for (size_t i = 0; i < pressure->point_count; i++) {
        const struct pressure_point *p = &pressure->points[i];
        char row[TABLE_TEXT_BYTES];
        char number[REPORT_NUMBER_BYTES];

        (void)snprintf(row, sizeof(row), "  %-4s %9s", p->backing.name, size_text((int64_t)p->footprint_bytes, size));
        if (isfinite(p->delta_ns))
            table_set(&table, row, column_of(p), "%s%s",
                      report_signed(-p->delta_ns, report_decimals((p->ci95_high_ns - p->ci95_low_ns) / 2), number),
                      p->ci95_low_ns > 0 || p->ci95_high_ns < 0 ? "*" : " ");
    }
    table_print(&table, "  page     lines", out);
    report_wrapped(
        out, "", 2,
        "What a page walk costs a program that reads other data in between: the more it reads and the longer "
        "it takes, the fewer page-table lines stay in the caches. A database is nearer the right-hand "
        "columns.");
}
