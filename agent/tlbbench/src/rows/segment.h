/* SPDX-License-Identifier: Apache-2.0 */
/* The shared segment of one backing. Not for modules other than rows. */
#pragma once

#include "base/verdict.h"
#include "engine/session.h"
#include "memory/arena.h"
#include "memory/backing.h"

#include <stddef.h>
#include <stdint.h>

struct rows_segment {
    struct backing backing;
    struct verdict verdict; /* STATUS_OK: usable */
    int fd;                 /* -1 with a private arena */
    size_t bytes;           /* of the segment; what is mapped is rounded up to whole pages */
    size_t mapped_bytes;
    uint64_t idle_pool_bytes; /* free in the pool beside the segment before anything was reserved for it */
    struct arena arena;       /* THP where the kernel refuses it to shared memory: threads only */
};

/* Creates and fills the segment beside others that take `taken_bytes`; says in segment->verdict why it is not
 * available. Returns -1 only when asked to stop. */
int rows_segment_open(struct rows_segment *segment, const struct backing *backing, size_t bytes, uint64_t taken_bytes,
                      const struct session *session, struct verdict *verdict);
void rows_segment_close(struct rows_segment *segment);

/* A fresh mapping of it without any page faulted in, or the private arena. NULL with the reason. */
char *rows_segment_map(const struct rows_segment *segment, struct verdict *verdict);
void rows_segment_unmap(const struct rows_segment *segment, char *view);
