/* SPDX-License-Identifier: Apache-2.0 */
#include "output/report.h"
#include "output/report_text.h"

/* Half of a 95 % interval below this share of the base pages' time, or below so many ns, shows that there is no
 * difference worth having; a wider one that holds zero shows nothing. */
#define NARROW_SHARE 0.05
#define NARROW_NS 0.5

/* A footprint this many times smaller than the largest says nothing of large ones. */
enum { FAR_BELOW = 8 };

enum effect { EFFECT_UNKNOWN, EFFECT_FASTER, EFFECT_NONE, EFFECT_SLOWER, EFFECT_HIDDEN };

/* What one page size does to the time of an access. */
struct finding {
    const struct paired_delta *delta; /* NULL = not measured */
    enum effect effect;
    bool hidden_above; /* larger footprints were measured, but their noise hides the difference */
};

/* The time of base pages at the same point; NAN when the curve lacks it. */
static double base_ns(const struct latency_result *latency, const struct paired_delta *delta)
{
    for (size_t c = 0; c < latency->curves.count; c++) {
        const struct curve *curve = &latency->curves.items[c];

        if (curve->backing.kind != BACKING_BASE || strcmp(curve->layout, delta->layout) != 0)
            continue;
        for (size_t i = 0; i < curve->point_count; i++)
            if (curve->points[i].x == delta->x)
                return curve->points[i].stats.ns_p50;
    }
    return NAN;
}

/* Only an interval that leaves out zero is a difference, and only a narrow one that holds it is none. */
static enum effect effect_of(const struct latency_result *latency, const struct paired_delta *delta)
{
    double half = (delta->ci95_high_ns - delta->ci95_low_ns) / 2;

    if (delta->ci95_high_ns < 0)
        return EFFECT_FASTER;
    if (delta->ci95_low_ns > 0)
        return EFFECT_SLOWER;
    return half <= NARROW_NS || half <= NARROW_SHARE * base_ns(latency, delta) ? EFFECT_NONE : EFFECT_HIDDEN;
}

/* Entries of the last data level that holds the page size, measured first, else the best other source; 0 = unknown. */
static const struct tlb_level *last_level(const struct geometry_result *geometry, uint64_t page_bytes)
{
    const struct tlb_level *best = NULL;

    for (size_t i = 0; i < geometry->levels.count; i++) {
        const struct tlb_level *level = &geometry->levels.items[i];

        if (!tlb_is_data_side(level->kind) || level->page_bytes != page_bytes || level->entries == TLB_ENTRIES_UNKNOWN)
            continue;
        if (best == NULL || level->level > best->level ||
            (level->level == best->level &&
             (level->source == SOURCE_MEASURED ||
              (best->source != SOURCE_MEASURED && level->confidence > best->confidence))))
            best = level;
    }
    return best;
}

/* The packed control has all its pages in the TLB. */
static bool tells_of(const struct paired_delta *delta, const char *backing, uint64_t beyond_bytes)
{
    return strcmp(delta->layout, "packed") != 0 && strcmp(delta->backing, backing) == 0 && delta->x > beyond_bytes &&
           isfinite(delta->delta_ns) && isfinite(delta->ci95_low_ns) && isfinite(delta->ci95_high_ns);
}

/* The largest footprint that tells something; when none near the largest one does, that one. */
static struct finding find_effect(const struct latency_result *latency, const char *backing, uint64_t beyond_bytes)
{
    const struct paired_delta *largest = NULL;
    struct finding found = {.effect = EFFECT_UNKNOWN};

    for (size_t i = 0; latency != NULL && i < latency->delta_count; i++) {
        const struct paired_delta *d = &latency->deltas[i];

        if (!tells_of(d, backing, beyond_bytes))
            continue;
        if (largest == NULL || d->x > largest->x)
            largest = d;
        if (effect_of(latency, d) != EFFECT_HIDDEN && (found.delta == NULL || d->x > found.delta->x))
            found = (struct finding){.delta = d, .effect = effect_of(latency, d)};
    }
    if (largest == NULL)
        return found;
    if (found.delta == NULL || found.delta->x < largest->x / FAR_BELOW)
        return (struct finding){.delta = largest, .effect = EFFECT_HIDDEN};
    found.hidden_above = largest->x > found.delta->x;
    return found;
}

static void append_effect(char text[VERDICT_TEXT_BYTES], const struct finding *found)
{
    static const char *const sentences[] = {
        [EFFECT_UNKNOWN] = "not compared with base pages",
        [EFFECT_FASTER] = "faster than base pages",
        [EFFECT_NONE] = "no measured difference from base pages",
        [EFFECT_SLOWER] = "slower than base pages",
        [EFFECT_HIDDEN] = "the noise hides any difference from base pages",
    };
    const struct paired_delta *delta = found->delta;
    char size[SIZE_TEXT_BYTES];
    char value[REPORT_NUMBER_BYTES];
    char low[REPORT_NUMBER_BYTES];
    char high[REPORT_NUMBER_BYTES];

    text_append(text, VERDICT_TEXT_BYTES, "; %s", sentences[found->effect]);
    if (delta == NULL)
        return;
    int decimals = report_decimals((delta->ci95_high_ns - delta->ci95_low_ns) / 2);

    text_append(text, VERDICT_TEXT_BYTES, " (%s ns per access at %s, 95 %% interval %s to %s%s)",
                report_signed(delta->delta_ns, decimals, value), size_text((int64_t)delta->x, size),
                report_signed(delta->ci95_low_ns, decimals, low), report_signed(delta->ci95_high_ns, decimals, high),
                found->hidden_above ? "; noise hides the larger footprints" : "");
}

