/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --reserve: huge pages taken from the kernel for the measurement, and given back on every exit.
 *
 * Before a pool is written, its previous count goes into a journal that is synced to its file system, and what the
 * kernel made of the wish goes there afterwards. The owner holds a lock on the journal, and forked workers inherit it,
 * so the lock is free exactly when nobody uses the pages any more. An orderly exit gives the pages back and removes the
 * journal; after SIGKILL the next start finds the journal unlocked and does the same. A journal of an earlier boot is
 * only removed: pools do not survive a boot.
 *
 * Everything in this project that writes a pool for a while does so under this lock and through this journal, and
 * hugeplan apply under this lock (agent/hugeplan_agent/pool_reservation.py is the other programs' side), so that one
 * writer never takes another's pages for the previous count, and whoever starts next mends what either left.
 *
 * The journal lies in /run/tlbbench, else in $XDG_RUNTIME_DIR/tlbbench, else in $TMPDIR (or /tmp) as tlbbench-UID: the
 * first of these that can be created and belongs to the caller alone, no mount of FUSE.
 */
#pragma once

#include "base/verdict.h"

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

extern const struct reserve_paths RESERVE_SYSTEM;

struct reservation {
    struct reserve_paths places;
    struct verdict verdict; /* STATUS_OK: what was wanted is there, or as much as the kernel could find */
    struct reserve_pool pools[RESERVE_POOLS_MAX];
    size_t pool_count;
    int journal_fd; /* -1 = nothing taken */
    char journal_path[RESERVE_PATH_BYTES];
};

/* Opens the journal, and first gives back what an owner that was killed left in it. Returns 0; -1 with the reason in
 * the verdict (no rights, another program holds a reservation, its pages could not be given back). */
int reservation_begin(struct reservation *reservation, const struct reserve_paths *places);

/* Raises the pool of this size on `node` (-1 = machine-wide) until `free_pages` are free. Never lowers it. */
void reservation_take(struct reservation *reservation, uint64_t page_bytes, int node, int64_t free_pages);

/* Gives everything back and removes the journal. Safe to call twice, and after a failed begin. Returns 0, or -1 when a
 * pool could not be written; then the journal stays for the next start. */
int reservation_end(struct reservation *reservation);

/* Gives back what a killed run left; only looks, unless it `writes`. Returns the number of pools restored, or that
 * would be, 0 when there was nothing to do, -1 when a pool could not be written. Journals of living runs are left
 * alone. */
int reservation_recover(const struct reserve_paths *places, bool writes);

/* The count that a pool raised from pool->previous should have, which has `current` now: the previous one where nobody
 * else has set it since, and otherwise what they set. Nobody has while it is what was held, or, where a kill came
 * before that was noted, anything on the way to the target. */
int64_t reserve_restored_count(const struct reserve_pool *pool, int64_t current);

/* --- reserve_journal.c, for reserve.c alone: where the journal lies, who holds it, and what its lines say. --- */

/* A journal line and its parser; a line that was cut short does not parse. "target=" is written before the pool is,
 * "held=" after it; a later line of a pool replaces the earlier one. */
void reserve_format_line(const struct reserve_pool *pool, char line[RESERVE_LINE_BYTES]);
bool reserve_parse_line(const char *line, struct reserve_pool *pool);

enum { RESERVE_HEAD_BYTES = 80, RESERVE_JOURNAL_DIRECTORIES = 3 };

/* The first line of a journal of this boot. */
void reserve_journal_head(char head[RESERVE_HEAD_BYTES]);

/* The n-th directory that may hold a journal; false when that one does not exist here. */
bool reserve_journal_directory(const struct reserve_paths *places, unsigned number, char path[RESERVE_PATH_BYTES]);

/* A journal is obeyed with the caller's rights, so nobody else may be able to plant one. */
bool reserve_journal_is_private(const char *path);

/* Opens and locks the journal at `path`, `flags` of open(2) added. Returns the descriptor; -1 with errno EWOULDBLOCK
 * when a living run holds it. */
int reserve_journal_lock(const char *path, int flags);

/* Removes the journal, and its directory when that is empty. */
void reserve_journal_remove(const char *path);

/* Returns 0, or -1 (errno) when the text did not reach the file system. */
int reserve_journal_append(int fd, const char *text);
