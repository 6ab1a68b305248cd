/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/tlb_flush.h"

#include "memory/backing.h"

#include <sys/mman.h>

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
