/* SPDX-License-Identifier: Apache-2.0 */
/* Page use of every process: what `tlbbench info --processes` adds. */
#pragma once

#include "base/std.h"

/* Bytes; UNKNOWN (-1) where the kernel does not say or does not allow it. */
struct process_pages {
    int pid;
    char name[32];
    bool is_kernel_thread; /* has no memory of its own */
    int64_t rss_bytes, pss_bytes;
    int64_t anon_huge_pages_bytes, shmem_pmd_mapped_bytes, file_pmd_mapped_bytes;
    int64_t hugetlb_bytes;     /* mapped from the pools, shared and private */
    int64_t page_tables_bytes; /* VmPTE */
    bool denied;               /* smaps_rollup needs the owner or root */
};

struct process_list {
    struct process_pages *items;
    size_t count;
};

/* Reads /proc below `root`, sorted by pid, kernel threads left out. Returns 0, or -1 when memory ran out or /proc is
 * absent. */
int processes_read(struct process_list *list, const char *root);
void processes_free(struct process_list *list);

/* The number in the name of a folder of /proc; false when it is none. */
bool process_number(const char *name, int *number);

/* The pure parsers of /proc/PID/status and /proc/PID/smaps_rollup. */
void process_status_parse(const char *text, struct process_pages *process);
void process_smaps_rollup_parse(const char *text, struct process_pages *process);

/* Kilobytes of a field of /proc/self/status ("VmPTE", "VmRSS") in bytes; UINT64_MAX when unknown. */
uint64_t process_own_status_bytes(const char *field);
