/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: what command_line.c matches, what the help prints, and the readers of the values. */
#pragma once

#include "cli/options.h"

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
