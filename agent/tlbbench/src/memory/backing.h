/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a known page size: asking for it, touching it, and proving from /proc/self/smaps what the kernel gave. */
#pragma once

#include "base/verdict.h"

/* Multi-size THP are smaller than the transparent huge page: base pages side by side that a processor may translate by
 * one entry (arm64 with the contiguous bit, AMD by coalescing), of 16K to 1M where the base page is 4K. */
enum backing_kind { BACKING_BASE, BACKING_THP, BACKING_HUGETLB, BACKING_MULTI_SIZE_THP };
extern const char *const BACKING_KIND_NAMES[]; /* "base", "thp", "hugetlb", "multi_size_thp" */

/* What to ask for. */
struct backing {
    enum backing_kind kind;
    uint64_t page_bytes; /* base page, transparent huge page, or hugetlb size */
    char name[16];       /* "4K", "THP", "2M", "1G", "THP-64K" */
};

/* Turns an errno of mmap and friends into a status, telling RLIMIT_AS and vm.max_map_count from plain lack of memory.
 * Returns -1. */
int backing_explain_errno(int error, const char *doing, uint64_t bytes, struct verdict *verdict);

/* A memfd of `bytes`; page_bytes 0 = base pages, else hugetlb pages of that size. Returns the descriptor or -1.
 */
int backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict);

/* Private anonymous mapping with pages of the backing, aligned to them. Returns NULL with the reason on failure. */
char *backing_map(const struct backing *backing, size_t bytes, struct verdict *verdict);

/* Shared, readable and writable mapping of the whole file, at a multiple of `alignment` (0 = anywhere), so that the
 * kernel can use large pages and page-table sizes do not vary. Returns NULL with the reason on failure. */
char *backing_map_file(int fd, size_t bytes, uint64_t alignment, struct verdict *verdict);

/* Takes the pages of a mapping that nobody has touched yet from this NUMA node while it has room; -1 = from any. */
void backing_prefer(char *base, size_t bytes, int node);

/* Share of a touched mapping's pages that lie on this NUMA node, 0 .. 1, from a sample spread over it; NAN where the
 * kernel does not tell (move_pages(2) refused or absent). */
double backing_share_on_node(char *base, size_t bytes, int node);

/* Private memory that only reads may touch: the kernel maps its one zero page there, so that only page tables take
 * memory. NULL with errno when there are no addresses. */
char *backing_map_zeroes(size_t bytes);

/* Addresses only, aligned; pages are mapped over them later. Returns NULL with the reason on failure. */
char *backing_reserve_range(size_t bytes, uint64_t alignment, struct verdict *verdict);

/* Pages of this hugetlb size that may be taken right now: free, and not promised (`resv_hugepages`) to a mapping that
 * has not touched them yet. `node` < 0 = all nodes. A promise is not bound to a node, so a node has at most what all
 * have. `sysfs` is "/sys" but in tests. -1 when unknown. */
int64_t backing_free_pages(const char *sysfs, uint64_t page_bytes, int node);

/* Multi-size THP of this size that the kernel has given on a page fault since it started; -1 when it does not count
 * them (before 6.10). `sysfs` as above. */
int64_t backing_multi_size_given(const char *sysfs, uint64_t page_bytes);

/* Pages of a multi-size THP mapping at most: each is a mapping of its own (vm.max_map_count). */
enum { MULTI_SIZE_PAGES_MAX = 1 << 14 };

/* Says in `verdict` that a pool has too few free pages. */
void backing_explain_pool(uint64_t page_bytes, uint64_t needed, int64_t free_pages, struct verdict *verdict);
