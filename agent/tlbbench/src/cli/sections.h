/* SPDX-License-Identifier: Apache-2.0 */
/* The sections that a measuring command is made of: what each may take, how it is measured, and when it is partial. */
#pragma once

#include "cli/options.h"
#include "output/run_result.h"

/* A section that is measured: what was requested, and where its result goes. */
struct section_call {
    const struct section *section;
    struct session *session;
    const struct options *options;
    struct run_result *result;
    int status; /* of measure() */
};

struct section {
    const char *name;
    enum command_id command;
    double quick_seconds, run_quick_seconds;         /* alone, and as a part of `run`, whose sum stays below 60 s */
    double full_seconds;                             /* the sum stays below 5 min */
    int (*measure)(const struct section_call *call); /* 0, or -1 when memory for the result ran out */
    size_t result;                                   /* offset of the pointer to its result in struct run_result */
    bool (*is_partial)(const struct section_call *call);
};

/* The verdict of what was measured: the first member of every result. */
struct verdict *section_verdict(const struct section *section, struct run_result *result);

/* In the order in which `run` measures them. */
enum { SECTION_COUNT = 4 };
extern const struct section SECTIONS[SECTION_COUNT];
