/* SPDX-License-Identifier: Apache-2.0 */
/* A private mapping of one page size, touched, with the proof of what the kernel gave. */
#pragma once

#include "memory/backing.h"

/* Touches every `step` bytes of a mapping: writes a non-zero word, since zero pages could be shared or compressed by a
 * hypervisor, or reads. Stops between parts of some tens of milliseconds when asked to. Returns 0; -1 when stopped, or
 * at a SIGBUS on a page of `name` that the kernel had promised, with the reason. Where `touched_bytes` is NULL, it is
 * also stopped when its time ends before it has touched all. */
struct touch_request {
    char *base;
    size_t bytes, step;
    bool writes;
    const char *name; /* of the pages, for the reason */
    double seconds;   /* touching ends after about so long; INFINITY = never */
};
int memory_touch(const struct touch_request *request, size_t *touched_bytes, struct verdict *verdict);

/* A private anonymous mapping, touched with non-zero data. */
struct arena {
    char *base;   /* aligned to page_bytes */
    size_t bytes; /* in whole pages */
    struct backing backing;
    double granted_fraction; /* part that smaps shows to be of page_bytes; NAN = unknown */
    double touch_seconds;    /* the first touch of it all */
    double on_node;          /* share of its pages on the NUMA node that was named; NAN = unknown */
};

/* What to map, and what it may take. No arena is mapped past its budget, whatever its page size rounds it up to. */
struct arena_request {
    const struct backing *backing;
    uint64_t bytes; /* rounded up to whole pages */
    int node;       /* NUMA node that the memory is taken from; -1 = any */
    /* Touching stops after about so long: memory that the host of a guest has not given yet is slow to touch, and only
     * touching it tells. INFINITY = never. */
    double seconds;
    bool may_be_cut; /* arena->bytes is what was touched by then, some tens of MiB at least; else the arena fails */
    uint64_t budget_bytes; /* that may be mapped in all */
    uint64_t mapped_bytes; /* of it that are */
};

/* True when the request's whole pages fit into its budget; else `verdict` says why not. */
bool arena_is_allowed(const struct arena_request *request, struct verdict *verdict);

/* Maps and touches what is requested. Base pages are requested with MADV_NOHUGEPAGE. On failure returns -1 with the
 * reason and leaves nothing mapped; memory that the kernel put on another NUMA node than the named one is a failure,
 * where the kernel tells. THP that was not granted in full succeeds with STATUS_THP_NOT_GRANTED in `verdict`. */
int arena_open(struct arena *arena, const struct arena_request *request, struct verdict *verdict);

void arena_close(struct arena *arena);

/* --- what /proc/self/smaps says that a range of memory is made of ------------------------------------------------- */

/* What smaps says about the mappings inside [start, start + bytes). */
struct smaps_proof {
    uint64_t rss_bytes;
    uint64_t anon_huge_bytes;   /* AnonHugePages */
    uint64_t shmem_huge_bytes;  /* ShmemPmdMapped */
    uint64_t hugetlb_bytes;     /* Private_Hugetlb + Shared_Hugetlb */
    uint64_t kernel_page_bytes; /* KernelPageSize of the last mapping */
};

/* Returns 0, or -1 when smaps cannot be read. */
int smaps_read(const char *start, size_t bytes, struct smaps_proof *proof);

/* Pure part of the above, for tests: sums the mappings of one smaps text line by line. */
struct smaps_parser {
    uint64_t start, end;
    bool inside;
    struct smaps_proof proof;
};
void smaps_parse_line(struct smaps_parser *parser, const char *line);
