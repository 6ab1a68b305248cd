/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option_spec.h"

#include "base/parse.h"
#include "latency/result.h"
#include "rows/result.h"

#include <string.h>

/* Limits that no machine of today reaches; they stop a slip of the finger, not a use. */
#define MAX_TIME_LIMIT_SECONDS 3600.0
#define MIN_TIME_LIMIT_SECONDS 0.1
#define MIN_MEMORY_BYTES (UINT64_C(1) << 20) /* below this no sweep of pages fits */
#define MAX_MEMORY_BYTES (UINT64_C(1) << 46)
#define MIN_PAGE_BYTES UINT64_C(4096)
#define MAX_PAGE_BYTES (UINT64_C(16) << 30) /* POWER's 16 GiB page */
#define MIN_ROW_BYTES UINT64_C(16)          /* a key and a pointer */
#define MAX_ROW_BYTES (UINT64_C(1) << 20)
#define MIN_FOOTPRINT_BYTES (UINT64_C(64) << 10) /* and the step: whole pages wherever base pages have up to 64K */
#define MAX_WORKERS 1024
#define MAX_NUMA_NODE 1023 /* MAX_NUMNODES of Linux is 1 << 10 */

/* Calls `read` for every item of a comma-separated list; false when one is refused or there are none. */
static bool read_list(struct options *options, const char *value, bool (*read)(struct options *, const char *))
{
    char item[64];

    for (;;) {
        size_t length = strcspn(value, ",");

        if (length == 0 || length >= sizeof(item))
            return false;
        memcpy(item, value, length);
        item[length] = '\0';
        if (!read(options, item))
            return false;
        if (value[length] == '\0')
            return true;
        value += length + 1;
    }
}

static bool read_json(struct options *options, const char *value)
{
    (void)value;
    options->output = OUTPUT_JSON;
    return true;
}

static bool read_text(struct options *options, const char *value)
{
    (void)value;
    options->output = OUTPUT_TEXT;
    return true;
}

static bool read_profile(struct options *options, const char *value)
{
    options->profile = strcmp(value, "full") == 0 ? PROFILE_FULL : PROFILE_QUICK;
    return strcmp(value, "full") == 0 || strcmp(value, "quick") == 0;
}

static bool read_page_size(struct options *options, const char *item)
{
    uint64_t bytes = 0;

    if (strcmp(item, "thp") == 0 || strcmp(item, "THP") == 0) {
        bool is_first = !options->thp;

        options->thp = true;
        return is_first;
    }
    if (!parse_size(item, &bytes) || bytes < MIN_PAGE_BYTES || bytes > MAX_PAGE_BYTES || (bytes & (bytes - 1)) != 0)
        return false;
    if (options->page_size_count == OPTIONS_MAX_LIST ||
        (options->page_size_count > 0 && options_want_page_size(options, bytes)))
        return false;
    options->page_sizes[options->page_size_count++] = bytes;
    return true;
}

static bool read_page_sizes(struct options *options, const char *value)
{
    return read_list(options, value, read_page_size);
}

static bool read_max_memory(struct options *options, const char *value)
{
    return parse_size(value, &options->max_memory_bytes) && options->max_memory_bytes >= MIN_MEMORY_BYTES &&
           options->max_memory_bytes <= MAX_MEMORY_BYTES;
}

static bool read_time_limit(struct options *options, const char *value)
{
    return parse_seconds(value, &options->time_limit_seconds) &&
           options->time_limit_seconds >= MIN_TIME_LIMIT_SECONDS &&
           options->time_limit_seconds <= MAX_TIME_LIMIT_SECONDS;
}

static bool read_cpus(struct options *options, const char *value)
{
    return parse_cpu_list(value, &options->cpus) && options->cpus.count > 0;
}

static bool read_numa_node(struct options *options, const char *value)
{
    uint64_t node = 0;

    if (!parse_u64(value, &node) || node > MAX_NUMA_NODE)
        return false;
    options->numa_node = (int)node;
    return true;
}

static bool read_seed(struct options *options, const char *value)
{
    return parse_u64(value, &options->seed);
}

static bool read_reserve(struct options *options, const char *value)
{
    (void)value;
    options->reserve = true;
    return true;
}

static bool read_keep_priority(struct options *options, const char *value)
{
    (void)value;
    options->keep_priority = true;
    return true;
}

