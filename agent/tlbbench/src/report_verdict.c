/* SPDX-License-Identifier: Apache-2.0 */
#include "report_verdict.h"

#include "report.h"
#include "text.h"
#include "tlb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The difference to base pages at the largest footprint where it was measured; NULL when it was not. */
static const struct paired_delta *largest_delta(const struct latency_result *latency, const char *backing)
{
    const struct paired_delta *found = NULL;

    for (size_t i = 0; latency != NULL && i < latency->delta_count; i++) {
        const struct paired_delta *d = &latency->deltas[i];

        if (strcmp(d->layout, "packed") == 0)
            continue; /* the control, whose pages all fit */
        if (strcmp(d->backing, backing) == 0 && isfinite(d->delta_ns) && (found == NULL || d->x > found->x))
            found = d;
    }
    return found;
}

enum effect { EFFECT_UNKNOWN, EFFECT_FASTER, EFFECT_NONE, EFFECT_SLOWER };

/* Only an interval that leaves out zero is a difference. */
static enum effect effect_of(const struct paired_delta *delta)
{
    if (delta == NULL)
        return EFFECT_UNKNOWN;
    if (delta->ci95_high_ns < 0)
        return EFFECT_FASTER;
    return delta->ci95_low_ns > 0 ? EFFECT_SLOWER : EFFECT_NONE;
}

static void append_effect(char text[VERDICT_TEXT_BYTES], const struct paired_delta *delta)
{
    char size[SIZE_TEXT_BYTES];

    if (delta == NULL)
        return;
    text_append(text, VERDICT_TEXT_BYTES, " (%+.1f ns per access at %s, 95 %% interval %+.1f to %+.1f)",
                delta->delta_ns, size_text((int64_t)delta->x, size), delta->ci95_low_ns, delta->ci95_high_ns);
}

static const char *backing_noun(const struct granule *granule)
{
    return granule->kind == BACKING_THP ? " (transparent)" : "";
}

static void fractured(const struct environment *environment, const struct granule *granule,
                      const struct paired_delta *delta, char text[VERDICT_TEXT_BYTES])
{
    char page[PAGE_TEXT_BYTES];
    char piece[PAGE_TEXT_BYTES];
    bool guest = environment->hypervisor.state == HYPERVISOR_PRESENT;

    (void)page_text(granule->page_bytes, page);
    (void)page_text(granule->granule_bytes, piece);
    switch (effect_of(delta)) {
    case EFFECT_FASTER:
        text_append(text, VERDICT_TEXT_BYTES, "%s pages%s here shorten walks but give no TLB reach", page,
                    backing_noun(granule));
        break;
    case EFFECT_SLOWER:
        text_append(text, VERDICT_TEXT_BYTES, "%s pages%s here give no TLB reach and were slower than base pages", page,
                    backing_noun(granule));
        break;
    case EFFECT_NONE:
        text_append(text, VERDICT_TEXT_BYTES, "%s pages%s here give no TLB reach and no measured gain", page,
                    backing_noun(granule));
        break;
    case EFFECT_UNKNOWN:
        text_append(text, VERDICT_TEXT_BYTES,
                    "%s pages%s here give no TLB reach; whether they shorten walks was not measured", page,
                    backing_noun(granule));
        break;
    }
    text_append(text, VERDICT_TEXT_BYTES,
                guest ? ": the hypervisor backs the guest with %s pages" : ": the TLB holds them in pieces of %s",
                piece);
    append_effect(text, delta);
}

/* Entries of the last data level that holds the page size, measured first, else the best other source; 0 = unknown. */
static const struct tlb_level *last_level(const struct geometry_result *geometry, uint64_t page_bytes)
{
    const struct tlb_level *best = NULL;

    for (size_t i = 0; i < geometry->levels.count; i++) {
        const struct tlb_level *level = &geometry->levels.items[i];
        bool data = level->kind == TLB_DATA || level->kind == TLB_UNIFIED || level->kind == TLB_LOAD;

        if (!data || level->page_bytes != page_bytes || level->entries == TLB_ENTRIES_UNKNOWN)
            continue;
        if (best == NULL || level->level > best->level ||
            (level->level == best->level &&
             (level->source == SOURCE_MEASURED ||
              (best->source != SOURCE_MEASURED && level->confidence > best->confidence))))
            best = level;
    }
    return best;
}

static void whole(const struct geometry_result *geometry, const struct granule *granule,
                  const struct paired_delta *delta, char text[VERDICT_TEXT_BYTES])
{
    const struct tlb_level *level = last_level(geometry, granule->page_bytes);
    char page[PAGE_TEXT_BYTES];
    char reach[SIZE_TEXT_BYTES];

    text_append(text, VERDICT_TEXT_BYTES, "%s pages%s: one TLB entry covers a whole page",
                page_text(granule->page_bytes, page), backing_noun(granule));
    if (level != NULL)
        text_append(text, VERDICT_TEXT_BYTES, "; L%u reaches %s (%u entries, %s)", level->level,
                    size_text((int64_t)(level->entries * granule->page_bytes), reach), level->entries,
                    fact_source_name(level->source));
    if (granule->kind == BACKING_BASE || delta == NULL)
        return;
    switch (effect_of(delta)) {
    case EFFECT_FASTER:
        text_append(text, VERDICT_TEXT_BYTES, "; faster than base pages");
        break;
    case EFFECT_SLOWER:
        text_append(text, VERDICT_TEXT_BYTES, "; slower than base pages");
        break;
    default:
        text_append(text, VERDICT_TEXT_BYTES, "; no measured difference to base pages");
        break;
    }
    append_effect(text, delta);
}

