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

    if (bytes < 0) {
        (void)snprintf(text, SIZE_TEXT_BYTES, "?");
        return text;
    }
    size_t unit = scale(&value);

    (void)snprintf(text, SIZE_TEXT_BYTES, unit == 0 || value == (double)(int64_t)value ? "%.0f %s" : "%.1f %s", value,
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
