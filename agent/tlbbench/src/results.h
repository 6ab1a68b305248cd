/*
 * Results of the measurements, as plain data. The measuring modules fill them, the serialisers print them, and the
 * terminal renderer reads them. The shapes mirror the tlbbench document (tlbbench.schema.json).
 *
 * Units are in the names. An unknown number is NAN (double) or the named "unknown" constant; it is never zero.
 * Every result with arrays has a free function beside its measuring function.
 */
#ifndef TLBBENCH_RESULTS_H
#define TLBBENCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a number is there or not. The names in the document are those of status_name(). */
enum status {
    STATUS_OK,
    STATUS_SKIPPED,           /* not asked for, or nothing to measure here */
    STATUS_NOISY,             /* measured, but the machine was too disturbed to say a number */
    STATUS_NO_FREE_HUGEPAGES, /* the pool of this size has no free page */
    STATUS_THP_NOT_GRANTED,   /* the kernel gave base pages where THP was asked for */
    STATUS_FRACTURED,         /* the TLB holds smaller pages than the kernel mapped */
    STATUS_CPUID_HIDDEN,
    STATUS_STOPPED,             /* by a signal or by --time-limit */
    STATUS_NO_MEMORY,           /* ENOMEM from the kernel */
    STATUS_MEMORY_LIMIT,        /* --max-memory or MemAvailable leave too little */
    STATUS_CGROUP_LIMIT,        /* the memory cgroup leaves too little */
    STATUS_ADDRESS_SPACE_LIMIT, /* RLIMIT_AS */
    STATUS_SIGBUS,              /* a page that the kernel had promised was not there */
    STATUS_NOT_PERMITTED,
    STATUS_UNSUPPORTED, /* the kernel or the processor lacks what is needed */
    STATUS_NOT_REACHED, /* scatter: no crossing inside the tested range */
    STATUS_FAILED
};

const char *status_name(enum status status);

#define REASON_BYTES 200

struct verdict {
    enum status status;
    char reason[REASON_BYTES]; /* empty = no reason; printed as null */
};

/* Statistics over the batches of one point, in nanoseconds per access. */
struct point_stats {
    double ns_min, ns_p10, ns_p50, ns_p90, ns_mad;
    unsigned batches; /* kept */
    unsigned dropped; /* rejected by the noise guard */
};

struct curve_point {
    uint64_t x;
    struct point_stats stats;
};

enum backing_kind { BACKING_BASE, BACKING_THP, BACKING_HUGETLB };
const char *backing_kind_name(enum backing_kind kind); /* "base", "thp", "hugetlb" */

struct curve {
    char name[64];
    const char *x_name; /* "footprint_bytes", "pages", "hot_lines" */
    char backing[16];   /* "4K", "THP", "2M", "1G", ... */
    enum backing_kind kind;
    uint64_t page_bytes;
    const char *layout;      /* "line_per_page", "random_64b", "aliased", "distinct", "packed", "scatter" */
    double granted_fraction; /* part of the mapping that smaps proves to be of page_bytes; NAN = unknown */
    struct verdict verdict;
    struct curve_point *points;
    size_t point_count;
};

struct curve_list {
    struct curve *items;
    size_t count;
};

/* --- geometry ------------------------------------------------------------------------------------------------- */

enum tlb_kind { TLB_DATA, TLB_INSTRUCTION, TLB_UNIFIED, TLB_LOAD, TLB_STORE };
const char *tlb_kind_name(enum tlb_kind kind);

enum fact_source { SOURCE_CPUID, SOURCE_CATALOGUE, SOURCE_MEASURED, SOURCE_DEVICE_TREE };
const char *fact_source_name(enum fact_source source);

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
const char *confidence_name(enum confidence confidence);

#define TLB_ENTRIES_UNKNOWN 0u
#define TLB_WAYS_UNKNOWN 0
#define TLB_WAYS_FULL (-1)

struct tlb_level {
    unsigned level; /* 1, 2 */
    enum tlb_kind kind;
    uint64_t page_bytes;
    unsigned entries; /* TLB_ENTRIES_UNKNOWN is printed as null */
    unsigned entries_min, entries_max;
    int ways;     /* TLB_WAYS_* or the number (the smallest, where CPUID gives a range) */
    int ways_max; /* largest of the range; 0 = no range */
    enum fact_source source;
    enum confidence confidence;
    char note[160]; /* empty = null */
};

struct tlb_level_list {
    struct tlb_level *items;
    size_t count;
};

struct granule {
    char backing[16];
    enum backing_kind kind;
    uint64_t page_bytes;
    uint64_t granule_bytes; /* what one TLB entry covers; 0 = unknown, printed as null */
    struct verdict verdict; /* STATUS_OK: granule_bytes == page_bytes; STATUS_FRACTURED: smaller */
};

struct penalty {
    const char *level; /* "l2_hit", "walk" */
    uint64_t page_bytes;
    double ns, ns_min, ns_max; /* on top of an L1 hit */
    double cycles;
};

struct core_clock {
    double core_hz;
    double l1_hit_ns;
    double l1_hit_cycles;
};

struct disagreement {
    unsigned level;
    uint64_t page_bytes;
    const char *field;                                /* "entries", "ways" */
    unsigned cpuid, catalogue, measured, device_tree; /* 0 = this source says nothing */
    char text[REASON_BYTES];
};

