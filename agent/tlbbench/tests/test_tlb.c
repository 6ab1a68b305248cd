/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "harness.h"
#include "machine/tlb_levels.h"

#include <stdlib.h>
#include <string.h>

#define P4K UINT64_C(4096)
#define P2M (UINT64_C(2) << 20)
#define P1G (UINT64_C(1) << 30)

static struct tlb_level level(unsigned number, enum tlb_kind kind, uint64_t page_bytes, unsigned min, unsigned entries,
                              unsigned max, enum fact_source source)
{
    return (struct tlb_level){.level = number,
                              .kind = kind,
                              .page_bytes = page_bytes,
                              .entries = entries,
                              .entries_min = min,
                              .entries_max = max,
                              .source = source};
}

static struct disagreement_list disagreements(const struct tlb_level *levels, size_t count)
{
    struct tlb_level_list list = {0};
    struct disagreement_list found;

    for (size_t i = 0; i < count; i++)
        tlb_levels_add(&list, &levels[i]);
    tlb_disagreements_find(&list, &found);
    return found;
}

static void structures_are_summed(struct harness *h)
{
    /* Ice Lake's second level: 4K may live in both arrays, 2M and 1G in one each. */
    const struct tlb_structure arrays[] = {
        {2, TLB_UNIFIED, {P4K, P2M}, 2, 1024, 8, 0, NULL, ""},
        {2, TLB_UNIFIED, {P4K, P1G}, 2, 1024, 8, 0, NULL, ""},
    };
    struct tlb_level_list list = {0};

    tlb_levels_from_structures(&list, arrays, 2, SOURCE_CPUID, CONFIDENCE_MEDIUM);
    CHECK_U64(list.count, 3);
    CHECK_U64(list.items[0].entries, 2048);
    CHECK_I64(list.items[0].ways, 8);
    CHECK_TEXT(list.items[0].note, "1024 shared with 2M; 1024 shared with 1G");
    CHECK_U64(list.items[1].entries, 1024);
    CHECK_U64(list.items[2].entries, 1024);
    CHECK_U64(list.items[2].page_bytes, P1G);
}

static void different_ways_are_unknown(struct harness *h)
{
    const struct tlb_structure arrays[] = {
        {1, TLB_DATA, {P4K}, 1, 64, 4, 0, NULL, ""},
        {1, TLB_DATA, {P4K}, 1, 16, TLB_WAYS_FULL, 0, NULL, ""},
    };
    struct tlb_level_list list = {0};

    tlb_levels_from_structures(&list, arrays, 2, SOURCE_CPUID, CONFIDENCE_MEDIUM);
    CHECK_U64(list.count, 1);
    CHECK_U64(list.items[0].entries, 80);
    CHECK_I64(list.items[0].ways, TLB_WAYS_UNKNOWN);
}

static void sources_that_differ_are_found(struct harness *h)
{
    const struct tlb_level levels[] = {
        level(1, TLB_LOAD, P4K, 64, 64, 64, SOURCE_CPUID),
        level(1, TLB_STORE, P4K, 16, 16, 16, SOURCE_CPUID), /* stores are no part of it */
        level(1, TLB_LOAD, P4K, 96, 96, 96, SOURCE_CATALOGUE),
        level(1, TLB_DATA, P4K, 95, 96, 97, SOURCE_MEASURED),
    };
    struct disagreement_list found = disagreements(levels, 4);

    CHECK_U64(found.count, 1);
    CHECK_U64(found.items[0].entries[SOURCE_CPUID], 64);
    CHECK_U64(found.items[0].entries[SOURCE_CATALOGUE], 96);
    CHECK_U64(found.items[0].entries[SOURCE_MEASURED], 96);
    CHECK_TEXT(found.items[0].text, "L1 data 4K entries: cpuid says 64, catalogue says 96, measured says 96");
}

static void intervals_and_sums_agree(struct harness *h)
{
    const struct tlb_level levels[] = {
        level(2, TLB_UNIFIED, P4K, 2048, 2048, 2048, SOURCE_CATALOGUE),
        level(2, TLB_DATA, P4K, 1536, 1900, 2000, SOURCE_MEASURED), /* 2048 is within 5 % of 2000 */
        level(1, TLB_INSTRUCTION, P4K, 64, 64, 64, SOURCE_CPUID),   /* instructions are not compared */
        level(1, TLB_INSTRUCTION, P4K, 128, 128, 128, SOURCE_CATALOGUE),
        level(2, TLB_DATA, P1G, 0, TLB_ENTRIES_UNKNOWN, 0, SOURCE_CPUID), /* unknown contradicts nothing */
        level(2, TLB_DATA, P1G, 64, 64, 64, SOURCE_CATALOGUE),
    };
    struct disagreement_list found = disagreements(levels, 6);

    CHECK_U64(found.count, 0);
}

static void an_interval_that_excludes_disagrees(struct harness *h)
{
    const struct tlb_level levels[] = {
        level(2, TLB_DATA, P4K, 128, 128, 128, SOURCE_CPUID),
        level(2, TLB_DATA, P4K, 3584, 4096, 4096, SOURCE_MEASURED),
        level(1, TLB_DATA, P4K, 64, 64, 64, SOURCE_CPUID),
        level(1, TLB_DATA, P4K, 72, 72, 72, SOURCE_CATALOGUE),
    };
    struct disagreement_list found = disagreements(levels, 4);

    CHECK_U64(found.count, 2);
    CHECK_U64(found.items[0].level, 1); /* in order of level */
    CHECK_U64(found.items[1].level, 2);
}

static void page_texts(struct harness *h)
{
    char text[PAGE_TEXT_BYTES];

    CHECK_TEXT(page_text(4096, text), "4K");
    CHECK_TEXT(page_text(P2M, text), "2M");
    CHECK_TEXT(page_text(UINT64_C(16) << 30, text), "16G");
    CHECK_TEXT(page_text(1000, text), "1000");
}

static const struct harness_case cases[] = {
    {"structures that hold a size are summed", structures_are_summed},
    {"different ways are unknown", different_ways_are_unknown},
    {"sources that differ are found", sources_that_differ_are_found},
    {"intervals and unknowns agree", intervals_and_sums_agree},
    {"an interval that excludes disagrees", an_interval_that_excludes_disagrees},
    {"page sizes in words", page_texts},
};

HARNESS_MAIN("tlb", cases)
