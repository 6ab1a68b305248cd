/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a known page size: asking for it, touching it, and proving from /proc/self/smaps what the kernel gave. */
#ifndef TLBBENCH_BACKING_H
#define TLBBENCH_BACKING_H

#include "results.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What to ask for. */
struct backing {
    enum backing_kind kind;
    uint64_t page_bytes; /* base page, transparent huge page, or hugetlb size */
    char name[16];       /* "4K", "THP", "2M", "1G" */
};

/* A private anonymous mapping, touched with non-zero data. */
struct arena {
    char *base;   /* aligned to page_bytes */
    size_t bytes; /* as asked for, in whole pages */
    struct backing backing;
    double granted_fraction; /* part that smaps shows to be of page_bytes; NAN = unknown */
    double touch_seconds;    /* the first touch of it all */
    char *mapped;            /* what munmap needs; not for callers */
    size_t mapped_bytes;
};

void verdict_set(struct verdict *verdict, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Turns an errno of mmap and friends into a status, telling RLIMIT_AS and vm.max_map_count from plain lack of memory.
 */
void backing_explain_errno(int error, const char *doing, uint64_t bytes, struct verdict *verdict);

/* Maps and touches `bytes`. Rounds hugetlb up to whole pages. Base pages are asked for with MADV_NOHUGEPAGE. `node` >=
 * 0 binds the memory to that NUMA node. On failure returns -1 with the reason and leaves nothing mapped. THP that was
 * not granted in full succeeds with STATUS_THP_NOT_GRANTED in `verdict`. */
int arena_open(struct arena *arena, const struct backing *backing, size_t bytes, int node, struct verdict *verdict);

/* The same, but touching stops after about `seconds`: arena->bytes is what was touched by then, some tens of MiB at
 * least. Memory that the host of a guest has not given yet is slow to touch, and only touching it tells. */
int arena_open_within(struct arena *arena, const struct backing *backing, size_t bytes, int node, double seconds,
                      struct verdict *verdict);

/* The same over a file of backing_memfd(), shared instead of private; `fd` may be closed afterwards. */
int arena_open_file(struct arena *arena, const struct backing *backing, int fd, size_t bytes, int node,
                    struct verdict *verdict);
void arena_close(struct arena *arena);

/* An unnamed file of `bytes`; page_bytes 0 = base pages, else hugetlb pages of that size. Returns the descriptor or -1.
 */
int backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict);

/* Shared, readable and writable mapping of the whole file. Returns NULL with the reason on failure. */
char *backing_map_file(int fd, size_t bytes, struct verdict *verdict);

/* The same at a multiple of `alignment`, so that the kernel can use large pages and page-table sizes do not vary. */
char *backing_map_file_aligned(int fd, size_t bytes, uint64_t alignment, struct verdict *verdict);

/* Takes the pages of a mapping that nobody has touched yet from this NUMA node; -1 = from any. */
void backing_bind(char *base, size_t bytes, int node);

/* Addresses only, aligned; pages are mapped over them later. Returns NULL with the reason on failure. */
char *backing_reserve_range(size_t bytes, uint64_t alignment, struct verdict *verdict);

/* What smaps says about the mappings inside [start, start + bytes). */
struct backing_proof {
    uint64_t rss_bytes;
    uint64_t anon_huge_bytes;   /* AnonHugePages */
    uint64_t shmem_huge_bytes;  /* ShmemPmdMapped */
    uint64_t hugetlb_bytes;     /* Private_Hugetlb + Shared_Hugetlb */
    uint64_t kernel_page_bytes; /* KernelPageSize of the last mapping */
};

/* Returns 0, or -1 when smaps cannot be read. */
int backing_read_proof(const char *start, size_t bytes, struct backing_proof *proof);

/* Pure part of the above, for tests: sums the mappings of one smaps text line by line. */
struct backing_proof_parser {
    uint64_t start, end;
    bool inside;
    struct backing_proof proof;
};
void backing_parse_smaps_line(struct backing_proof_parser *parser, const char *line);

/* Free pages of this hugetlb size right now; `node` < 0 = all nodes. -1 when unknown. */
int64_t backing_free_pages(uint64_t page_bytes, int node);

/* Says in `verdict` that a pool has too few free pages. */
void backing_explain_pool(uint64_t page_bytes, uint64_t needed, int64_t free_pages, struct verdict *verdict);

/* Kilobytes of a field of /proc/self/status ("VmPTE", "VmRSS") in bytes; UINT64_MAX when unknown. */
uint64_t backing_status_bytes(const char *field);

#endif
