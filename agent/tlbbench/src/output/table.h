/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the readable report. Rows and columns come into being with their first cell, so that no caller has to find
 * out beforehand which ones there are. */
#pragma once

#include "base/std.h"

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
