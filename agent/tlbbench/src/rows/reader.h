/* SPDX-License-Identifier: Apache-2.0 */
/* How one worker reads rows, and what it counts. Not for modules other than rows. */
#pragma once

#include "rows/result.h"

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
    ROWS_LINE_PAIR_BYTES = 128, /* the largest here (POWER, and the pair prefetched on x86) */
};

/* One worker's counters, on lines of its own, in memory shared with forked workers. */
struct rows_counters {
    _Alignas(ROWS_LINE_PAIR_BYTES) uint64_t rows;
    uint64_t page_table_bytes; /* growth by touching the segment; UINT64_MAX = unknown */
    double first_touch_seconds, first_touch_cpu_seconds;
    bool touched; /* false in the end: the worker died on the way */
    bool finished;
    uint32_t histogram[ROWS_BUCKETS]; /* batches by ns per row */
};

/* Bucket of `ns` per row, and the middle of a bucket. */
unsigned rows_bucket(double ns);
double rows_bucket_ns(unsigned bucket);

/* Quantile over the batches of all workers; NAN without any. */
double rows_quantile_ns(const struct rows_counters *counters, unsigned workers, double quantile);

/* Number of rows that a segment of `bytes` holds beside their index. */
uint64_t rows_count(uint64_t bytes, uint64_t row_bytes);

/* Where and what a worker reads. */
struct rows_reading {
    const char *view;
    uint64_t bytes; /* of the segment */
    const struct rows_spec *spec;
    uint64_t seed;
    unsigned worker;
    const atomic_bool *stop; /* shared by all workers, also by forked ones */
};

/* Reads rows until told to stop, and counts them. */
void rows_read_until_stopped(const struct rows_reading *reading, struct rows_counters *counters);
