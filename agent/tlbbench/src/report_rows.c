/* SPDX-License-Identifier: Apache-2.0 */
#include "report_rows.h"

#include "report.h"

#include <string.h>

enum { MOST_BACKINGS = 8 };

/* Columns of the table: base pages first, then transparent ones, then the pools' by size. */
struct columns {
    const struct row_measurement *backings[MOST_BACKINGS];
    size_t count;
};

static bool comes_before(const struct row_measurement *a, const struct row_measurement *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->page_bytes < b->page_bytes;
}

static void add_column(struct columns *columns, const struct row_measurement *m)
{
    size_t at = columns->count;

    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->backings[i]->backing, m->backing) == 0)
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
        if (is_same_row(&rows->measurements[i], like) && strcmp(rows->measurements[i].backing, backing) == 0)
            return &rows->measurements[i];
    return NULL;
}

static void report_row(FILE *out, const struct rows_result *rows, const struct row_measurement *like,
                       const struct columns *columns)
{
    const struct row_measurement *first = find(rows, like, columns->backings[0]->backing);
    char width[SIZE_TEXT_BYTES];
    char tables[SIZE_TEXT_BYTES] = "?";

    (void)fprintf(out, "  %-8s %-8s %-14s %-9s %7u ", size_text((int64_t)like->row_bytes, width),
                  row_keys_name(like->keys), row_read_name(like->read), row_mode_name(like->mode), like->workers);
    for (size_t c = 0; c < columns->count; c++) {
        const struct row_measurement *m = find(rows, like, columns->backings[c]->backing);

        if (m == NULL || m->verdict.status != STATUS_OK)
            (void)fprintf(out, " %8s", "-");
        else
            (void)fprintf(out, " %8.2f", m->rows_per_second / 1e6);
    }
    if (first == NULL || first->verdict.status != STATUS_OK) {
        (void)fputc('\n', out);
        return;
    }
    if (first->vm_pte_bytes_per_process <= INT64_MAX)
        (void)size_text((int64_t)first->vm_pte_bytes_per_process, tables);
    (void)fprintf(out, "  %6.0f %6.0f %10s\n", first->ns_p50, first->ns_p99, tables);
}

void report_rows(FILE *out, const struct rows_result *rows)
{
    struct columns columns = {.count = 0};

    for (size_t i = 0; i < rows->measurement_count; i++)
        add_column(&columns, &rows->measurements[i]);
    if (columns.count > 0) {
        (void)fputs("\nrows (million row reads per second; time per row and page tables per process with the first)\n"
                    "  width    keys     read           by        workers ",
                    out);
        for (size_t c = 0; c < columns.count; c++)
            (void)fprintf(out, " %8s", columns.backings[c]->backing);
        (void)fputs("  ns p50    p99     tables\n", out);
    }
    for (size_t i = 0; i < rows->measurement_count; i++) {
        bool is_first = true;

        for (size_t k = 0; k < i; k++)
            is_first = is_first && !is_same_row(&rows->measurements[k], &rows->measurements[i]);
        if (is_first)
            report_row(out, rows, &rows->measurements[i], &columns);
    }
    for (size_t i = 0; i < rows->break_even_count; i++)
        (void)fprintf(out, "%s  %s.\n", i == 0 ? "\nconnections\n" : "", rows->break_evens[i].text);
}
