/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what the user asked for, checked for form here and against the machine by options_check(). */
#ifndef TLBBENCH_OPTIONS_H
#define TLBBENCH_OPTIONS_H

#include "parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct environment;

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

enum option_output { OUTPUT_AUTO, OUTPUT_JSON, OUTPUT_TEXT };
enum option_profile { PROFILE_QUICK, PROFILE_FULL };
enum option_progress { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

/* A set of row_mode, row_keys or row_read values, so that "all" is a union. */
#define OPTION_BIT(value) (1u << (unsigned)(value))

enum {
    OPTIONS_MAX_LIST = 16,
    OPTIONS_ERROR_BYTES = 320,
    OPTIONS_MIN_ROWS = 64, /* fewer are no table: every read would hit the same cache lines */
};

struct options {
    enum command_id command;
    enum option_output output;
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
    uint64_t row_bytes[OPTIONS_MAX_LIST];
    size_t row_bytes_count; /* 0 = 128, 8192 and 16384 */
    unsigned workers[OPTIONS_MAX_LIST];
    size_t workers_count;   /* 0 = the profile's ladder */
    unsigned modes;         /* OPTION_BIT(enum row_mode) */
    unsigned keys;          /* OPTION_BIT(enum row_keys) */
    unsigned reads;         /* OPTION_BIT(enum row_read) */
    uint64_t segment_bytes; /* 0 = as large as allowed */
    /* latency: rising, each once; footprint_count 0 = the profile's ladder. */
    uint64_t footprints[OPTIONS_MAX_LIST];
    size_t footprint_count;
    unsigned curves; /* OPTION_BIT(enum latency_curve) */
};

enum options_status { OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR };

/* Parses argv. On OPTIONS_ERROR `error` holds one line that names the option, the value and the valid range. */
enum options_status options_parse(struct options *options, int argc, char **argv, char error[OPTIONS_ERROR_BYTES]);

/* Checks what only the machine can tell: page sizes, NUMA node, CPUs, memory, row widths. Same error contract; touches
 * nothing. */
enum options_status options_check(const struct options *options, const struct environment *environment,
                                  char error[OPTIONS_ERROR_BYTES]);

/* Checks that --root is a directory. Same error contract. */
enum options_status options_check_root(const struct options *options, char error[OPTIONS_ERROR_BYTES]);

/* True when `page_bytes` (base or hugetlb) is to be measured. */
bool options_want_page_size(const struct options *options, uint64_t page_bytes);
/* True when transparent huge pages are to be measured. */
bool options_want_thp(const struct options *options);

const char *command_name(enum command_id command);

/* Prints the help that the command and option tables generate. */
void options_print_help(FILE *out);

#endif
