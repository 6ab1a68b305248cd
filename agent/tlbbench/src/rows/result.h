/* SPDX-License-Identifier: Apache-2.0 */
/* Row reads from a shared segment by many workers, as database connections do: threads of one process, or forked
 * processes that each have their own page tables. */
#pragma once

#include "timing/session.h"

enum row_keys { KEYS_UNIFORM, KEYS_ZIPF, ROW_KEYS_COUNT };
extern const char *const ROW_KEYS_NAMES[];
enum row_read { READ_HEADER, READ_ROW, READ_INDEX_THEN_ROW, ROW_READ_COUNT };
extern const char *const ROW_READ_NAMES[];
enum row_mode { MODE_THREADS, MODE_PROCESSES, ROW_MODE_COUNT };
extern const char *const ROW_MODE_NAMES[];

/* What one measurement does. */
struct rows_spec {
    uint64_t row_bytes;
    enum row_keys keys;
    enum row_read read;
    unsigned workers;
    enum row_mode mode;
};

/* One repeat. Those of the same number of several page sizes ran one after the other, so that what drifts slowly is the
 * same for all of them. */
enum { ROWS_ROUNDS_MAX = 4 };
struct rows_round {
    double rows_per_second;
    double ns_p50, ns_p90, ns_p99; /* per row, over batches of rows of all workers */
    double cpu_share;              /* of the CPUs that the workers could use at the same time */
};

struct row_measurement {
    struct rows_spec spec;
    struct backing backing;
    uint64_t segment_bytes;
    struct rows_round rounds[ROWS_ROUNDS_MAX]; /* NAN = without figures */
    struct rows_round median;                  /* of the rounds without CPU contention; of all where there are none */
    /* Rows per second over those of base pages: mean of the logarithms of both rounds of each pair without CPU
     * contention, with its 95 % interval. NAN of base pages, and with fewer than two pairs. */
    double ratio, ratio_low, ratio_high;
    unsigned pairs;
    uint64_t vm_pte_bytes_per_process; /* growth by touching the segment; UINT64_MAX = unknown */
    uint64_t vm_pte_bytes_total;
    /* Per worker that faults the whole segment in, while the others do, too; NAN = not touched whole. */
    double first_touch_seconds, first_touch_cpu_seconds;
    struct verdict verdict;
};

struct break_even {
    uint64_t page_bytes; /* of the huge pages */
    uint64_t segment_bytes;
    int64_t connections; /* from here on the tables saved are more than rounding and idle pages hold; -1 = unknown */
    int64_t connections_per_idle_page;   /* that pay for one more page of the pool that nobody uses; -1 = unknown */
    uint64_t rounding_bytes;             /* of the segment's last page */
    uint64_t idle_pool_bytes;            /* free in the pool, as it was found, beside the segment */
    uint64_t saved_bytes_per_connection; /* base page tables less huge ones, all touched; UINT64_MAX = unknown */
    char text[REASON_BYTES];
};

enum { ROWS_MIN = 64 }; /* fewer are no table: every read would hit the same cache lines */

/* What to measure. */
struct rows_request {
    struct number_list row_bytes; /* none = 128, 8192 and 16384 */
    struct number_list workers;   /* none = those of the profile */
    unsigned modes;               /* SET_BIT(enum row_mode) */
    unsigned keys;                /* SET_BIT(enum row_keys) */
    unsigned reads;               /* SET_BIT(enum row_read) */
    uint64_t segment_bytes;       /* 0 = as large as allowed */
};

struct rows_result {
    struct verdict verdict;
    struct row_measurement *measurements;
    size_t measurement_count;
    struct break_even *break_evens;
    size_t break_even_count;
    uint64_t peak_mapped_bytes;
};

/* Always leaves a valid result. Returns 0, or -1 when memory for the result ran out. Its lists are the caller's. */
int rows_measure(const struct session *session, const struct rows_request *request, struct rows_result *result);
