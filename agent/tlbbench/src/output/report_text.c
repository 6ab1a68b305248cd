/* SPDX-License-Identifier: Apache-2.0 */
#include "output/report_text.h"

#include "base/text.h"

#include <stdarg.h>
#include <sys/ioctl.h>

enum {
    WIDTH_LEAST = 60,
    WIDTH_DEFAULT = 80, /* what tickets and mails keep in one line */
    WIDTH_MOST = 100,
    WRAPPED_BYTES = 8192,
};

static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

static size_t scale(double *value)
{
    size_t unit = 0;

    while (*value >= 1024 && unit + 1 < sizeof(UNITS) / sizeof(UNITS[0])) {
        *value /= 1024;
        unit++;
    }
    return unit;
}

char *size_text(int64_t bytes, char text[SIZE_TEXT_BYTES])
{
    double value = (double)bytes;
    size_t unit = scale(&value);

    if (bytes < 0)
        return memcpy(text, "?", sizeof("?"));
    (void)snprintf(text, SIZE_TEXT_BYTES, unit == 0 || value == round(value) ? "%.0f %s" : "%.1f %s", value,
                   UNITS[unit]);
    return text;
}

char *size_about(double bytes, char text[SIZE_TEXT_BYTES])
{
    double value = bytes;
    size_t unit = scale(&value);

    if (value >= 100)
        value = round(value / 10) * 10;
    (void)snprintf(text, SIZE_TEXT_BYTES, value >= 10 || value == round(value) ? "%.0f %s" : "%.1f %s", value,
                   UNITS[unit]);
    return text;
}

size_t report_width(FILE *out)
{
    struct winsize size = {0};
    int fd = fileno(out);

    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_DEFAULT;
    if (size.ws_col < WIDTH_LEAST)
        return WIDTH_LEAST;
    return size.ws_col > WIDTH_MOST ? WIDTH_MOST : size.ws_col;
}

void report_wrapped(FILE *out, const char *label, size_t indent, const char *format, ...)
{
    char text[WRAPPED_BYTES];
    size_t width = report_width(out);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    text_ascii(text);
    (void)fprintf(out, "%-*s", (int)indent, label);
    size_t column = indent;

    for (char *word = text + strspn(text, " "); *word != '\0';) {
        size_t length = strcspn(word, " ");

        if (column > indent && column + 1 + length > width) {
            (void)fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            (void)fputc(' ', out);
            column++;
        }
        (void)fprintf(out, "%.*s", (int)length, word);
        column += length;
        word += length;
        word += strspn(word, " ");
    }
    (void)fputc('\n', out);
}

int report_decimals(double uncertainty)
{
    if (!isfinite(uncertainty))
        return 1;
    return uncertainty >= 3 ? 0 : uncertainty >= 0.3 ? 1 : 2;
}

char *report_signed(double value, int decimals, char text[REPORT_NUMBER_BYTES])
{
    if (!isfinite(value)) {
        (void)snprintf(text, REPORT_NUMBER_BYTES, "?");
        return text;
    }
    (void)snprintf(text, REPORT_NUMBER_BYTES, "%+.*f", decimals, value);
    if (strtod(text, NULL) == 0)
        (void)snprintf(text, REPORT_NUMBER_BYTES, "%.*f", decimals, 0.0);
    return text;
}

char *report_interval(double value, double low, double high, char text[REPORT_NUMBER_BYTES])
{
    double half = (high - low) / 2;
    int decimals = report_decimals(half);
    char number[REPORT_NUMBER_BYTES];

    if (!isfinite(value) || !isfinite(half))
        return report_signed(value, 1, text);
    /* The star has a column of its own, so that numbers stand below each other. */
    (void)snprintf(text, REPORT_NUMBER_BYTES, "%.14s +-%.*f%s", report_signed(value, decimals, number), decimals, half,
                   low > 0 || high < 0 ? "*" : " ");
    return text;
}

struct entries_interval report_entries(const struct tlb_level *level)
{
    struct entries_interval about = {level->entries, level->entries_min, level->entries_max, false};
    unsigned digit = 1;

    while (about.entries / digit >= 100)
        digit *= 10;
    /* Narrower than its own second digit: rounding would say less than is known. */
    if (about.max <= about.min || about.max - about.min < digit)
        return about;
    about.entries = (about.entries + digit / 2) / digit * digit;
    about.min = about.min / digit * digit;
    about.max = (about.max + digit - 1) / digit * digit;
    about.is_rounded = digit > 1;
    return about;
}

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
        widths[place] = table->is_left ? -widths[place] : widths[place] + 1;
        text_append(line, sizeof(line), " %*s", widths[place], table->columns[order[place]].heading);
    }
    (void)fprintf(out, "%s\n", text_without_end(line));
    for (size_t index = 0; index < table->row_count; index++) {
        (void)snprintf(line, sizeof(line), "%s", table->rows[index].label);
        for (size_t place = 0; place < table->column_count; place++)
            text_append(line, sizeof(line), " %*s", widths[place], cell_text(table, &table->rows[index], order[place]));
        (void)fprintf(out, "%s\n", text_without_end(line));
    }
    free(table->rows);
    *table = (struct table){.empty = table->empty};
}
