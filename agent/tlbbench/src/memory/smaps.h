/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/self/smaps says that a range of memory is made of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
