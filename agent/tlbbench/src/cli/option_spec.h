/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: what command_line.c matches, what the help prints, and the readers of the values. */
#ifndef TLBBENCH_OPTION_SPEC_H
#define TLBBENCH_OPTION_SPEC_H

#include "cli/options.h"

#define FOR(command) (1u << (unsigned)(command))
#define FOR_MEASURING                                                                                                  \
    (FOR(COMMAND_GEOMETRY) | FOR(COMMAND_LATENCY) | FOR(COMMAND_ROWS) | FOR(COMMAND_SCATTER) | FOR(COMMAND_RUN))
#define FOR_ROWS (FOR(COMMAND_ROWS) | FOR(COMMAND_RUN))
#define FOR_LATENCY (FOR(COMMAND_LATENCY) | FOR(COMMAND_RUN))
#define FOR_ALL (FOR_MEASURING | FOR(COMMAND_INFO) | FOR(COMMAND_DECODE))

struct option_spec {
    const char *name;
    const char *value; /* NULL = a flag */
    unsigned commands;
    const char *range; /* the valid values, for the error message and the help */
    const char *help;
    bool (*read)(struct options *options, const char *value); /* NULL for a flag */
    bool is_list; /* separated by commas: `read` gets each item */
    size_t flag;  /* offset of the bool that a flag sets */
};

extern const struct option_spec option_specs[];
extern const size_t option_spec_count;

/* Stores the value that was given for the option. Returns false when it is not valid. */
bool option_read(const struct option_spec *spec, struct options *options, const char *value);

#endif