static bool read_progress(struct options *options, const char *value)
{
    static const char *const names[] = {
        [PROGRESS_AUTO] = "auto", [PROGRESS_ALWAYS] = "always", [PROGRESS_NEVER] = "never"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i]) == 0) {
            options->progress = (enum option_progress)i;
            return true;
        }
    }
    return false;
}

static bool read_processes(struct options *options, const char *value)
{
    (void)value;
    options->processes = true;
    return true;
}

static bool read_registers(struct options *options, const char *value)
{
    (void)value;
    options->registers = true;
    return true;
}

static bool read_root(struct options *options, const char *value)
{
    options->root = value;
    return value[0] != '\0';
}

static bool read_row_width(struct options *options, const char *item)
{
    uint64_t bytes = 0;

    if (!parse_size(item, &bytes) || bytes < MIN_ROW_BYTES || bytes > MAX_ROW_BYTES || bytes % 8 != 0)
        return false;
    for (size_t i = 0; i < options->rows.row_bytes_count; i++)
        if (options->rows.row_bytes[i] == bytes)
            return false;
    if (options->rows.row_bytes_count == OPTIONS_MAX_LIST)
        return false;
    options->rows.row_bytes[options->rows.row_bytes_count++] = bytes;
    return true;
}

static bool read_row_bytes(struct options *options, const char *value)
{
    return read_list(options, value, read_row_width);
}

static bool read_worker_count(struct options *options, const char *item)
{
    uint64_t workers = 0;

    if (!parse_u64(item, &workers) || workers < 1 || workers > MAX_WORKERS)
        return false;
    for (size_t i = 0; i < options->rows.workers_count; i++)
        if (options->rows.workers[i] == workers)
            return false;
    if (options->rows.workers_count == OPTIONS_MAX_LIST)
        return false;
    options->rows.workers[options->rows.workers_count++] = (unsigned)workers;
    return true;
}

static bool read_workers(struct options *options, const char *value)
{
    return read_list(options, value, read_worker_count);
}

/* Adds the bit of the name found in `names`; false when it is not there or is in the set already. */
static bool add_named(unsigned *set, const char *const *names, size_t count, const char *item)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(item, names[i]) == 0) {
            bool is_first = (*set & SET_BIT(i)) == 0;

            *set |= SET_BIT(i);
            return is_first;
        }
    }
    return false;
}

static bool read_mode(struct options *options, const char *item)
{
    const char *const names[] = {row_mode_name(MODE_THREADS), row_mode_name(MODE_PROCESSES)};

    return add_named(&options->rows.modes, names, sizeof(names) / sizeof(names[0]), item);
}

static bool read_modes(struct options *options, const char *value)
{
    return read_list(options, value, read_mode);
}

static bool read_key(struct options *options, const char *item)
{
    const char *const names[] = {row_keys_name(KEYS_UNIFORM), row_keys_name(KEYS_ZIPF)};

    return add_named(&options->rows.keys, names, sizeof(names) / sizeof(names[0]), item);
}

static bool read_keys(struct options *options, const char *value)
{
    return read_list(options, value, read_key);
}

static bool read_read(struct options *options, const char *item)
{
    const char *const names[] = {row_read_name(READ_HEADER), row_read_name(READ_ROW),
                                 row_read_name(READ_INDEX_THEN_ROW)};

    return add_named(&options->rows.reads, names, sizeof(names) / sizeof(names[0]), item);
}

static bool read_reads(struct options *options, const char *value)
{
    return read_list(options, value, read_read);
}

static bool read_segment(struct options *options, const char *value)
{
    return parse_size(value, &options->rows.segment_bytes) && options->rows.segment_bytes >= MIN_MEMORY_BYTES &&
           options->rows.segment_bytes <= MAX_MEMORY_BYTES;
}

/* Kept rising. */
static bool read_footprint(struct options *options, const char *item)
{
    uint64_t bytes = 0;
    size_t place = 0;

    if (!parse_size(item, &bytes) || bytes < MIN_FOOTPRINT_BYTES || bytes > MAX_MEMORY_BYTES ||
        bytes % MIN_FOOTPRINT_BYTES != 0)
        return false;
    while (place < options->latency.footprint_count && options->latency.footprints[place] < bytes)
        place++;
    if (place < options->latency.footprint_count && options->latency.footprints[place] == bytes)
        return false;
    if (options->latency.footprint_count == OPTIONS_MAX_LIST)
        return false;
    memmove(&options->latency.footprints[place + 1], &options->latency.footprints[place],
            (options->latency.footprint_count - place) * sizeof(options->latency.footprints[0]));
    options->latency.footprints[place] = bytes;
    options->latency.footprint_count++;
    return true;
}

