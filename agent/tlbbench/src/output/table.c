/* SPDX-License-Identifier: Apache-2.0 */
#include "output/table.h"

#include "base/text.h"

#include <stdarg.h>

/* Index of the column in every row, TABLE_COLUMNS_MAX when there is no room. */
static size_t find_column(struct table *table, const struct table_column *column)
{
    for (size_t index = 0; index < table->column_count; index++)
        if (strcmp(table->columns[index].heading, column->heading) == 0)
            return index;
    if (table->column_count < TABLE_COLUMNS_MAX)
        table->columns[table->column_count++] = *column;
    else
        return TABLE_COLUMNS_MAX;
    return table->column_count - 1;
}

static struct table_row *find_row(struct table *table, const char *label)
{
    for (size_t index = 0; index < table->row_count; index++)
        if (strcmp(table->rows[index].label, label) == 0)
            return &table->rows[index];
    struct table_row *grown = realloc(table->rows, (table->row_count + 1) * sizeof(*grown));

    if (grown == NULL)
        return NULL;
    table->rows = grown;
    struct table_row *row = &grown[table->row_count++];

    memset(row, 0, sizeof(*row));
    (void)snprintf(row->label, sizeof(row->label), "%s", label);
    return row;
}

void table_set(struct table *table, const char *row, struct table_column column, const char *format, ...)
{
    size_t place = find_column(table, &column);
    struct table_row *found = find_row(table, row);
    va_list arguments;

    if (found == NULL || place == TABLE_COLUMNS_MAX || found->cells[place][0] != '\0')
        return;
    va_start(arguments, format);
    (void)vsnprintf(found->cells[place], TABLE_TEXT_BYTES, format, arguments);
    va_end(arguments);
}

/* The columns by rank: few, so that each is moved to its place behind those before it. */
static void sort_columns(const struct table *table, size_t order[TABLE_COLUMNS_MAX])
{
    for (size_t index = 0; index < table->column_count; index++) {
        size_t place = index;

        for (; place > 0 && table->columns[order[place - 1]].rank > table->columns[index].rank; place--)
            order[place] = order[place - 1];
        order[place] = index;
    }
}

static const char *cell_text(const struct table *table, const struct table_row *row, size_t column)
{
    return row->cells[column][0] != '\0' ? row->cells[column] : table->empty;
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = strlen(table->columns[column].heading);

    for (size_t index = 0; index < table->row_count; index++) {
        size_t length = strlen(cell_text(table, &table->rows[index], column));

        width = length > width ? length : width;
    }
    return width;
}

void table_print(struct table *table, const char *label, FILE *out)
{
    char line[TABLE_TEXT_BYTES * (TABLE_COLUMNS_MAX + 1)] = "";
    size_t order[TABLE_COLUMNS_MAX] = {0};
    int widths[TABLE_COLUMNS_MAX];

    sort_columns(table, order);
    text_append(line, sizeof(line), "%s", label);
    for (size_t place = 0; place < table->column_count; place++) {
        widths[place] = (int)column_width(table, order[place]);
        text_append(line, sizeof(line), "  %*s", widths[place], table->columns[order[place]].heading);
    }
    (void)fprintf(out, "%s\n", text_without_end(line));
    for (size_t index = 0; index < table->row_count; index++) {
        (void)snprintf(line, sizeof(line), "%s", table->rows[index].label);
        for (size_t place = 0; place < table->column_count; place++)
            text_append(line, sizeof(line), "  %*s", widths[place],
                        cell_text(table, &table->rows[index], order[place]));
        (void)fprintf(out, "%s\n", text_without_end(line));
    }
    free(table->rows);
    *table = (struct table){.empty = table->empty};
}
