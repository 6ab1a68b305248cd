/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"
#include "output/report_parts.h"
#include "output/report_text.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { MOST_BACKINGS = 8 };

/* Columns of the table: base pages first, then transparent ones, then the pools' by size. */
struct columns {
    const struct row_measurement *backings[MOST_BACKINGS];
    size_t count;
};

static bool comes_before(const struct row_measurement *a, const struct row_measurement *b)
{
    if (a->backing.kind != b->backing.kind)
        return a->backing.kind < b->backing.kind;
    return a->backing.page_bytes < b->backing.page_bytes;
}

static void add_column(struct columns *columns, const struct row_measurement *m)
{
    size_t at = columns->count;

    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->backings[i]->backing.name, m->backing.name) == 0)
            return;
    if (columns->count == MOST_BACKINGS)
        return;
    for (; at > 0 && comes_before(m, columns->backings[at - 1]); at--)
        columns->backings[at] = columns->backings[at - 1];
    columns->backings[at] = m;
    columns->count++;
}

/* The same work; only the backing may differ. */
static bool is_same_row(const struct row_measurement *a, const struct row_measurement *b)
{
    return a->row_bytes == b->row_bytes && a->keys == b->keys && a->read == b->read && a->mode == b->mode &&
           a->workers == b->workers;
}

static const struct row_measurement *find(const struct rows_result *rows, const struct row_measurement *like,
                                          const char *backing)
{
    for (size_t i = 0; i < rows->measurement_count; i++)
        if (is_same_row(&rows->measurements[i], like) && strcmp(rows->measurements[i].backing.name, backing) == 0)
            return &rows->measurements[i];
    return NULL;
}

