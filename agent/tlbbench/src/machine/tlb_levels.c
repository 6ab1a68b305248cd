/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/tlb_levels.h"

#include "base/text.h"

/* A measured interval is widened by this before it contradicts a table: the knee's own definition (plateau + 5 %). */
#define AGREEMENT_MARGIN 0.05

void tlb_levels_add(struct tlb_level_list *list, const struct tlb_level *level)
{
    if (list->count < TLB_LEVELS_MAX)
        list->items[list->count++] = *level;
}

static bool holds(const struct tlb_structure *structure, uint64_t page_bytes)
{
    for (size_t i = 0; i < structure->page_count; i++)
        if (structure->page_bytes[i] == page_bytes)
            return true;
    return false;
}

/* Adds one structure that holds the level's page size. */
static void level_take(struct tlb_level *level, const struct tlb_structure *structure, bool first)
{
    const char *separator = " shared with ";
    char page[PAGE_TEXT_BYTES];

    level->entries += structure->entries;
    if (first) {
        level->ways = structure->ways;
        level->ways_max = structure->ways_max;
    } else if (level->ways != structure->ways) {
        level->ways = TLB_WAYS_UNKNOWN;
        level->ways_max = 0;
    }
    if (!first || structure->page_count > 1)
        text_append(level->note, sizeof(level->note), "%s%u", first ? "" : "; ", structure->entries);
    for (size_t i = 0; i < structure->page_count; i++) {
        if (structure->page_bytes[i] == level->page_bytes)
            continue;
        text_append(level->note, sizeof(level->note), "%s%s", separator, page_text(structure->page_bytes[i], page));
        separator = ", ";
    }
    if (structure->note != NULL)
        text_append(level->note, sizeof(level->note), "%s%s", level->note[0] != '\0' ? "; " : "", structure->note);
}

static bool has_level(const struct tlb_level_list *list, size_t from, const struct tlb_level *like)
{
    for (size_t i = from; i < list->count; i++)
        if (list->items[i].level == like->level && list->items[i].kind == like->kind &&
            list->items[i].page_bytes == like->page_bytes)
            return true;
    return false;
}

void tlb_levels_from_structures(struct tlb_level_list *list, const struct tlb_structure *structures, size_t count,
                                enum fact_source source, enum confidence confidence)
{
    size_t from = list->count;

    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < structures[i].page_count; p++) {
            struct tlb_level level = {.level = structures[i].level,
                                      .kind = structures[i].kind,
                                      .page_bytes = structures[i].page_bytes[p],
                                      .source = source,
                                      .confidence = confidence};
            bool first = true;

            if (has_level(list, from, &level))
                continue;
            for (size_t k = i; k < count; k++) {
                if (structures[k].level != level.level || structures[k].kind != level.kind ||
                    !holds(&structures[k], level.page_bytes))
                    continue;
                level_take(&level, &structures[k], first);
                first = false;
            }
            level.entries_min = level.entries;
            level.entries_max = level.entries;
            tlb_levels_add(list, &level);
        }
    }
}

/* What one source says of the data side of one level and page size; entries 0 = nothing. */
struct claim {
    unsigned min;
    unsigned entries;
    unsigned max;
};

bool tlb_is_data_side(enum tlb_kind kind)
{
    return kind == TLB_DATA || kind == TLB_LOAD || kind == TLB_UNIFIED;
}

static struct claim claim_of(const struct tlb_level_list *levels, const struct tlb_level *like, int source)
{
    struct claim claim = {0};

    for (size_t i = 0; i < levels->count; i++) {
        const struct tlb_level *item = &levels->items[i];

        if (item->level != like->level || item->page_bytes != like->page_bytes || (int)item->source != source ||
            !tlb_is_data_side(item->kind) || item->entries == TLB_ENTRIES_UNKNOWN)
            continue;
        claim.entries += item->entries;
        claim.min += item->entries_min != 0 ? item->entries_min : item->entries;
        claim.max += item->entries_max != 0 ? item->entries_max : item->entries;
    }
    return claim;
}

