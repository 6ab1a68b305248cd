/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/window.h"

#include "base/signals.h"
#include "memory/backing.h"

#include <sys/mman.h>

enum {
    WORD_BYTES = 8,
    /* Pages of the packed view in one group: below every first-level data TLB in the catalogue (40 up). */
    CONTROL_FRAMES = 16,
};

static size_t lines_per_frame(const struct window *window)
{
    return (size_t)(window->base_bytes / CACHE_LINE_BYTES);
}

static size_t slots_per_frame(const struct window *window)
{
    return window->slots == WINDOW_SLOTS_LINES ? lines_per_frame(window) : (size_t)(window->base_bytes / WORD_BYTES);
}

static bool is_huge(const struct window *window)
{
    return window->page_bytes != window->base_bytes;
}

/* Base pages: frames fill up one after the other, so that a short cycle has few of them and its packed view needs few
 * translations. A huge page is one translation anyway: pages in a row take base-page parts in a row, which keeps a TLB
 * that holds only the parts (a fractured page) from seeing them all in one set. */
static size_t frame_of_page(const struct window *window, size_t page)
{
    return is_huge(window) ? page % window->frames : page / slots_per_frame(window);
}

/* Byte offset of the page's slot in its frame: all lines once, then the next word of each. */
static size_t slot_offset(const struct window *window, size_t page)
{
    size_t lines = lines_per_frame(window);
    size_t slot = is_huge(window) ? page / window->frames : page % slots_per_frame(window);

    if (window->slots == WINDOW_SLOTS_SHARED)
        return slot * WORD_BYTES;
    size_t line = (slot * CACHE_LINE_STEP + frame_of_page(window, page) * window->salt) % lines;

    return line * CACHE_LINE_BYTES + slot / lines * WORD_BYTES;
}

static char *packed_slot(const struct window *window, size_t page)
{
    return window->packed + frame_of_page(window, page) * window->base_bytes + slot_offset(window, page);
}

static char *view_page(const struct window *window, size_t page)
{
    uint64_t inside = window->spread ? page % (window->stride_bytes / window->page_bytes) * window->page_bytes : 0;

    return window->view + page * window->stride_bytes + inside;
}

static char *view_slot(const struct window *window, size_t page)
{
    char *mapped = view_page(window, page) + slot_offset(window, page);

    return is_huge(window) ? mapped + frame_of_page(window, page) * window->base_bytes : mapped;
}

static void touch_frames(void *context)
{
    const struct window *window = context;

    /* Of a large page some frames are enough: the kernel gives all of it. */
    size_t used = window->frames < window->pages_max ? window->frames : window->pages_max;

    memset(window->packed, 1, used * window->base_bytes);
}

int window_open(struct window *window, const struct window_request *request, struct verdict *verdict)
{
    *window = (struct window){
        .page_bytes = request->page_bytes,
        .base_bytes = request->base_bytes,
        .stride_bytes = request->page_bytes * request->stride_pages,
        .pages_max = request->pages_max,
        .slots = request->slots,
        .spread = request->spread,
        .fd = -1,
    };
    window->frames = is_huge(window) ? (size_t)(request->page_bytes / request->base_bytes)
                                     : (request->pages_max + slots_per_frame(window) - 1) / slots_per_frame(window);
    window->packed_bytes = window->frames * request->base_bytes;
    window->view_bytes = window->stride_bytes * request->pages_max;

    window->fd = backing_memfd(is_huge(window) ? request->page_bytes : 0, window->packed_bytes, verdict);
    if (window->fd < 0)
        return -1;
    window->packed = backing_map_file(window->fd, window->packed_bytes, 0, verdict);
    if (window->packed != NULL && signals_guard_bus(touch_frames, window) != 0) {
        verdict_set(verdict, STATUS_SIGBUS, "SIGBUS on a page of %" PRIu64 " bytes: %s", request->page_bytes,
                    signals_bus_reason());
    } else if (window->packed != NULL) {
        /* Spread pages lie where the slots of large pages would. */
        window->view = backing_reserve_range(window->view_bytes,
                                             request->spread ? window->stride_bytes : request->page_bytes, verdict);
    }
    if (window->view == NULL) {
        window_close(window);
        return -1;
    }
    return 0;
}

void window_close(struct window *window)
{
    if (window->view != NULL)
        (void)munmap(window->view, window->view_bytes);
    if (window->packed != NULL)
        (void)munmap(window->packed, window->packed_bytes);
    if (window->fd >= 0)
        (void)close(window->fd);
    *window = (struct window){.fd = -1};
}

int window_map(struct window *window, size_t pages, struct verdict *verdict)
{
    int flags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;

    for (size_t page = window->pages_mapped; page < pages; page++) {
        off_t frame = is_huge(window) ? 0 : (off_t)(frame_of_page(window, page) * window->base_bytes);

        if (mmap(view_page(window, page), window->page_bytes, PROT_READ | PROT_WRITE, flags, window->fd, frame) ==
            MAP_FAILED)
            return backing_explain_errno(errno, "mapping a page of the window", window->page_bytes, verdict);
        window->pages_mapped = page + 1;
    }
    return 0;
}

