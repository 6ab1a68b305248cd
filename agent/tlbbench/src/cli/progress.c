/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "base/clock.h"
#include "base/text.h"

/* Twice a second is often enough for an eye, and keeps the terminal out of the measurement; a log needs less. */
#define TERMINAL_INTERVAL_NS UINT64_C(500000000)
#define LOG_INTERVAL_NS UINT64_C(2000000000)

/* Below this the time left would be a guess. */
#define LEAST_DONE 0.02

enum { LINE_COLUMNS = 48 };

void progress_start(struct progress *progress, FILE *out)
{
    memset(progress, 0, sizeof(*progress));
    progress->out = out;
    progress->overwrites = out != NULL && isatty(fileno(out)) == 1;
    progress->section = "";
    progress->start_ns = clock_now_ns();
}

void progress_next_section(struct progress *progress, const char *section, double share)
{
    progress->done_before += progress->share;
    progress->section = section;
    progress->share = share;
}

char *progress_text(const char *section, double done, double elapsed_seconds, char text[PROGRESS_TEXT_BYTES])
{
    double clipped = done < 0 ? 0 : done > 1 ? 1 : done;

    (void)snprintf(text, PROGRESS_TEXT_BYTES, "%-10s %3.0f %%", section, 100 * clipped);
    if (clipped >= LEAST_DONE)
        text_append(text, PROGRESS_TEXT_BYTES, ", about %.0f s left", elapsed_seconds * (1 - clipped) / clipped);
    return text;
}

void progress_report(void *context, double fraction_of_section)
{
    struct progress *progress = context;
    uint64_t now = clock_now_ns();
    char text[PROGRESS_TEXT_BYTES];

    if (progress->out == NULL ||
        now - progress->printed_ns < (progress->overwrites ? TERMINAL_INTERVAL_NS : LOG_INTERVAL_NS))
        return;
    progress->printed_ns = now;
    (void)progress_text(progress->section, progress->done_before + progress->share * fraction_of_section,
                        (double)(now - progress->start_ns) / 1e9, text);
    /* Blanks instead of an escape sequence erase what stood there: every terminal knows them. */
    (void)fprintf(progress->out, progress->overwrites ? "\r%-*s" : "%-.*s\n", LINE_COLUMNS, text);
    (void)fflush(progress->out);
}

void progress_end(struct progress *progress)
{
    if (progress->out == NULL || !progress->overwrites)
        return;
    (void)fprintf(progress->out, "\r%*s\r", LINE_COLUMNS, "");
    (void)fflush(progress->out);
}
