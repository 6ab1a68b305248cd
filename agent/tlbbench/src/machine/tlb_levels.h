/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of TLB levels from several sources: collecting and comparing them. */
#pragma once

#include "base/verdict.h"

enum tlb_kind { TLB_DATA, TLB_INSTRUCTION, TLB_UNIFIED, TLB_LOAD, TLB_STORE };
extern const char *const TLB_KIND_NAMES[];
/* Loads and data of both kinds; a source may call the same structure data, load or unified. */
bool tlb_is_data_side(enum tlb_kind kind);

enum fact_source { SOURCE_CPUID, SOURCE_CATALOGUE, SOURCE_MEASURED, SOURCE_DEVICE_TREE, SOURCE_COUNT };
extern const char *const FACT_SOURCE_NAMES[];

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
extern const char *const CONFIDENCE_NAMES[];

#define TLB_ENTRIES_UNKNOWN 0u
#define TLB_WAYS_UNKNOWN 0
#define TLB_WAYS_FULL (-1)

struct tlb_level {
    unsigned level; /* 1, 2 */
    enum tlb_kind kind;
    uint64_t page_bytes;
    unsigned entries; /* TLB_ENTRIES_UNKNOWN is printed as null */
    unsigned entries_min, entries_max;
    int ways;     /* TLB_WAYS_* or the number (the smallest, where CPUID gives a range) */
    int ways_max; /* largest of the range; 0 = no range */
    enum fact_source source;
    enum confidence confidence;
    char note[160]; /* empty = null */
};

enum {
    TLB_LEVELS_MAX = 256, /* seven levels of five kinds and four page sizes in CPUID at most, and what others say */
    TLB_DISAGREEMENTS_MAX = 64,
};

/* What does not fit is left out. */
struct tlb_level_list {
    struct tlb_level items[TLB_LEVELS_MAX];
    size_t count;
};

struct disagreement {
    unsigned level;
    uint64_t page_bytes;
    unsigned entries[SOURCE_COUNT]; /* by enum fact_source; 0 = this source says nothing */
    char text[REASON_BYTES];
};

struct disagreement_list {
    struct disagreement items[TLB_DISAGREEMENTS_MAX];
    size_t count;
};

enum { TLB_MAX_PAGE_SIZES = 8 };

/* One structure as a vendor describes it: its entries hold any of the page sizes. */
struct tlb_structure {
    unsigned level;
    enum tlb_kind kind;
    uint64_t page_bytes[TLB_MAX_PAGE_SIZES];
    size_t page_count;
    unsigned entries;
    int ways; /* TLB_WAYS_* or the number */
    int ways_max;
    const char *note; /* NULL = none */
    char origin[20];  /* "leaf18:3", "leaf2:0x63", "80000005:eax"; "" in the catalogue */
};

/* Appends one level for every level, kind and page size, summing the structures that hold the size; the note names the
 * sizes that share the entries. */
void tlb_levels_from_structures(struct tlb_level_list *list, const struct tlb_structure *structures, size_t count,
                                enum fact_source source, enum confidence confidence);

/* Appends a copy of `level`. */
void tlb_levels_add(struct tlb_level_list *list, const struct tlb_level *level);

/* True when the list has one of the data side of this level and page size. */
bool tlb_is_disputed(const struct disagreement_list *list, unsigned level, uint64_t page_bytes);

/* Compares the data-side entries (data, load and unified, summed) of every level and page size between the sources, and
 * lists what differs. A measured interval agrees with a value inside it widened by 5 %. Unknown agrees with everything.
 */
void tlb_disagreements_find(const struct tlb_level_list *levels, struct disagreement_list *found);
