/* SPDX-License-Identifier: Apache-2.0 */
/* Reading small files below a root: the running system's "/" or a captured tree. Nothing here writes. */
#pragma once

#include "base/std.h"

#include <sys/types.h>

enum { TREE_PATH_BYTES = 4096 };

/* Opens root + path for reading without waiting for anything. The caller closes it; NULL with errno when it cannot be
 * opened. */
FILE *tree_open(const char *root, const char *path);

/* Reads root + path into `text`, NUL-terminated and cut to `size` - 1 bytes. Returns the length, or -1 (errno says
 * why). */
ssize_t tree_read(const char *root, const char *path, char *text, size_t size);

/* Reads one line without its white space. Returns false and leaves "" when the file is absent or unreadable. */
bool tree_read_line(const char *root, const char *path, char *text, size_t size);

/* The path of a file of the pool of this page size, below `sysfs` ("/sys"): of one NUMA node, or of all when `node` is
 * negative. */
enum { POOL_PATH_BYTES = 256 };
void pool_path(const char *sysfs, int node, uint64_t page_bytes, const char *file, char path[POOL_PATH_BYTES]);

/* Reads one non-negative decimal number; -1 when it is absent, unreadable, not a number or larger than INT64_MAX. */
int64_t tree_read_number(const char *root, const char *path);

/* Reads one counter of a pool; -1 when it is unknown. */
int64_t pool_read(const char *sysfs, int node, uint64_t page_bytes, const char *file);

/* Calls `visit` for every name in the directory, in no order. Returns false when it cannot be opened. */
bool tree_list(const char *root, const char *path, void (*visit)(const char *name, void *context), void *context);