/* Three digits: no measurement of rows repeats finer. */
static void millions(double rows_per_second, char text[REPORT_NUMBER_BYTES])
{
    double value = rows_per_second / 1e6;

    (void)snprintf(text, REPORT_NUMBER_BYTES, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
}

/* "8 proc" */
static void workers_text(const struct row_measurement *m, char text[REPORT_NUMBER_BYTES])
{
    (void)snprintf(text, REPORT_NUMBER_BYTES, "%u %s", m->workers, m->mode == MODE_THREADS ? "thr" : "proc");
}

static const char *read_text(enum row_read read)
{
    return read == READ_INDEX_THEN_ROW ? "index+row" : ROW_READ_NAMES[read];
}

/* A narrow terminal has no place for the times. */
static bool has_times(FILE *out)
{
    return report_width(out) >= 74;
}

static void report_row(FILE *out, const struct rows_result *rows, const struct row_measurement *like,
                       const struct columns *columns)
{
    const struct row_measurement *first = find(rows, like, columns->backings[0]->backing.name);
    char width[SIZE_TEXT_BYTES];
    char workers[REPORT_NUMBER_BYTES];

    workers_text(like, workers);
    (void)fprintf(out, "  %-7s %-7s %-9s %8s", size_text((int64_t)like->row_bytes, width), ROW_KEYS_NAMES[like->keys],
                  read_text(like->read), workers);
    for (size_t c = 0; c < columns->count; c++) {
        const struct row_measurement *m = find(rows, like, columns->backings[c]->backing.name);
        char text[REPORT_NUMBER_BYTES] = "-";

        if (m != NULL && m->verdict.status == STATUS_OK)
            millions(m->rows_per_second, text);
        (void)fprintf(out, " %5s", text);
    }
    if (has_times(out) && first != NULL && first->verdict.status == STATUS_OK)
        (void)fprintf(out, "  %7.0f %6.0f", first->ns_p50, first->ns_p99);
    (void)fputc('\n', out);
}

static void report_speeds(FILE *out, const struct rows_result *rows, const struct columns *columns)
{
    (void)fputc('\n', out);
    report_wrapped(out, "", 0,
                   "rows read from shared memory, millions per second (thr = threads of one process, proc = forked "
                   "processes%s%s)",
                   has_times(out) ? "; ns per row in pages of " : "",
                   has_times(out) ? columns->backings[0]->backing.name : "");
    (void)fprintf(out, "  %-7s %-7s %-9s %8s", "row", "keys", "read", "by");
    for (size_t c = 0; c < columns->count; c++)
        (void)fprintf(out, " %5s", columns->backings[c]->backing.name);
    (void)fputs(has_times(out) ? "   ns p50    p99\n" : "\n", out);
    for (size_t i = 0; i < rows->measurement_count; i++) {
        bool is_first = true;

        for (size_t k = 0; k < i; k++)
            is_first = is_first && !is_same_row(&rows->measurements[k], &rows->measurements[i]);
        if (is_first)
            report_row(out, rows, &rows->measurements[i], columns);
    }
}

/* --- page tables ---------------------------------------------------------------------------------------------- */

static bool has_tables(const struct row_measurement *m)
{
    return m->mode == MODE_PROCESSES && m->verdict.status == STATUS_OK && m->vm_pte_bytes_per_process <= INT64_MAX;
}

/* All works read the same segment: the first one of so many processes stands for the others. */
static const struct row_measurement *find_tables(const struct rows_result *rows, unsigned workers, const char *backing)
{
    for (size_t i = 0; i < rows->measurement_count; i++)
        if (has_tables(&rows->measurements[i]) && rows->measurements[i].workers == workers &&
            strcmp(rows->measurements[i].backing.name, backing) == 0)
            return &rows->measurements[i];
    return NULL;
}

static void tables_text(const struct row_measurement *m, char text[2 * SIZE_TEXT_BYTES + 4])
{
    char each[SIZE_TEXT_BYTES];
    char all[SIZE_TEXT_BYTES];

    if (m == NULL)
        (void)snprintf(text, 2 * SIZE_TEXT_BYTES + 4, "-");
    else
        (void)snprintf(text, 2 * SIZE_TEXT_BYTES + 4, "%s, %s", size_text((int64_t)m->vm_pte_bytes_per_process, each),
                       m->vm_pte_bytes_total <= INT64_MAX ? size_text((int64_t)m->vm_pte_bytes_total, all) : "?");
}

static void report_table_line(FILE *out, const struct rows_result *rows, const struct columns *columns,
                              unsigned workers)
{
    (void)fprintf(out, "  %9u", workers);
    for (size_t c = 0; c < columns->count; c++) {
        char text[2 * SIZE_TEXT_BYTES + 4];

        tables_text(find_tables(rows, workers, columns->backings[c]->backing.name), text);
        (void)fprintf(out, " %16s", text);
    }
    (void)fputc('\n', out);
}

static void report_tables(FILE *out, const struct rows_result *rows)
{
    struct columns columns = {.count = 0};
    unsigned printed = 0;

    for (size_t i = 0; i < rows->measurement_count; i++)
        if (has_tables(&rows->measurements[i]))
            add_column(&columns, &rows->measurements[i]);
    if (columns.count == 0)
        return;
    (void)fputc('\n', out);
    report_wrapped(out, "", 0, "page tables of the processes that read the segment (of one, of all)");
    (void)fprintf(out, "  processes");
    for (size_t c = 0; c < columns.count; c++)
        (void)fprintf(out, " %16s", columns.backings[c]->backing.name);
    (void)fputc('\n', out);
    for (;;) { /* in the order of their number */
        unsigned next = UINT_MAX;

        for (size_t i = 0; i < rows->measurement_count; i++)
            if (has_tables(&rows->measurements[i]) && rows->measurements[i].workers > printed &&
                rows->measurements[i].workers < next)
                next = rows->measurements[i].workers;
        if (next == UINT_MAX)
            return;
        report_table_line(out, rows, &columns, next);
        printed = next;
    }
}

void report_rows(FILE *out, const struct rows_result *rows)
{
    struct columns columns = {.count = 0};

    for (size_t i = 0; i < rows->measurement_count; i++)
        add_column(&columns, &rows->measurements[i]);
    if (columns.count > 0)
        report_speeds(out, rows, &columns);
    report_tables(out, rows);
    for (size_t i = 0; i < rows->break_even_count; i++) {
        (void)fputs(i == 0 ? "\nconnections\n" : "", out);
        report_wrapped(out, "  -", 4, "%s.", rows->break_evens[i].text);
    }
}