enum alias_method { METHOD_ALIASED, METHOD_DISTINCT_LINES };
const char *alias_method_name(enum alias_method method);

struct geometry_result {
    struct verdict verdict;
    enum alias_method method;   /* chosen by measuring: does aliasing cost anything on this core? */
    double alias_cost_ns;       /* aliased minus distinct lines, few pages; NAN = not measured */
    double core_alone_fraction; /* of the looks at the core: no sibling thread was busy; NAN = no look */
    bool coalescing_seen;       /* contiguous frames raise the capacity */
    char coalescing[REASON_BYTES];
    struct tlb_level_list levels; /* cpuid and catalogue facts first, then measured ones */
    struct granule *granules;
    size_t granule_count;
    struct penalty *penalties;
    size_t penalty_count;
    struct core_clock clock;
    struct disagreement *disagreements;
    size_t disagreement_count;
    struct curve_list curves;
    uint64_t peak_mapped_bytes; /* physical memory the section used at most */
};

/* --- latency -------------------------------------------------------------------------------------------------- */

struct paired_delta {
    char backing[16]; /* compared with base pages */
    const char *layout;
    uint64_t x;      /* footprint in bytes */
    double delta_ns; /* this backing minus base pages; negative = faster */
    double ci95_low_ns, ci95_high_ns;
    unsigned pairs;
};

/* A random access timed alone, with other cache lines read between two of them. */
/* How the lines of a cycle lie in its footprint; and what `latency` measures beside the curves of cycles. */
enum latency_curve {
    LAYOUT_LINE_PER_PAGE, /* one line in every base page, at a random line of it */
    LAYOUT_RANDOM_64B,    /* every line */
    LAYOUT_PACKED,        /* as many lines as the first, side by side: the cache-only control */
    LAYOUT_COUNT,
    LATENCY_PRESSURE = LAYOUT_COUNT,
    LATENCY_CURVE_COUNT,
};
const char *latency_curve_name(enum latency_curve curve);

struct pressure_point {
    char backing[16]; /* compared with base pages */
    enum backing_kind kind;
    uint64_t page_bytes;
    uint64_t footprint_bytes;
    unsigned lines_between;
    unsigned wait_ns;           /* spun idle between two accesses */
    double period_ns;           /* from one access to the next, all included; mean of both sides */
    double base_ns_p50, ns_p50; /* medians of the batches; an empty timed pair subtracted */
    double delta_ns;            /* mean over the pairs, this backing minus base pages; negative = faster */
    double ci95_low_ns, ci95_high_ns;
    unsigned pairs;
};

struct pressure_result {
    struct verdict verdict;
    uint64_t region_bytes;   /* that the lines between are read from; 0 = nothing was measured */
    char region_backing[16]; /* empty = nothing was measured */
    struct pressure_point *points;
    size_t point_count;
    uint64_t peak_mapped_bytes;
    double duration_seconds;
};

struct latency_result {
    struct verdict verdict;
    struct curve_list curves;
    struct paired_delta *deltas;
    size_t delta_count;
    struct pressure_result pressure;
    uint64_t peak_mapped_bytes;
};

/* --- rows ----------------------------------------------------------------------------------------------------- */

enum row_keys { KEYS_UNIFORM, KEYS_ZIPF };
const char *row_keys_name(enum row_keys keys);
enum row_read { READ_HEADER, READ_ROW, READ_INDEX_THEN_ROW };
const char *row_read_name(enum row_read read);
enum row_mode { MODE_THREADS, MODE_PROCESSES };
const char *row_mode_name(enum row_mode mode);

struct row_measurement {
    uint64_t row_bytes;
    enum row_keys keys;
    enum row_read read;
    unsigned workers;
    enum row_mode mode;
    char backing[16];
    enum backing_kind kind;
    uint64_t page_bytes;
    uint64_t segment_bytes;
    double rows_per_second;
    double ns_p50, ns_p90, ns_p99;     /* per row, over batches of rows of all workers */
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

struct rows_result {
    struct verdict verdict;
    struct row_measurement *measurements;
    size_t measurement_count;
    struct break_even *break_evens;
    size_t break_even_count;
    uint64_t peak_mapped_bytes;
};

/* --- scatter -------------------------------------------------------------------------------------------------- */

struct scatter_result {
    struct verdict verdict;
    int64_t crossing_hot_lines; /* -1 = none; then crossing_status is STATUS_NOT_REACHED or why it is unknown */
    enum status crossing_status;
    char crossing_backing[16];
    uint64_t tested_min, tested_max;
    struct curve_list curves;
    uint64_t peak_mapped_bytes;
};

/* --- the run -------------------------------------------------------------------------------------------------- */

struct section_result {
    const char *name; /* "info", "geometry", "latency", "rows", "scatter" */
    struct verdict verdict;
    double duration_seconds;
};

#define SECTIONS_MAX 8

struct reservation; /* reserve.h */

struct reservation; /* reserve.h */

/* A section that a command did not run is NULL. */
struct run_result {
    struct section_result sections[SECTIONS_MAX];
    size_t section_count;
    struct geometry_result *geometry;
    struct latency_result *latency;
    struct rows_result *rows;
    struct scatter_result *scatter;
    struct reservation *reservation; /* NULL without --reserve */
    int exit_status;                 /* 0 done, 3 partial */
    uint64_t rss_outside_bytes;      /* resident memory outside the measured area at its highest; 0 = unknown */
};

#endif
