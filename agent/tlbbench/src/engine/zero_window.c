/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/zero_window.h"

#include "base/permutation.h"
#include "base/units.h"
#include "memory/backing.h"

#include <errno.h>
#include <sys/mman.h>

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
    char *base = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *view = (struct zero_window){.page_bytes = page_bytes, .pages_max = pages_max};
    if (base == MAP_FAILED) {
        backing_explain_errno(errno, "mapping the zero page", bytes, verdict);
        return -1;
    }
    (void)madvise(base, bytes, MADV_NOHUGEPAGE); /* there is a huge zero page, too */
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