static void append_fracture(char text[VERDICT_TEXT_BYTES], const struct environment *environment,
                            const struct effective_page *effective_page)
{
    char piece[PAGE_TEXT_BYTES];

    (void)page_text(effective_page->entry_bytes, piece);
    if (effective_page->backing.kind == BACKING_BASE)
        text_append(text, VERDICT_TEXT_BYTES, "each takes several TLB entries: ");
    else
        text_append(text, VERDICT_TEXT_BYTES, "no more TLB reach than %s pages: ", piece);
    text_append(text, VERDICT_TEXT_BYTES,
                environment->hypervisor.state == HYPERVISOR_PRESENT ? "the hypervisor backs the guest with %s pages"
                                                                    : "the TLB holds them in pieces of %s",
                piece);
}

static void append_level_reach(char text[VERDICT_TEXT_BYTES], const struct tlb_level *level, uint64_t page_bytes)
{
    struct entries_interval about = report_entries(level);
    char reach[SIZE_TEXT_BYTES];

    if (about.is_rounded)
        text_append(text, VERDICT_TEXT_BYTES, "the L%u TLB reaches about %s (%u to %u entries, %s)", level->level,
                    size_about((double)about.entries * (double)page_bytes, reach), about.min, about.max,
                    FACT_SOURCE_NAMES[level->source]);
    else
        text_append(text, VERDICT_TEXT_BYTES, "the L%u TLB reaches %s (%u entries, %s)", level->level,
                    size_text((int64_t)(level->entries * page_bytes), reach), level->entries,
                    FACT_SOURCE_NAMES[level->source]);
}

static void append_whole(char text[VERDICT_TEXT_BYTES], const struct geometry_result *geometry,
                         const struct effective_page *effective_page)
{
    const struct tlb_level *level = last_level(geometry, effective_page->backing.page_bytes);

    if (effective_page->backing.kind != BACKING_BASE)
        text_append(text, VERDICT_TEXT_BYTES, "one TLB entry covers a whole page; ");
    if (level != NULL)
        append_level_reach(text, level, effective_page->backing.page_bytes);
    else
        text_append(text, VERDICT_TEXT_BYTES, "how far the TLB reaches is not known");
}

char *verdict_sentence(const struct environment *environment, const struct run_result *run,
                       const struct effective_page *effective_page, char text[VERDICT_TEXT_BYTES])
{
    /* Footprints up to the reach of base pages tell nothing: huge ones cannot help there. */
    const struct tlb_level *base = last_level(run->geometry, environment->base_page_bytes);
    uint64_t base_reach_bytes = base != NULL ? base->entries * environment->base_page_bytes : 0;
    struct finding found = find_effect(run->latency, effective_page->backing.name, base_reach_bytes);
    bool is_fractured = effective_page->verdict.status == STATUS_FRACTURED && effective_page->entry_bytes != 0;
    char page[PAGE_TEXT_BYTES];

    text[0] = '\0';
    text_append(text, VERDICT_TEXT_BYTES, "%s pages%s: ", page_text(effective_page->backing.page_bytes, page),
                effective_page->backing.kind == BACKING_THP ? " (transparent)" : "");
    if (is_fractured) {
        append_fracture(text, environment, effective_page);
    } else if (effective_page->verdict.status == STATUS_OK) {
        append_whole(text, run->geometry, effective_page);
    } else {
        text_append(text, VERDICT_TEXT_BYTES, "what one TLB entry covers was not measured: %s%s",
                    verdict_words(&effective_page->verdict),
                    effective_page->verdict.status == STATUS_NO_FREE_HUGEPAGES
                        ? " (--reserve, as root, allocates them for the measurement)"
                        : "");
    }
    if (effective_page->backing.kind != BACKING_BASE && (is_fractured || found.delta != NULL))
        append_effect(text, &found);
    return text;
}

void report_verdicts(FILE *out, const struct environment *environment, const struct run_result *run)
{
    char text[VERDICT_TEXT_BYTES];

    if (run->geometry == NULL || run->geometry->effective_page_count == 0)
        return;
    (void)fputs("\nverdict\n", out);
    for (size_t i = 0; i < run->geometry->effective_page_count; i++)
        report_wrapped(out, "  -", 4, "%s.",
                       verdict_sentence(environment, run, &run->geometry->effective_pages[i], text));
}

/* What was skipped or cut short, and why. */

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
