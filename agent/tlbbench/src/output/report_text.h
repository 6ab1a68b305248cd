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
