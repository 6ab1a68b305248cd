/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"
#include "output/report.h"
#include "output/report_text.h"
#include "output/table.h"

#include <stdbool.h>

/* Base pages first, then transparent ones, then the pools' by size. */
static struct table_column column_of(const struct backing *backing)
{
    struct table_column column = {.rank = (uint64_t)backing->kind << 56 | backing->page_bytes};

    (void)snprintf(column.heading, sizeof(column.heading), "%s", backing->name);
    return column;
}

/* Three digits: no measurement of rows repeats finer. */
static int decimals_of(double millions)
{
    return millions < 9.995 ? 2 : millions < 99.95 ? 1 : 0;
}

static void report_speeds(FILE *out, const struct rows_result *rows)
{
    /* A narrow terminal has no place for the times of base pages. */
    bool has_times = report_width(out) >= 74;
    struct table table = {.empty = "-"};

    for (size_t i = 0; i < rows->measurement_count; i++) {
        const struct row_measurement *m = &rows->measurements[i];
        char size[SIZE_TEXT_BYTES];
        char row[TABLE_TEXT_BYTES];

        (void)snprintf(row, sizeof(row), "  %-7s %-7s %-9s %4u %-4s", size_text((int64_t)m->spec.row_bytes, size),
                       ROW_KEYS_NAMES[m->spec.keys],
                       m->spec.read == READ_INDEX_THEN_ROW ? "index+row" : ROW_READ_NAMES[m->spec.read],
                       m->spec.workers, m->spec.mode == MODE_THREADS ? "thr" : "proc");
        if (m->verdict.status != STATUS_OK) {
            table_set(&table, row, column_of(&m->backing), "-");
            continue;
        }
        double millions = m->rows_per_second / 1e6;

        table_set(&table, row, column_of(&m->backing), "%.*f", decimals_of(millions), millions);
        if (has_times && m->backing.kind == BACKING_BASE) {
            table_set(&table, row, (struct table_column){UINT64_MAX, "ns p50"}, "%.0f", m->ns_p50);
            table_set(&table, row, (struct table_column){UINT64_MAX, "p99"}, "%.0f", m->ns_p99);
        }
    }
    (void)fputc('\n', out);
    report_wrapped(out, "", 0,
                   "rows read from shared memory, millions per second (thr = threads of one process, proc = forked "
                   "processes%s)",
                   has_times ? "; ns per row in base pages" : "");
    table_print(&table, "  row     keys    read          by  ", out);
}

/* All works read the same segment: the first one of so many processes stands for the others. */
static void report_tables(FILE *out, const struct rows_result *rows)
{
    struct table table = {.empty = "-"};

    for (size_t i = 0; i < rows->measurement_count; i++) {
        const struct row_measurement *m = &rows->measurements[i];
        char each[SIZE_TEXT_BYTES];
        char all[SIZE_TEXT_BYTES];
        char row[TABLE_TEXT_BYTES];

        if (m->spec.mode != MODE_PROCESSES || m->verdict.status != STATUS_OK || m->vm_pte_bytes_per_process > INT64_MAX)
            continue;
        (void)snprintf(row, sizeof(row), "%11u", m->spec.workers);
        table_set(&table, row, column_of(&m->backing), "%s, %s", size_text((int64_t)m->vm_pte_bytes_per_process, each),
                  size_text(m->vm_pte_bytes_total <= INT64_MAX ? (int64_t)m->vm_pte_bytes_total : -1, all));
    }
    if (table.row_count == 0)
        return;
    (void)fputc('\n', out);
    report_wrapped(out, "", 0, "page tables of the processes that read the segment (of one, of all)");
    table_print(&table, "  processes", out);
}

void report_rows(FILE *out, const struct rows_result *rows)
{
    if (rows->measurement_count > 0)
        report_speeds(out, rows);
    report_tables(out, rows);
    for (size_t i = 0; i < rows->break_even_count; i++) {
        (void)fputs(i == 0 ? "\nconnections\n" : "", out);
        report_wrapped(out, "  -", 4, "%s.", rows->break_evens[i].text);
    }
}
