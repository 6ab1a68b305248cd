/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "output/report.h"
#include "output/report_text.h"

#include <ctype.h>

enum {
    PLOT_COLUMNS = 64, /* at most: a narrow terminal gets fewer */
    PLOT_MARGIN = 12,  /* of the values and of the last label */
    PLOT_ROWS = 12,
    PLOT_MARKS = 8, /* distinct backings in one plot */
};

struct plot {
    int columns;
    char cells[PLOT_ROWS][PLOT_COLUMNS + 1];
    double x_min, x_max; /* log2 */
    double y_max;
    char backings[PLOT_MARKS][16];
    char marks[PLOT_MARKS];
    size_t mark_count;
};

static void find_ranges(struct plot *plot, const struct curve *const *curves, size_t count)
{
    plot->x_min = INFINITY;
    plot->x_max = -INFINITY;
    plot->y_max = 0;
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < curves[c]->point_count; i++) {
            const struct curve_point *point = &curves[c]->points[i];

            if (point->x == 0 || !isfinite(point->stats.ns_p50))
                continue;
            plot->x_min = fmin(plot->x_min, log2((double)point->x));
            plot->x_max = fmax(plot->x_max, log2((double)point->x));
            plot->y_max = fmax(plot->y_max, point->stats.ns_p50);
        }
    }
}

static bool mark_is_taken(const struct plot *plot, char mark)
{
    for (size_t i = 0; i < plot->mark_count; i++)
        if (plot->marks[i] == mark)
            return true;
    return false;
}

/* The backing's first letter or digit, or the next free letter when that is taken. */
static char mark_of(struct plot *plot, const char *backing)
{
    for (size_t i = 0; i < plot->mark_count; i++)
        if (strcmp(plot->backings[i], backing) == 0)
            return plot->marks[i];
    if (plot->mark_count == PLOT_MARKS)
        return '*';
    char mark = isalnum((unsigned char)backing[0]) ? backing[0] : 'a';

    for (char next = 'a'; mark_is_taken(plot, mark); next++)
        mark = next;
    (void)snprintf(plot->backings[plot->mark_count], sizeof(plot->backings[0]), "%s", backing);
    plot->marks[plot->mark_count++] = mark;
    return mark;
}

static void draw(struct plot *plot, const struct curve *curve, char mark)
{
    for (size_t i = 0; i < curve->point_count; i++) {
        const struct curve_point *point = &curve->points[i];

        if (point->x == 0 || !isfinite(point->stats.ns_p50))
            continue;
        double across = (log2((double)point->x) - plot->x_min) / (plot->x_max - plot->x_min);
        double up = fmax(point->stats.ns_p50, 0) / plot->y_max;
        char *cell =
            &plot->cells[PLOT_ROWS - 1 - (int)lround(up * (PLOT_ROWS - 1))][(int)lround(across * (plot->columns - 1))];

        if (*cell == ' ')
            *cell = mark;
        else if (*cell != mark)
            *cell = '+';
    }
}

static void x_text(char text[SIZE_TEXT_BYTES], const char *x_name, double log_x)
{
    uint64_t x = (uint64_t)llround(exp2(log_x));

    if (strcmp(x_name, "footprint_bytes") == 0)
        (void)size_text((int64_t)x, text);
    else
        (void)snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64, x);
}

/* The last label ends where the axis ends; the middle one stands below its middle. */
static void print_axis(FILE *out, const struct plot *plot, const char *x_name)
{
    char left[SIZE_TEXT_BYTES];
    char middle[SIZE_TEXT_BYTES];
    char right[SIZE_TEXT_BYTES];
    char line[PLOT_COLUMNS + 1];

    x_text(left, x_name, plot->x_min);
    x_text(middle, x_name, (plot->x_min + plot->x_max) / 2);
    x_text(right, x_name, plot->x_max);
    memset(line, '-', (size_t)plot->columns);
    line[plot->columns] = '\0';
    (void)fprintf(out, "%9s+%s\n", "", line);
    memset(line, ' ', (size_t)plot->columns);
    memcpy(line, left, strlen(left));
    memcpy(line + (size_t)plot->columns / 2 - strlen(middle) / 2, middle, strlen(middle));
    memcpy(line + (size_t)plot->columns - strlen(right), right, strlen(right));
    (void)fprintf(out, "%10s%s\n%10s", "", line, "");
    for (size_t i = 0; i < plot->mark_count; i++)
        (void)fprintf(out, "%s%c = %s", i > 0 ? ", " : "", plot->marks[i], plot->backings[i]);
    (void)fputs(plot->mark_count > 1 ? ", + = several\n" : "\n", out);
}

static const char *x_words(const char *x_name)
{
    if (strcmp(x_name, "footprint_bytes") == 0)
        return "footprint";
    if (strcmp(x_name, "hot_lines") == 0)
        return "hot lines";
    return strcmp(x_name, "pages") == 0 ? "pages visited" : x_name;
}

void report_plot(FILE *out, const struct curve *const *curves, size_t count)
{
    struct plot plot = {.columns = (int)report_width(out) - PLOT_MARGIN};

    plot.columns = plot.columns < PLOT_COLUMNS ? plot.columns : PLOT_COLUMNS;
    find_ranges(&plot, curves, count);
    if (!(plot.x_max > plot.x_min) || !(plot.y_max > 0))
        return; /* nothing to draw between */
    for (int row = 0; row < PLOT_ROWS; row++)
        (void)snprintf(plot.cells[row], sizeof(plot.cells[row]), "%*s", plot.columns, "");
    for (size_t c = 0; c < count; c++)
        draw(&plot, curves[c], mark_of(&plot, curves[c]->backing.name));
    (void)fprintf(out, "      ns per access over %s\n", x_words(curves[0]->x_name));
    for (int row = 0; row < PLOT_ROWS; row++) {
        /* Every third row carries its value. */
        if (row % 3 == 0 || row == PLOT_ROWS - 1)
            (void)fprintf(out, "%8.1f |", plot.y_max * (PLOT_ROWS - 1 - row) / (PLOT_ROWS - 1));
        else
            (void)fprintf(out, "%8s |", "");
        (void)fprintf(out, "%s\n", text_without_end(plot.cells[row]));
    }
    print_axis(out, &plot, curves[0]->x_name);
}