static bool read_footprints(struct options *options, const char *value)
{
    return read_list(options, value, read_footprint);
}

static bool read_curve(struct options *options, const char *item)
{
    const char *names[LATENCY_CURVE_COUNT];

    for (unsigned curve = 0; curve < LATENCY_CURVE_COUNT; curve++)
        names[curve] = latency_curve_name((enum latency_curve)curve);
    return add_named(&options->latency.curves, names, LATENCY_CURVE_COUNT, item);
}

static bool read_curves(struct options *options, const char *value)
{
    return read_list(options, value, read_curve);
}

const struct option_spec option_specs[] = {
    {"--json", NULL, FOR_ALL, NULL, "print the JSON document (the default when standard output is no terminal)",
     read_json},
    {"--text", NULL, FOR_ALL, NULL, "print the readable report (the default on a terminal)", read_text},
    {"--profile", "NAME", FOR_MEASURING, "quick or full", "how much to measure (default: quick)", read_profile},
    {"--page-sizes", "LIST", FOR_MEASURING,
     "powers of two from 4K to 16G, and thp, separated by commas, at most 16, none twice",
     "page sizes to measure (default: all that the machine has)", read_page_sizes},
    {"--max-memory", "SIZE", FOR_MEASURING, "1M to 64T, a whole number of bytes, K, M, G or T",
     "most memory to use (default: 25 % of MemAvailable, less in a cgroup)", read_max_memory},
    {"--time-limit", "SECONDS", FOR_MEASURING, "0.1 to 3600", "stop measuring after this time", read_time_limit},
    {"--cpus", "LIST", FOR_MEASURING, "CPU numbers such as 0-3,8", "CPUs to measure on (default: those allowed)",
     read_cpus},
    {"--numa-node", "N", FOR_MEASURING, "0 to 1023", "NUMA node to take memory from", read_numa_node},
    {"--seed", "N", FOR_MEASURING, "0 to 18446744073709551615", "seed of all random orders (default: 1)", read_seed},
    {"--reserve", NULL, FOR_MEASURING, NULL,
     "reserve huge pages for the measurement and restore the previous nr_hugepages at the end (needs root)",
     read_reserve},
    {"--keep-priority", NULL, FOR_MEASURING, NULL, "do not lower the priority (nice, SCHED_BATCH)", read_keep_priority},
    {"--progress", "WHEN", FOR_MEASURING, "auto, always or never",
     "progress lines on standard error (default: auto, when it is a terminal)", read_progress},
    {"--row-bytes", "LIST", FOR_ROWS, "multiples of 8 from 16 to 1M, separated by commas, at most 16, none twice",
     "row widths (default: 128,8K,16K)", read_row_bytes},
    {"--workers", "LIST", FOR_ROWS, "1 to 1024, separated by commas, at most 16, none twice",
     "numbers of concurrent workers (default: those of the profile)", read_workers},
    {"--mode", "LIST", FOR_ROWS, "threads, processes, none twice", "kinds of workers (default: both)", read_modes},
    {"--keys", "LIST", FOR_ROWS, "uniform, zipf, none twice", "distributions of the keys (default: both)", read_keys},
    {"--read", "LIST", FOR_ROWS, "header, row, index_then_row, none twice", "what is read per row (default: all)",
     read_reads},
    {"--segment", "SIZE", FOR_ROWS, "1M to 64T, a whole number of bytes, K, M, G or T",
     "bytes of the shared segment (default: as large as allowed)", read_segment},
    {"--footprints", "LIST", FOR_LATENCY, "multiples of 64K up to 64T, separated by commas, at most 16, none twice",
     "footprints of the curves (default: those of the profile)", read_footprints},
    {"--curves", "LIST", FOR_LATENCY, "line_per_page, random_64b, packed, pressure, none twice",
     "what is measured (default: all)", read_curves},
    {"--root", "DIR", FOR(COMMAND_INFO), "a directory that holds proc and sys",
     "read a captured tree instead of the running system", read_root},
    {"--processes", NULL, FOR(COMMAND_INFO), NULL, "add the page use of every process", read_processes},
    {"--registers", NULL, FOR(COMMAND_INFO), NULL, "print only the CPUID registers, in the layout that decode reads",
     read_registers},
};

const size_t option_spec_count = sizeof(option_specs) / sizeof(option_specs[0]);
