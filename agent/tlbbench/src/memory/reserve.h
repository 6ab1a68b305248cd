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
 * Everything in this project that writes a pool does so under this lock and through this journal
 * (agent/hugeplan_agent/pool_reservation.py is the other program's side), so that one writer never takes another's
 * pages for the previous count, and whoever starts next mends what either left.
 *
 * The journal lies in /run/tlbbench, else in $XDG_RUNTIME_DIR/tlbbench, else in $TMPDIR (or /tmp) as tlbbench-UID: the
 * first of these that can be created and belongs to the caller alone.
 */
#pragma once

#include "base/verdict.h"
#include "memory/reserve_journal.h"

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

/* Gives back what a killed run left. Returns the number of pools restored, 0 when there was nothing to do, -1 when a
 * pool could not be written. Journals of living runs are left alone. */
int reservation_recover(const struct reserve_paths *places);

/* True when a killed run left pools that reservation_recover() would restore. Writes nothing. */
bool reservation_is_left(const struct reserve_paths *places);

/* The count that a pool raised from pool->previous should have, which has `current` now: the previous one where nobody
 * else has set it since, and otherwise what they set. Nobody has while it is what was held, or, where a kill came
 * before that was noted, anything on the way to the target. */
int64_t reserve_restored_count(const struct reserve_pool *pool, int64_t current);
