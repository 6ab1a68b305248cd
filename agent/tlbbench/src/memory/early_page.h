/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A huge page that is zeroed on another core while this one measures. The kernel zeroes a page before it hands it out,
 * in one go: a tenth of a second for 1 GiB, but seconds where the host of a guest first has to give the memory (3.4 to
 * 3.9 s per GiB measured on a Firecracker guest), and nothing can interrupt it. A process of its own does it, since a
 * thread would hold up every mmap of the others meanwhile.
 */
#ifndef TLBBENCH_EARLY_PAGE_H
#define TLBBENCH_EARLY_PAGE_H

#include "base/parse.h"
#include "base/verdict.h"
#include "memory/arena.h"
#include "memory/backing.h"

#include <sys/types.h>

enum early_state {
    EARLY_NONE, /* not requested, not possible, or handed over: the page is opened as any other */
    EARLY_BUSY, /* being zeroed */
    EARLY_READY,
};

/* All zero: EARLY_NONE. */
struct early_page {
    struct backing backing;
    int fd; /* hugetlb memfd of one page */
    pid_t process;
    enum early_state state;
};

/* Starts zeroing one page on one of `cpus`, but not on `cpu`, which is measured on, nor on its siblings. Stays
 * EARLY_NONE where there is no such core, no free page or no process to be had. */
void early_page_start(struct early_page *page, const struct backing *backing, int cpu, const struct cpu_list *cpus,
                      int node);

/* Looks, and waits for up to `seconds`, whether the page is ready. */
enum early_state early_page_wait(struct early_page *page, double seconds);

/* Hands the page over as an arena. Returns -1 with the reason. */
int early_page_open(struct early_page *page, struct arena *arena, int node, struct verdict *verdict);

/* Gives the page up. One that is still being zeroed goes back to its pool when the kernel is done with it. */
void early_page_end(struct early_page *page);

#endif
