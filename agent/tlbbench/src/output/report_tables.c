/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of rows, of pressure and of walks. */
#include "output/report.h"
#include "output/report_text.h"

/* Base pages first, then transparent ones, then the pools' by size. */
static struct table_column column_of_pages(const struct backing *backing)
{
    struct table_column column = {.rank = (uint64_t)backing->kind << 56 | backing->page_bytes};

    (void)snprintf(column.heading, sizeof(column.heading), "%s", backing->name);
    return column;
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
            table_set(&table, row, column_of_pages(&m->backing), "-");
            continue;
        }
        double millions = m->median.rows_per_second / 1e6;
        int decimals = millions < 9.995 ? 2 : millions < 99.95 ? 1 : 0; /* three digits: nothing repeats finer */
        bool differs = m->pairs > 1 && (m->ratio_low > 1 || m->ratio_high < 1);

        table_set(&table, row, column_of_pages(&m->backing), "%.*f%s", decimals, millions,
                  differs                           ? "*"
                  : m->backing.kind == BACKING_BASE ? ""
                                                    : " ");
        if (has_times && m->backing.kind == BACKING_BASE) {
            table_set(&table, row, (struct table_column){UINT64_MAX, "ns p50"}, "%.0f", m->median.ns_p50);
            table_set(&table, row, (struct table_column){UINT64_MAX, "p99"}, "%.0f", m->median.ns_p99);
        }
    }
    REPORT_PARAGRAPH(out,
                     "rows read from shared memory, millions per second (thr = threads of one process, proc = forked "
                     "processes, * = the 95 %% interval of the repeated pairs leaves out the rate of base pages%s)",
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
        table_set(&table, row, column_of_pages(&m->backing), "%s, %s",
                  size_text((int64_t)m->vm_pte_bytes_per_process, each),
                  size_text(m->vm_pte_bytes_total <= INT64_MAX ? (int64_t)m->vm_pte_bytes_total : -1, all));
    }
    if (table.row_count == 0)
        return;
    REPORT_PARAGRAPH(out, "page tables of the processes that read the segment (of one, of all)");
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

/* What happens between two accesses, "1024" or "16+20us": without a wait first. */
static struct table_column column_of_distance(const struct pressure_point *p)
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
    REPORT_PARAGRAPH(
        out,
        "saving under pressure in ns per access against base pages (positive is faster, * = the 95 %% interval "
        "leaves out 0), by the cache lines read from %s of %s pages, and the wait (+8us), between two accesses",
        size_text((int64_t)pressure->region_bytes, size), pressure->region_backing);
    for (size_t i = 0; i < pressure->point_count; i++) {
        const struct pressure_point *p = &pressure->points[i];
        char row[TABLE_TEXT_BYTES];
        char number[REPORT_NUMBER_BYTES];

        (void)snprintf(row, sizeof(row), "  %-4s %9s", p->backing.name, size_text((int64_t)p->footprint_bytes, size));
        if (isfinite(p->delta_ns))
            table_set(&table, row, column_of_distance(p), "%s%s",
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

/* Where so many bytes of page tables lie, by the sizes of the caches. */
static const char *table_place(const struct conditions *conditions, uint64_t bytes)
{
    if (conditions->second_level_cache_bytes == 0 || conditions->last_level_cache_bytes == 0)
        return "";
    return bytes <= conditions->second_level_cache_bytes ? "L2"
           : bytes <= conditions->last_level_cache_bytes ? "LLC"
                                                         : "DRAM";
}

/* The row of a point: what it varied, as a reader calls it. */
static void row_of_point(const struct environment *environment, const struct walks_result *walks,
                         const struct curve *curve, uint64_t x, char row[TABLE_TEXT_BYTES])
{
    char size[SIZE_TEXT_BYTES];

    if (strstr(curve->x_name, "_bytes") == NULL)
        (void)snprintf(row, TABLE_TEXT_BYTES, "%10llu %-5s", (unsigned long long)x,
                       strcmp(curve->x_name, "numa_node") == 0 && (int64_t)x == walks->cpu_node ? "local" : "");
    else
        (void)snprintf(row, TABLE_TEXT_BYTES, "%10s %-5s", size_text((int64_t)x, size),
                       strcmp(curve->x_name, "table_bytes") != 0 ? ""
                       : x == curve->points[0].x                 ? "held"
                                                                 : table_place(&environment->conditions, x));
}

void report_walks(FILE *out, const struct environment *environment, const struct walks_result *walks)
{
    static const struct {
        const char *x_name, *label, *words;
    } tables[] = {
        {"chases", "    chases      ",
         "independent chases side by side, ns per access of any of them: how far walks overlap"},
        {"numa_node", " NUMA node      ", "NUMA node that holds the memory, ns per access"},
        {"table_bytes", "    tables      ",
         "page tables that the walks read, ns per access to a page (held = no walks)"},
        {"stride_bytes", "    stride      ",
         "stride from page to page, ns per access: where the processor's caches of walks end"},
    };

    for (size_t kind = 0; kind < sizeof(tables) / sizeof(tables[0]); kind++) {
        struct table table = {.empty = "-"};

        for (size_t i = 0; i < walks->curves.count; i++) {
            const struct curve *curve = &walks->curves.items[i];

            for (size_t k = 0; k < curve->point_count && strcmp(curve->x_name, tables[kind].x_name) == 0; k++) {
                char row[TABLE_TEXT_BYTES];

                row_of_point(environment, walks, curve, curve->points[k].x, row);
                table_set(&table, row, column_of_pages(&curve->backing), "%.1f", curve->points[k].stats.ns_p50);
            }
        }
        if (table.row_count == 0)
            continue;
        REPORT_PARAGRAPH(out, "%s", tables[kind].words);
        table_print(&table, tables[kind].label, out);
    }
}
