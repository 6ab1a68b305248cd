/* SPDX-License-Identifier: Apache-2.0 */
/* Text of the readable report: lines that fit the terminal, and numbers no finer than their noise. */
#pragma once

#include "machine/tlb_levels.h"

enum {
    REPORT_LABEL_COLUMNS = 14, /* of the header's labels */
    REPORT_NUMBER_BYTES = 32,
    SIZE_TEXT_BYTES = 32,
};

/* "1.5 GiB", "512 B", or "?" for a negative number. Returns `text`. */
char *size_text(int64_t bytes, char text[SIZE_TEXT_BYTES]);

/* The same with two significant digits, for what is known no better. */
char *size_about(double bytes, char text[SIZE_TEXT_BYTES]);

/* Columns of the terminal behind `out`, from 60 to 100; 80 where there is none, as in a file or a pipe. */
size_t report_width(FILE *out);

/* Prints `label`, then the text from column `indent` on. Words that do not fit go to further lines, indented alike;
 * what is not printable ASCII becomes '?'. */
void report_wrapped(FILE *out, const char *label, size_t indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A line behind a label of the header; and text behind an empty line. */
#define REPORT_LINE(out, label, ...) report_wrapped(out, label, REPORT_LABEL_COLUMNS, __VA_ARGS__)
#define REPORT_PARAGRAPH(out, ...) ((void)fputc('\n', out), report_wrapped(out, "", 0, __VA_ARGS__))

/* Decimals that the uncertainty (half the width of an interval, NAN = unknown) leaves meaningful: 0, 1 or 2. */
int report_decimals(double uncertainty);

/* Entries of a level as far as they are known: a wide interval, as that of a second level's knee, is rounded outward to
 * two digits and its middle to two digits; a narrow or absent one stays as it is. */
struct entries_interval {
    unsigned entries, min, max;
    bool is_rounded;
};
struct entries_interval report_entries(const struct tlb_level *level);

/* A signed number with that many decimals, without a sign where it rounds to zero; "?" when it is not finite. */
char *report_signed(double value, int decimals, char text[REPORT_NUMBER_BYTES]);

/* "-4.5 +-0.8": value and half the width of its interval. An interval that leaves out zero adds '*',
 * any other a blank. */
char *report_interval(double value, double low, double high, char text[REPORT_NUMBER_BYTES]);

enum {
    TABLE_TEXT_BYTES = 48, /* of a row's label, a heading or a cell */
    TABLE_COLUMNS_MAX = 12,
};

/* Where a column stands: those of lower rank first, equal ones in the order in which they came. */
struct table_column {
    uint64_t rank;
    char heading[TABLE_TEXT_BYTES];
};

struct table_row {
    char label[TABLE_TEXT_BYTES];
    char cells[TABLE_COLUMNS_MAX][TABLE_TEXT_BYTES]; /* empty = none */
};

struct table {
    const char *empty; /* what stands for a cell that nobody set */
    bool is_left;      /* the columns' texts stand to the left, one blank apart; else to the right, two apart */
    struct table_column columns[TABLE_COLUMNS_MAX];
    size_t column_count;
    struct table_row *rows;
    size_t row_count;
};

/* Sets a cell, unless it is set. A column too many, or a row that there is no memory for, is left out. */
void table_set(struct table *table, const char *row, struct table_column column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints the table below `label`, the heading of the rows, and frees it. Columns are as wide as what stands in them. */
void table_print(struct table *table, const char *label, FILE *out);
