/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what the user requested, checked for form here and against the machine by options_check(). */
#pragma once

#include "counters/counters.h"
#include "latency/result.h"
#include "rows/result.h"

enum command_id {
    COMMAND_INFO,
    COMMAND_GEOMETRY,
    COMMAND_LATENCY,
    COMMAND_ROWS,
    COMMAND_SCATTER,
    COMMAND_COUNTERS,
    COMMAND_DECODE,
    COMMAND_RUN,
    COMMAND_COUNT,
};

enum option_profile { PROFILE_QUICK, PROFILE_FULL };
enum option_progress { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

enum { OPTIONS_ERROR_BYTES = 320 };

struct options {
    enum command_id command;
    bool json, text; /* what to print; neither: by where standard output goes */
    enum option_profile profile;
    enum option_progress progress;
    struct number_list page_sizes; /* to measure, base pages among them; none and no thp = every size and THP */
    bool thp;                      /* "thp" was listed */
    uint64_t max_memory_bytes;     /* 0 = the default rule */
    double time_limit_seconds;     /* 0 = the profile's budget */
    struct cpu_list cpus;          /* empty = the affinity mask inherited */
    int numa_node;                 /* -1 = any */
    uint64_t seed;
    bool reserve;
    bool keep_priority;
    bool registers;   /* info: print the CPUID registers and nothing else */
    bool processes;   /* info: per-process page use */
    const char *root; /* "" = the running system */
    const char *file; /* decode: the dump; "-" = standard input */
    struct rows_request rows;
    struct latency_request latency;
    struct counters_request counters;
};

/* True when `page_bytes` (base or hugetlb) is to be measured. */
bool options_want_page_size(const struct options *options, uint64_t page_bytes);
/* True when transparent huge pages are to be measured. */
bool options_want_thp(const struct options *options);

/* --- command_line.c: reading argv, the checks of what was read, and the help -------------------------------------- */

enum options_status { OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR };

/* Parses argv. On OPTIONS_ERROR `error` holds one line that names the option, the value and the valid range. */
enum options_status options_parse(struct options *options, int argc, char **argv, char error[OPTIONS_ERROR_BYTES]);

/* Checks what only the machine can tell: page sizes, NUMA node, CPUs, memory, row widths. Same error contract; touches
 * nothing. */
enum options_status options_check(const struct options *options, const struct environment *environment,
                                  char error[OPTIONS_ERROR_BYTES]);

const char *command_name(enum command_id command);

/* Prints the help that the command and option tables generate. */
void options_print_help(FILE *out);

#define FOR(command) (1u << (unsigned)(command))
#define FOR_MEASURING                                                                                                  \
    (FOR(COMMAND_GEOMETRY) | FOR(COMMAND_LATENCY) | FOR(COMMAND_ROWS) | FOR(COMMAND_SCATTER) | FOR(COMMAND_RUN))
#define FOR_ROWS (FOR(COMMAND_ROWS) | FOR(COMMAND_RUN))
#define FOR_LATENCY (FOR(COMMAND_LATENCY) | FOR(COMMAND_RUN))
#define FOR_ALL (FOR_MEASURING | FOR(COMMAND_INFO) | FOR(COMMAND_DECODE) | FOR(COMMAND_COUNTERS))

struct option_spec {
    const char *name;
    const char *value; /* NULL = a flag */
    unsigned commands;
    const char *range; /* the valid values, for the error message and the help */
    const char *help;
    /* Stores what `text` says; false when it is not valid. */
    bool (*read)(const struct option_spec *spec, struct options *options, const char *text);
    bool is_list;             /* separated by commas: `read` gets each item */
    size_t member;            /* offset of what a generic reader sets */
    const char *const *names; /* of its values, in the order of their enum */
    size_t name_count;
    uint64_t least, most;
};

extern const struct option_spec option_specs[];
extern const size_t option_spec_count;

/* Stores the value that was given for the option. Returns false when it is not valid. */
bool option_read(const struct option_spec *spec, struct options *options, const char *value);