/* Stores the cycle order[0] -> order[1] -> ... -> order[0]. Writing goes through the packed view: fewer TLB misses. */
static void *link_cycle(struct window *window, const uint32_t *order, size_t pages,
                        char *(*slot)(const struct window *, size_t))
{
    for (size_t step = 0; step < pages; step++) {
        char *next = slot(window, order[step + 1 == pages ? 0 : step + 1]);

        memcpy(packed_slot(window, order[step]), &next, sizeof(next));
    }
    return slot(window, order[0]);
}

/* Two lines of one set whose linear addresses look alike to a way predictor cost each other misses. Which lines share a
 * set changes with every link, so that no knee rests on one unlucky pair. */
static void draw_salt(struct window *window, struct rng *rng)
{
    window->salt = (size_t)rng_below(rng, lines_per_frame(window));
}

void *window_link_view(struct window *window, size_t pages, struct rng *rng, uint32_t *order)
{
    draw_salt(window, rng);
    permutation_fill(order, pages, rng);
    return link_cycle(window, order, pages, view_slot);
}

void *window_link_packed(struct window *window, size_t pages, struct rng *rng, uint32_t *order)
{
    size_t group = CONTROL_FRAMES * slots_per_frame(window);

    draw_salt(window, rng);
    for (size_t page = 0; page < pages; page++)
        order[page] = (uint32_t)page;
    for (size_t start = 0; start < pages; start += group)
        permutation_shuffle(order + start, pages - start < group ? pages - start : group, rng);
    return link_cycle(window, order, pages, packed_slot);
}

/* --- the zero page ------------------------------------------------------------------------------------------------ */

enum {
    /* A cycle starts at any of so many pages: which pages share a set, and their entries per line, differs by that. */
    START_PAGES = 2048,
};

static size_t mapped_bytes(uint64_t page_bytes, size_t pages_max)
{
    return (size_t)page_bytes * (pages_max + START_PAGES);
}

int zero_window_open(struct zero_window *view, uint64_t page_bytes, size_t pages_max, struct verdict *verdict)
{
    size_t bytes = mapped_bytes(page_bytes, pages_max);
    char *base = backing_map_zeroes(bytes);

    *view = (struct zero_window){.page_bytes = page_bytes, .pages_max = pages_max};
    if (base == NULL)
        return backing_explain_errno(errno, "mapping the zero page", bytes, verdict);
    view->base = base;
    return 0;
}

void zero_window_close(struct zero_window *view)
{
    if (view->base != NULL)
        (void)munmap(view->base, mapped_bytes(view->page_bytes, view->pages_max));
    view->base = NULL;
}

struct chase zero_window_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order)
{
    const struct zero_window *view = context;
    uint64_t lines = view->page_bytes / CACHE_LINE_BYTES;
    uint64_t salt = rng_below(rng, lines);
    uint64_t start = rng_below(rng, START_PAGES);

    permutation_fill(order, pages, rng);
    for (size_t step = 0; step < pages; step++) {
        uint64_t page = order[step];
        uint64_t line = (page * CACHE_LINE_STEP + page / lines * salt) % lines;

        order[step] = (uint32_t)((packed ? 0 : page * view->page_bytes) + line * CACHE_LINE_BYTES);
    }
    return (struct chase){.offsets = order, .count = pages, .base = view->base + start * view->page_bytes};
}

/* Kernels flush page by page, or range by range, up to a limit and all of the process beyond it: 33 pages on x86-64,
 * 512 on arm64 before Armv8.4, and what its longest range instruction covers (2^21 pages) from there on. What counts is
 * the distance of the first changed page from the last one, so that a few pages of a wide range are enough. */
#if defined(__x86_64__)
enum { RANGE_PAGES = 64, TOUCHED_PAGES = 64 };
#else
enum { RANGE_PAGES = (1 << 21) + 1024, TOUCHED_PAGES = 2 };
#endif

enum { FOREIGN_SWEEP_PAGES = 16384 }; /* four times the largest second level known */

/* Entries of pages that are no longer used do not simply age away: on AMD's Zen 5 a cycle of 2048 pages linked after
 * another one of as many stays 50 % slower for hundreds of laps than after a flush, in a second level of 4096 entries.
 *
 * The range is read once, so the kernel maps its zero page there: no memory is taken. */
void tlb_flush(void)
{
    static char *range;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)RANGE_PAGES * page_bytes;

    if (range == NULL && (range = backing_map_zeroes(bytes)) == NULL)
        return; /* a measurement with old entries is better than none */
    for (size_t page = 0; page < TOUCHED_PAGES; page++)
        (void)*(volatile char *)(range + page * (RANGE_PAGES - 1) / (TOUCHED_PAGES - 1) * page_bytes);
    (void)mprotect(range, bytes, PROT_NONE);
    if (mprotect(range, bytes, PROT_READ) != 0) {
        (void)munmap(range, bytes); /* not readable any more */
        range = NULL;
    }
}

void tlb_evict_foreign(void)
{
    static const char *range;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    if (range == NULL && (range = backing_map_zeroes(FOREIGN_SWEEP_PAGES * page_bytes)) == NULL)
        return;
    for (size_t page = 0; page < FOREIGN_SWEEP_PAGES; page++)
        (void)*(const volatile char *)(range + page * page_bytes);
}
