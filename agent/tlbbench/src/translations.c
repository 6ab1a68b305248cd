/* SPDX-License-Identifier: Apache-2.0 */
#include "translations.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Kernels flush page by page up to a limit (33 pages on x86-64, 512 on arm64) and all of the process beyond it. */
#if defined(__x86_64__)
enum { RANGE_PAGES = 64 };
#else
enum { RANGE_PAGES = 1024 };
#endif

/* Entries of pages that are no longer used do not simply age away: on AMD's Zen 5 a cycle of 2048 pages linked after
 * another one of as many stays 50 % slower for hundreds of laps than after a flush, in a second level of 4096 entries.
 *
 * The range is read once, so the kernel maps its page of zeroes there: no memory is taken. */
void translations_drop(void)
{
    static char *range;
    const size_t bytes = (size_t)RANGE_PAGES * (size_t)sysconf(_SC_PAGESIZE);

    if (range == NULL) {
        char *const made = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (made == MAP_FAILED) {
            return; /* a measurement with old entries is better than none */
        }
        (void)madvise(made, bytes, MADV_NOHUGEPAGE);
        range = made;
    }
    for (size_t offset = 0; offset < bytes; offset += bytes / RANGE_PAGES) {
        (void)*(volatile char *)(range + offset);
    }
    (void)mprotect(range, bytes, PROT_NONE);
    if (mprotect(range, bytes, PROT_READ) != 0) {
        (void)munmap(range, bytes); /* not readable any more */
        range = NULL;
    }
}
