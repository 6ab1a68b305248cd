/* SPDX-License-Identifier: Apache-2.0 */
/* The file behind --reserve: where it lies, who holds it, and what its lines say. Not for modules other than reserve.
 */
#pragma once

#include "base/std.h"

enum {
    RESERVE_POOLS_MAX = 16,
    RESERVE_PATH_BYTES = 256,
    RESERVE_LINE_BYTES = 160,
};

/* Where things lie; the tests point these elsewhere. */
struct reserve_paths {
    const char *sysfs;       /* "/sys" */
    const char *journal_dir; /* NULL = the rule above */
};

struct reserve_pool {
    uint64_t page_bytes;
    int node;         /* -1 = the machine-wide count, where the kernel has no nodes */
    int64_t previous; /* persistent pages: those in use beyond the count, as overcommit gives them, are not in it */
    int64_t target;
    int64_t got;  /* what the kernel made of it; -1 = not readable */
    int64_t held; /* the count that means nobody else has changed the pool since: what was got, else the target */
    bool noted;   /* `held` is what the kernel made of the target; else the write was still under way */
};

/* A journal line and its parser; a line that was cut short does not parse. "target=" is written before the pool is,
 * "held=" after it; a later line of a pool replaces the earlier one. */
void reserve_format_line(const struct reserve_pool *pool, char line[RESERVE_LINE_BYTES]);
bool reserve_parse_line(const char *line, struct reserve_pool *pool);

enum { RESERVE_BOOT_ID_BYTES = 40, RESERVE_JOURNAL_DIRECTORIES = 3 };

/* The kernel's name of this boot; empty when unknown. */
void reserve_journal_boot_id(char boot_id[RESERVE_BOOT_ID_BYTES]);

/* The n-th directory that may hold a journal; false when that one does not exist here. */
bool reserve_journal_directory(const struct reserve_paths *places, unsigned number, char path[RESERVE_PATH_BYTES]);

/* A journal is obeyed with the caller's rights, so nobody else may be able to plant one. */
bool reserve_journal_is_private(const char *path);

void reserve_journal_path(const char *directory, char path[RESERVE_PATH_BYTES]);

/* Opens and locks the journal at `path`, `flags` of open(2) added. Returns the descriptor; -1 with errno EWOULDBLOCK
 * when a living run holds it. */
int reserve_journal_lock(const char *path, int flags);

/* Removes the journal, and its directory when that is empty. */
void reserve_journal_remove(const char *path);

/* Returns 0, or -1 (errno) when the text did not reach the file system. */
int reserve_journal_append(int fd, const char *text);
