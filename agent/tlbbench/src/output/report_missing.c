/* SPDX-License-Identifier: Apache-2.0 */
/* What was skipped or cut short, and why. */
#include "base/text.h"
#include "engine/curve.h"
#include "output/report_parts.h"
#include "output/report_text.h"

#include <stdlib.h>
#include <string.h>

const char *status_words(enum status status)
{
    static const char *const words[] = {
        [STATUS_OK] = "it was measured",
        [STATUS_SKIPPED] = "not requested, or nothing to measure here",
        [STATUS_NOISY] = "the machine was too disturbed for a number",
        [STATUS_NO_FREE_HUGEPAGES] = "the pool has too few free pages",
        [STATUS_THP_NOT_GRANTED] = "the kernel gave base pages where THP was requested",
        [STATUS_FRACTURED] = "the TLB holds them in smaller pieces",
        [STATUS_CPUID_HIDDEN] = "CPUID says nothing",
        [STATUS_STOPPED] = "stopped before it was done",
        [STATUS_NO_MEMORY] = "the kernel gave no memory",
        [STATUS_MEMORY_LIMIT] = "it needs more memory than is allowed",
        [STATUS_CGROUP_LIMIT] = "the memory cgroup leaves too little",
        [STATUS_ADDRESS_SPACE_LIMIT] = "RLIMIT_AS leaves too little",
        [STATUS_SIGBUS] = "a page that the kernel had reserved was not available",
        [STATUS_NOT_PERMITTED] = "it is not permitted",
        [STATUS_UNSUPPORTED] = "the kernel or the processor does not support it",
        [STATUS_NOT_REACHED] = "not reached within the tested range",
        [STATUS_FAILED] = "it failed",
    };

    return words[status];
}

enum { NAMES_BYTES = 560 };

/* Things that are missing for the same reason share a line. */
struct missing_line {
    struct verdict verdict;
    char names[NAMES_BYTES];
};

struct missing {
    struct missing_line *lines;
    size_t count;
};

static void say_missing(struct missing *missing, const char *what, const struct verdict *verdict)
{
    struct missing_line *line = NULL;

    if (verdict->status == STATUS_OK || verdict->status == STATUS_FRACTURED)
        return;
    for (size_t i = 0; i < missing->count && line == NULL; i++)
        if (missing->lines[i].verdict.status == verdict->status &&
            strcmp(missing->lines[i].verdict.reason, verdict->reason) == 0)
            line = &missing->lines[i];
    if (line == NULL) {
        struct missing_line *grown = realloc(missing->lines, (missing->count + 1) * sizeof(*grown));

        if (grown == NULL)
            return;
        missing->lines = grown;
        line = &grown[missing->count++];
        line->verdict = *verdict;
        line->names[0] = '\0';
    }
    if (strstr(line->names, what) == NULL)
        text_append(line->names, sizeof(line->names), "%s%s", line->names[0] != '\0' ? ", " : "", what);
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
    struct missing missing = {0};

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
    }
    for (size_t i = 0; run->rows != NULL && i < run->rows->measurement_count; i++) {
        char what[40];

        (void)snprintf(what, sizeof(what), "rows in %s pages", run->rows->measurements[i].backing.name);
        say_missing(&missing, what, &run->rows->measurements[i].verdict);
    }
    if (run->scatter != NULL)
        say_curves(&missing, "scatter", &run->scatter->curves);
    for (size_t i = 0; i < missing.count; i++) {
        const struct missing_line *line = &missing.lines[i];
        const char *reason =
            line->verdict.reason[0] != '\0' ? line->verdict.reason : status_words(line->verdict.status);

        (void)fputs(i == 0 ? "\nskipped or cut short\n" : "", out);
        report_wrapped(out, "  -", 4, "%s: %s (%s)", line->names, reason, STATUS_NAMES[line->verdict.status]);
    }
    free(missing.lines);
}
