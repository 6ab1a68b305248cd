/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of many virtual pages over few physical ones. A cycle over the window needs one translation per page, while
 * its data stays in the first cache levels; the same data seen through the packed view needs hardly any translation.
 * The difference is the cost of translation alone.
 */
#pragma once

#include "base/rng.h"
#include "base/verdict.h"
#include "timing/chase.h"

/* How virtual pages share the physical lines. */
enum window_slots {
    WINDOW_SLOTS_WORDS,  /* eight pages per cache line: the least data, right where the cache is found by physical
                          * address
                          */
    WINDOW_SLOTS_SHARED, /* every line is filled before the next is used: shows what sharing a line costs */
    WINDOW_SLOTS_LINES,  /* one line per page: for caches that predict the way from the linear address */
};

struct window {
    char *view;   /* the window: page i at view + i * stride */
    char *packed; /* the frames, each once, in order */
    uint64_t page_bytes;
    uint64_t base_bytes; /* base page of the machine: the unit of frames below */
    uint64_t stride_bytes;
    size_t pages_max;
    size_t pages_mapped;
    size_t frames; /* frames of base_bytes that hold slots */
    enum window_slots slots;
    bool spread;
    size_t salt; /* changes which pages share a cache set; drawn anew by every link */
    int fd;
    size_t view_bytes, packed_bytes; /* the frames' are all the memory that it takes */
};

struct window_request {
    uint64_t page_bytes; /* base page, or a hugetlb size with one free page */
    uint64_t base_bytes;
    uint64_t stride_pages; /* 1 = neighbours */
    size_t pages_max;
    enum window_slots slots;
    bool spread; /* base pages at a stride: page i lies i pages further into its stride, as hot lines in a large range
                    do */
};

/* Reserves the address range and creates the frames; maps nothing into the view yet. On failure returns -1, says why in
 * `verdict`, and needs no close. */
int window_open(struct window *window, const struct window_request *request, struct verdict *verdict);
void window_close(struct window *window);

/* Maps the view up to `pages` pages. Returns 0, or -1 with the reason (vm.max_map_count, memory). */
int window_map(struct window *window, size_t pages, struct verdict *verdict);

/* Links pages 0 .. pages - 1 of the view into one random cycle. Returns its first position. */
void *window_link_view(struct window *window, size_t pages, struct rng *rng, uint32_t *order);

/* Links the same slots through the packed view, at random within groups of frames that the first-level TLB holds: the
 * same data, no translation to speak of. */
void *window_link_packed(struct window *window, size_t pages, struct rng *rng, uint32_t *order);

/*
 * Many virtual base pages over the kernel's one zero page: what a read of untouched private memory maps. A load
 * there needs a translation and hits the first-level cache, as in a window (window.h), but takes no memory at all, is
 * not part of the resident size, and is one mapping, whatever its length. It holds no pointers, so it is chased by a
 * table.
 *
 * Caches that predict the way from the linear address (AMD Zen) mispredict here once pages outnumber lines: the plateau
 * of a sweep lies higher by that, evenly; where it ends is right, and what a miss costs.
 */
struct zero_window {
    char *base;
    uint64_t page_bytes;
    size_t pages_max;
};

/* Reserves the addresses. Returns 0, or -1 with the reason. */
int zero_window_open(struct zero_window *view, uint64_t page_bytes, size_t pages_max, struct verdict *verdict);
void zero_window_close(struct zero_window *view);

/* A cycle of one line in each of the first `pages` pages, in a random order; `packed`: the same lines of the first page
 * alone. A sweep_link (sweep.h): `context` is the view, and `order` becomes the table. */
struct chase zero_window_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order);

/* Forgetting what the TLBs hold, so that a measurement does not depend on the one before it. */

/* Drops this process's translations from the TLBs of the core, as far as the kernel can be made to: always on x86-64;
 * elsewhere where it gives up single pages for so large a range. */
void tlb_flush(void);

/* Reads so many pages that what other processes left in the TLBs of the core is gone: their entries carry another tag,
 * are not dropped with this process's, and stay. Leaves the pages' own entries behind. */
void tlb_evict_foreign(void);
