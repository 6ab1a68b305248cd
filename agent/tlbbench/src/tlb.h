/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of TLB levels (results.h) from several sources: collecting them, comparing them, writing them. */
#ifndef TLBBENCH_TLB_H
#define TLBBENCH_TLB_H

#include "json.h"
#include "results.h"

#include <stddef.h>
#include <stdint.h>

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
