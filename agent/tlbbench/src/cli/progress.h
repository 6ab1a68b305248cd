/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, in percent of its time budget, and how long it may still take. */
#pragma once

#include "base/std.h"

struct progress {
    FILE *out;       /* NULL = silent */
    bool overwrites; /* a terminal: one line that is written again and again; else a line each time */
    const char *section;
    double done_before; /* share of the whole that earlier sections made up */
    double share;       /* of this section */
    uint64_t start_ns;
    uint64_t printed_ns;
};

void progress_start(struct progress *progress, FILE *out);
/* The next section, which is this share (0 .. 1) of the whole. The one before counts as done. */
void progress_next_section(struct progress *progress, const char *section, double share);
/* session.progress: prints when the last line is old enough. `context` is the struct progress. */
void progress_report(void *context, double fraction_of_section);
/* Takes the line off the terminal. */
void progress_end(struct progress *progress);

/* "geometry    12 %, about 30 s left"; no time is told while less than 2 % is done. Returns `text`. */
enum { PROGRESS_TEXT_BYTES = 96 };
char *progress_text(const char *section, double done, double elapsed_seconds, char text[PROGRESS_TEXT_BYTES]);