static bool claims_agree(struct claim a, struct claim b)
{
    if (a.entries == 0 || b.entries == 0)
        return true;
    double a_slack = a.min == a.max ? 0 : AGREEMENT_MARGIN;
    double b_slack = b.min == b.max ? 0 : AGREEMENT_MARGIN;

    return a.min * (1 - a_slack) <= b.max * (1 + b_slack) && b.min * (1 - b_slack) <= a.max * (1 + a_slack);
}

static bool all_agree(const struct claim claims[SOURCE_COUNT])
{
    for (int a = 0; a < SOURCE_COUNT; a++)
        for (int b = a + 1; b < SOURCE_COUNT; b++)
            if (!claims_agree(claims[a], claims[b]))
                return false;
    return true;
}

static void describe(struct disagreement *d, const struct claim claims[SOURCE_COUNT])
{
    const char *separator = ":";
    char page[PAGE_TEXT_BYTES];

    (void)snprintf(d->text, sizeof(d->text), "L%u data %s entries", d->level, page_text(d->page_bytes, page));
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (claims[s].entries == 0)
            continue;
        text_append(d->text, sizeof(d->text), "%s %s says %u", separator, FACT_SOURCE_NAMES[s], claims[s].entries);
        separator = ",";
    }
}

/* Adds why CPUID may be wrong, where its level says so with low confidence. */
static void explain(struct disagreement *d, const struct tlb_level_list *levels)
{
    for (size_t i = 0; i < levels->count; i++) {
        const struct tlb_level *item = &levels->items[i];

        if (item->level == d->level && item->page_bytes == d->page_bytes && item->source == SOURCE_CPUID &&
            item->confidence == CONFIDENCE_LOW && tlb_is_data_side(item->kind) && item->note[0] != '\0') {
            text_append(d->text, sizeof(d->text), "; cpuid: %s", item->note);
            return;
        }
    }
}

bool tlb_is_disputed(const struct disagreement_list *list, unsigned level, uint64_t page_bytes)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].level == level && list->items[i].page_bytes == page_bytes)
            return true;
    return false;
}

static int by_level_and_page(const void *a, const void *b)
{
    const struct disagreement *x = a;
    const struct disagreement *y = b;

    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return (x->page_bytes > y->page_bytes) - (x->page_bytes < y->page_bytes);
}

void tlb_disagreements_find(const struct tlb_level_list *levels, struct disagreement_list *found)
{
    found->count = 0;
    for (size_t i = 0; i < levels->count && found->count < TLB_DISAGREEMENTS_MAX; i++) {
        const struct tlb_level *item = &levels->items[i];
        struct claim claims[SOURCE_COUNT];

        if (!tlb_is_data_side(item->kind) || tlb_is_disputed(found, item->level, item->page_bytes))
            continue;
        for (int s = 0; s < SOURCE_COUNT; s++)
            claims[s] = claim_of(levels, item, s);
        if (all_agree(claims))
            continue;
        struct disagreement *d = &found->items[found->count++];

        *d = (struct disagreement){.level = item->level, .page_bytes = item->page_bytes};
        for (int s = 0; s < SOURCE_COUNT; s++)
            d->entries[s] = claims[s].entries;
        describe(d, claims);
        explain(d, levels);
    }
    qsort(found->items, found->count, sizeof(found->items[0]), by_level_and_page);
}

const char *const TLB_KIND_NAMES[] = {
    [TLB_DATA] = "data", [TLB_INSTRUCTION] = "instr", [TLB_UNIFIED] = "unified",
    [TLB_LOAD] = "load", [TLB_STORE] = "store",
};

const char *const FACT_SOURCE_NAMES[] = {
    [SOURCE_CPUID] = "cpuid",
    [SOURCE_CATALOGUE] = "catalogue",
    [SOURCE_MEASURED] = "measured",
    [SOURCE_DEVICE_TREE] = "device_tree",
};

const char *const CONFIDENCE_NAMES[] = {
    [CONFIDENCE_LOW] = "low", [CONFIDENCE_MEDIUM] = "medium", [CONFIDENCE_HIGH] = "high"};
