/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void texts(struct harness *h)
{
    char text[PROGRESS_TEXT_BYTES];

    CHECK_TEXT(progress_text("geometry", 0.25, 10, text), "geometry    25 %, about 30 s left");
    CHECK_TEXT(progress_text("rows", 0.01, 10, text), "rows         1 %"); /* too early for a guess */
    CHECK_TEXT(progress_text("rows", 1.2, 10, text), "rows       100 %, about 0 s left");
    CHECK_TEXT(progress_text("rows", -1, 10, text), "rows         0 %");
}

static void a_log_gets_whole_lines(struct harness *h)
{
    struct progress progress;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    progress_start(&progress, out);
    progress_next_section(&progress, "geometry", 0.5);
    progress_report(&progress, 0.5);
    progress_report(&progress, 0.6); /* too soon after the first */
    progress_next_section(&progress, "rows", 0.5);
    progress.printed_ns = 0; /* long ago */
    progress_report(&progress, 0.5);
    progress_end(&progress);
    (void)fclose(out);
    CHECK(strncmp(text, "geometry    25 %", 16) == 0);
    const char *second = strchr(text, '\n');

    CHECK(second != NULL && strncmp(second + 1, "rows        75 %", 16) == 0);
    CHECK(strchr(text, '\r') == NULL && strchr(text, '\x1b') == NULL);
    CHECK(length > 0 && text[length - 1] == '\n');
    free(text);
}

static void silence(struct harness *h)
{
    struct progress progress;

    progress_start(&progress, NULL);
    progress_next_section(&progress, "geometry", 1);
    progress_report(&progress, 0.5);
    progress_end(&progress);
    CHECK(progress.printed_ns == 0);
}

static const struct harness_case cases[] = {
    {"percent and time left", texts},
    {"a log gets whole lines", a_log_gets_whole_lines},
    {"silence", silence},
};

HARNESS_MAIN("progress", cases)
