/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of rows_measure(), each in the file of its name. Not for modules other than rows. */
#pragma once

#include "base/rng.h"
#include "rows/result.h"

#include <stdatomic.h>

/* --- segment.c: the shared segment of one backing --- */

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
 * available. Returns -1 only when asked to stop, or when the time ended before it was filled. */
int rows_segment_open(struct rows_segment *segment, const struct backing *backing, size_t bytes, uint64_t taken_bytes,
                      const struct session *session);
void rows_segment_close(struct rows_segment *segment);

/* A fresh mapping of it without any page faulted in, or the private arena. NULL with the reason. */
char *rows_segment_map(const struct rows_segment *segment, struct verdict *verdict);
void rows_segment_unmap(const struct rows_segment *segment, char *view);

/* --- workers.c --- */

/* Runs one round of the measurement on a usable segment for about `seconds`: fills its figures and the measurement's
 * page tables, first touch and verdict. Returns -1 when asked to stop. */
int workers_run(const struct rows_segment *segment, double seconds, const struct session *session,
                struct row_measurement *measurement, struct rows_round *round);

/* --- conclusions.c: what the rounds of a measurement say together --- */

/* Fills the medians and ratios of all measurements; notes CPU contention in the reasons. */
void rows_conclude_rounds(struct rows_result *result);

/* From how many connections on huge pages cost no memory: page tables that they save against memory that they hold.
 * Smallest number of connections whose saved tables are more than `held_bytes`; at least 1. `saved_bytes` of a
 * connection must not be 0. */
int64_t rows_break_even_connections(uint64_t held_bytes, uint64_t saved_bytes);

/* Fills result->break_evens for the hugetlb segments that was available. Returns 0, or -1 when memory ran out. */
int rows_find_break_even(struct rows_result *result, const struct rows_segment *segments, size_t segment_count,
                         uint64_t base_page_bytes);

/* --- reader.c: how one worker reads rows, and what it counts --- */

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
    uint64_t cpu_ns; /* while it read */
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

/* --- draws ranks with Zipf popularity: rank k (from 0) has weight 1 / (k + 1)^exponent --- */

struct zipf {
    uint64_t count;
    double exponent;
    double area; /* of the hat function over all ranks */
};

/* `exponent` > 0 and not 1 (0.99 is the usual one of database benchmarks). */
struct zipf zipf_new(uint64_t count, double exponent);

/* Rejection against the integral of x^-exponent: exact popularity, about one draw a sample, no table. */
uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng);
