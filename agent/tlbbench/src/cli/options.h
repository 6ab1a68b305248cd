/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what the user requested, checked for form here and against the machine by options_check(). */
#pragma once

#include "base/parse.h"
#include "latency/result.h"
#include "rows/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum command_id {
    COMMAND_INFO,
    COMMAND_GEOMETRY,
    COMMAND_LATENCY,
    COMMAND_ROWS,
    COMMAND_SCATTER,
    COMMAND_DECODE,
    COMMAND_RUN,
    COMMAND_COUNT,
};

enum option_profile { PROFILE_QUICK, PROFILE_FULL };
enum option_progress { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

enum {
    OPTIONS_MAX_LIST = 16,
    OPTIONS_ERROR_BYTES = 320,
};

struct options {
    enum command_id command;
    bool json, text; /* what to print; neither: by where standard output goes */
    enum option_profile profile;
    enum option_progress progress;
    /* Page sizes to measure, base pages among them. page_size_count 0 and !thp_only = every size and THP. */
    uint64_t page_sizes[OPTIONS_MAX_LIST];
    size_t page_size_count;
    bool thp;                  /* "thp" was listed */
    uint64_t max_memory_bytes; /* 0 = the default rule */
    double time_limit_seconds; /* 0 = the profile's budget */
    struct cpu_list cpus;      /* empty = the affinity mask inherited */
    int numa_node;             /* -1 = any */
    uint64_t seed;
    bool reserve;
    bool keep_priority;
    bool registers;   /* info: print the CPUID registers and nothing else */
    bool processes;   /* info: per-process page use */
    const char *root; /* "" = the running system */
    const char *file; /* decode: the dump; "-" = standard input */
    struct rows_request rows;
    struct latency_request latency;
};

/* True when `page_bytes` (base or hugetlb) is to be measured. */
bool options_want_page_size(const struct options *options, uint64_t page_bytes);
/* True when transparent huge pages are to be measured. */
bool options_want_thp(const struct options *options);
