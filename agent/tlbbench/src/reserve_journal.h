/* SPDX-License-Identifier: Apache-2.0 */
/* The file behind --reserve: where it lies, who holds it, and what its lines say. Not for modules other than reserve.
 */
#ifndef TLBBENCH_RESERVE_JOURNAL_H
#define TLBBENCH_RESERVE_JOURNAL_H

#include "reserve.h"

#include <stdbool.h>

enum { RESERVE_BOOT_ID_BYTES = 40, RESERVE_JOURNAL_DIRECTORIES = 3 };

/* The kernel's name of this boot; empty when unknown. */
void reserve_journal_boot_id(char boot_id[RESERVE_BOOT_ID_BYTES]);

/* The n-th directory that may hold a journal; false when that one does not exist here. */
bool reserve_journal_directory(const struct reserve_places *places, unsigned number, char path[RESERVE_PATH_BYTES]);

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

#endif
