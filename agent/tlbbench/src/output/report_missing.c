/* SPDX-License-Identifier: Apache-2.0 */
/* What was skipped or cut short, and why. */
#include "base/text.h"
#include "output/report.h"
#include "output/report_text.h"

enum { SAID_BYTES = 16384 };

/* The same thing is often missing at many points; it is said once. */
struct missing {
    FILE *out;
    char said[SAID_BYTES]; /* a line each */
};

static void say_missing(struct missing *missing, const char *what, const struct verdict *verdict)
{
    char line[REASON_BYTES + 128];

    if (verdict->status == STATUS_OK || verdict->status == STATUS_FRACTURED)
        return;
    (void)snprintf(line, sizeof(line), "%s: %s (%s)\n", what, verdict_words(verdict),
                   STATUS_TEXTS[verdict->status].name);
    if (strstr(missing->said, line) != NULL)
        return;
    (void)fputs(missing->said[0] == '\0' ? "\nskipped or cut short\n" : "", missing->out);
    text_append(missing->said, sizeof(missing->said), "%s", line);
    line[strlen(line) - 1] = '\0';
    report_wrapped(missing->out, "  -", 4, "%s", line);
}

/* The control has no verdict of its own, and one line for a page size is enough. */
static void say_curves(struct missing *missing, const char *section, const struct curve_list *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        char what[sizeof(curves->items[i].backing.name) + 40];

        if (strcmp(curves->items[i].layout, "packed") == 0)
            continue;
        (void)snprintf(what, sizeof(what), "%s of %s pages", section, curves->items[i].backing.name);
        say_missing(missing, what, &curves->items[i].verdict);
    }
}

void report_missing(FILE *out, const struct run_result *run)
{
    struct missing missing = {.out = out};

    for (size_t i = 0; i < run->section_count; i++)
        say_missing(&missing, run->sections[i].name, &run->sections[i].verdict);
    for (size_t i = 0; run->geometry != NULL && i < run->geometry->effective_page_count; i++) {
        char what[40];

        (void)snprintf(what, sizeof(what), "TLB entry of %s pages", run->geometry->effective_pages[i].backing.name);
        say_missing(&missing, what, &run->geometry->effective_pages[i].verdict);
    }
    if (run->geometry != NULL)
        say_curves(&missing, "translation", &run->geometry->curves);
    if (run->latency != NULL) {
        say_curves(&missing, "latency", &run->latency->curves);
        say_missing(&missing, "latency under pressure", &run->pressure->verdict);
        say_missing(&missing, "walks", &run->walks->verdict);
        say_curves(&missing, "walks", &run->walks->curves);
    }
    for (size_t i = 0; run->rows != NULL && i < run->rows->measurement_count; i++) {
        char what[40];

        (void)snprintf(what, sizeof(what), "rows in %s pages", run->rows->measurements[i].backing.name);
        say_missing(&missing, what, &run->rows->measurements[i].verdict);
    }
    if (run->scatter != NULL)
        say_curves(&missing, "scatter", &run->scatter->curves);
}
