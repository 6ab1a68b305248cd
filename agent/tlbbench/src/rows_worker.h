/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of one rows measurement. Not for modules other than rows. */
#ifndef TLBBENCH_ROWS_WORKER_H
#define TLBBENCH_ROWS_WORKER_H

#include "rows_segment.h"
#include "session.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What one measurement does. */
struct rows_spec {
    uint64_t row_bytes;
    enum row_keys keys;
    enum row_read read;
    unsigned workers;
    enum row_mode mode;
};

enum {
    ROWS_WORKERS_MAX = 1024,
    ROWS_BUCKETS_PER_OCTAVE = 16, /* neighbouring buckets differ by 4.4 % */
    ROWS_BUCKETS = 40 * ROWS_BUCKETS_PER_OCTAVE,
    ROWS_CACHE_LINE_BYTES = 128, /* the largest here (POWER, and the pair prefetched on x86) */
};

/* One worker's counters, on lines of its own, in memory shared with forked workers. */
struct rows_counters {
    _Alignas(ROWS_CACHE_LINE_BYTES) uint64_t rows;
    uint64_t page_table_bytes; /* growth by touching the segment; UINT64_MAX = unknown */
    double first_touch_seconds;
    bool touched; /* false in the end: the worker died on the way */
    bool finished;
    uint32_t histogram[ROWS_BUCKETS]; /* batches by ns a row */
};

/* Bucket of `ns` per row, and the middle of a bucket. */
unsigned rows_bucket(double ns);
double rows_bucket_ns(unsigned bucket);

/* Number of rows that a segment of `bytes` holds beside their index. */
uint64_t rows_count(uint64_t bytes, uint64_t row_bytes);

/* Runs one measurement on a usable segment for about `seconds`. Fills the figures and the verdict of `measurement`.
 * Returns -1 when asked to stop. */
int rows_run(const struct rows_segment *segment, const struct rows_spec *spec, double seconds,
             const struct session *session, struct row_measurement *measurement);

#endif
