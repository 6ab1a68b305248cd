/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of TLB levels (results.h) from several sources: collecting them, comparing them, writing them. */
#ifndef TLBBENCH_TLB_H
#define TLBBENCH_TLB_H

#include "json.h"
#include "results.h"

#include <stddef.h>
#include <stdint.h>

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
 * sizes that share the entries. Returns 0, or -1 when memory ran out. */
int tlb_levels_from_structures(struct tlb_level_list *list, const struct tlb_structure *structures, size_t count,
                               enum fact_source source, enum confidence confidence);

/* Writes the structures unsummed. */
void tlb_structures_to_json(const struct tlb_structure *structures, size_t count, struct json *j, const char *key);

/* Appends a copy of `level`. Returns 0, or -1 when memory ran out. */
int tlb_levels_add(struct tlb_level_list *list, const struct tlb_level *level);
int tlb_levels_append(struct tlb_level_list *list, const struct tlb_level_list *more);
void tlb_levels_free(struct tlb_level_list *list);

/* Compares the data-side entries (data, load and unified, summed) of every level and page size between the sources, and
 * stores a malloc()ed array of what differs, which the caller frees. A measured interval agrees with a value inside it
 * widened by 5 %. Unknown agrees with everything. Returns 0, or -1 when memory ran out. */
int tlb_disagreements_find(const struct tlb_level_list *levels, struct disagreement **found, size_t *count);

/* Write the document's `levels` and `disagreements` arrays. */
void tlb_levels_to_json(const struct tlb_level_list *levels, struct json *j, const char *key);
void tlb_disagreements_to_json(const struct disagreement *found, size_t count, struct json *j, const char *key);

/* "4K", "2M", "1G", or plain bytes when the size is not a whole unit. Returns `text`. */
#define PAGE_TEXT_BYTES 24
char *page_text(uint64_t page_bytes, char text[PAGE_TEXT_BYTES]);

#endif