static void not_measured(const struct granule *granule, char text[VERDICT_TEXT_BYTES])
{
    char page[PAGE_TEXT_BYTES];

    text_append(text, VERDICT_TEXT_BYTES, "%s pages%s were not measured: ", page_text(granule->page_bytes, page),
                backing_noun(granule));
    switch (granule->verdict.status) {
    case STATUS_NO_FREE_HUGEPAGES:
        text_append(text, VERDICT_TEXT_BYTES,
                    "the pool has no free page (--reserve takes them for the measurement, as root)");
        break;
    case STATUS_THP_NOT_GRANTED:
        text_append(text, VERDICT_TEXT_BYTES, "the kernel gave base pages where transparent huge pages were asked for");
        break;
    case STATUS_NOISY:
        text_append(text, VERDICT_TEXT_BYTES, "the machine was too disturbed to say a number");
        break;
    default:
        text_append(text, VERDICT_TEXT_BYTES, "%s",
                    granule->verdict.reason[0] != '\0' ? granule->verdict.reason
                                                       : status_name(granule->verdict.status));
        break;
    }
}

char *verdict_sentence(const struct environment *environment, const struct geometry_result *geometry,
                       const struct latency_result *latency, const struct granule *granule,
                       char text[VERDICT_TEXT_BYTES])
{
    const struct paired_delta *delta = largest_delta(latency, granule->backing);

    text[0] = '\0';
    if (granule->verdict.status == STATUS_FRACTURED && granule->granule_bytes != 0)
        fractured(environment, granule, delta, text);
    else if (granule->verdict.status == STATUS_OK)
        whole(geometry, granule, delta, text);
    else
        not_measured(granule, text);
    return text;
}

/* Without the geometry only the difference in time can be told, not why. */
static void report_deltas(FILE *out, const struct latency_result *latency)
{
    static const char *const words[] = {
        [EFFECT_UNKNOWN] = "not known",
        [EFFECT_FASTER] = "faster than base pages",
        [EFFECT_NONE] = "no measured difference to base pages",
        [EFFECT_SLOWER] = "slower than base pages",
    };
    bool first = true;

    for (size_t i = 0; i < latency->delta_count; i++) {
        const struct paired_delta *delta = largest_delta(latency, latency->deltas[i].backing);
        char text[VERDICT_TEXT_BYTES] = "";

        if (delta == NULL || delta != &latency->deltas[i])
            continue;
        text_append(text, VERDICT_TEXT_BYTES, "%s pages: %s", delta->backing, words[effect_of(delta)]);
        append_effect(text, delta);
        (void)fprintf(out, "%s  %s.\n", first ? "\nverdict\n" : "", text);
        first = false;
    }
}

void report_verdicts(FILE *out, const struct environment *environment, const struct run_result *run)
{
    char text[VERDICT_TEXT_BYTES];

    if (run->geometry == NULL || run->geometry->granule_count == 0) {
        if (run->latency != NULL)
            report_deltas(out, run->latency);
        return;
    }
    (void)fputs("\nverdict\n", out);
    for (size_t i = 0; i < run->geometry->granule_count; i++)
        (void)fprintf(out, "  %s.\n",
                      verdict_sentence(environment, run->geometry, run->latency, &run->geometry->granules[i], text));
}

/* --- what is missing ---------------------------------------------------------------------------------------------- */

/* Things that are missing for the same reason share a line. */
struct missing_line {
    struct verdict verdict;
    char names[VERDICT_TEXT_BYTES];
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
        struct missing_line *grown = realloc(missing->lines, (missing->count + 1) * sizeof *grown);

        if (grown == NULL)
            return;
        missing->lines = grown;
        line = &grown[missing->count++];
        line->verdict = *verdict;
        line->names[0] = '\0';
    }
    if (strstr(line->names, what) == NULL)
        text_append(line->names, sizeof line->names, "%s%s", line->names[0] != '\0' ? ", " : "", what);
}

static void say_curves(struct missing *missing, const struct curve_list *curves)
{
    for (size_t i = 0; i < curves->count; i++)
        say_missing(missing, curves->items[i].name, &curves->items[i].verdict);
}

void report_missing(FILE *out, const struct run_result *run)
{
    struct missing missing = {0};

    for (size_t i = 0; i < run->section_count; i++)
        say_missing(&missing, run->sections[i].name, &run->sections[i].verdict);
    for (size_t i = 0; run->geometry != NULL && i < run->geometry->granule_count; i++) {
        char what[40];

        (void)snprintf(what, sizeof what, "effective page of %s", run->geometry->granules[i].backing);
        say_missing(&missing, what, &run->geometry->granules[i].verdict);
    }
    if (run->geometry != NULL)
        say_curves(&missing, &run->geometry->curves);
    if (run->latency != NULL) {
        say_curves(&missing, &run->latency->curves);
        say_missing(&missing, "latency under pressure", &run->latency->pressure.verdict);
    }
    for (size_t i = 0; run->rows != NULL && i < run->rows->measurement_count; i++) {
        char what[40];

        (void)snprintf(what, sizeof what, "rows with %s pages", run->rows->measurements[i].backing);
        say_missing(&missing, what, &run->rows->measurements[i].verdict);
    }
    if (run->scatter != NULL)
        say_curves(&missing, &run->scatter->curves);
    for (size_t i = 0; i < missing.count; i++) {
        const struct missing_line *line = &missing.lines[i];

        (void)fprintf(out, "%s  %s: %s%s%s\n", i == 0 ? "\nskipped or cut short\n" : "", line->names,
                      status_name(line->verdict.status), line->verdict.reason[0] != '\0' ? ", " : "",
                      line->verdict.reason);
    }
    free(missing.lines);
}
