/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <limits.h>

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

static void *member_of(const struct option_spec *spec, struct options *options)
{
    return (char *)options + spec->member;
}

static bool read_flag(const struct option_spec *spec, struct options *options, const char *text)
{
    (void)text;
    *(bool *)member_of(spec, options) = true;
    return true;
}

/* Index of the name; name_count when there is none such. */
static unsigned find_name(const struct option_spec *spec, const char *text)
{
    unsigned index = 0;

    while (index < spec->name_count && strcmp(text, spec->names[index]) != 0)
        index++;
    return index;
}

static bool read_choice(const struct option_spec *spec, struct options *options, const char *text)
{
    unsigned found = find_name(spec, text);

    *(unsigned *)member_of(spec, options) = found;
    return found < spec->name_count;
}

/* An item of a set of an enum's values; false when it is in the set already. */
static bool read_member(const struct option_spec *spec, struct options *options, const char *text)
{
    unsigned *set = member_of(spec, options);
    unsigned found = find_name(spec, text);
    bool is_first = found < spec->name_count && (*set & SET_BIT(found)) == 0;

    *set |= is_first ? SET_BIT(found) : 0;
    return is_first;
}

static bool read_size(const struct option_spec *spec, struct options *options, const char *text)
{
    uint64_t *bytes = member_of(spec, options);

    return parse_size(text, bytes) && *bytes >= spec->least && *bytes <= spec->most;
}

static bool read_seconds(const struct option_spec *spec, struct options *options, const char *value)
{
    double *seconds = member_of(spec, options);

    return parse_seconds(value, seconds) && *seconds >= MIN_TIME_LIMIT_SECONDS && *seconds <= MAX_TIME_LIMIT_SECONDS;
}

static bool read_cpus(const struct option_spec *spec, struct options *options, const char *value)
{
    (void)spec;
    return parse_cpu_list(value, &options->cpus) && options->cpus.count > 0;
}

static bool read_int(const struct option_spec *spec, struct options *options, const char *value)
{
    uint64_t number = 0;

    if (!parse_u64(value, &number) || number < spec->least || number > spec->most)
        return false;
    *(int *)member_of(spec, options) = (int)number;
    return true;
}

static bool read_seed(const struct option_spec *spec, struct options *options, const char *value)
{
    (void)spec;
    return parse_u64(value, &options->seed);
}

static bool read_text(const struct option_spec *spec, struct options *options, const char *value)
{
    *(const char **)member_of(spec, options) = value;
    return value[0] != '\0';
}

/* A number that the option allows, once; false when it is in the list already or there is no room. */
static bool add_number(const struct option_spec *spec, struct options *options, uint64_t number)
{
    struct number_list *list = member_of(spec, options);

    if (number < spec->least || number > spec->most || number_list_has(list, number) || list->count == NUMBER_LIST_MAX)
        return false;
    list->items[list->count++] = number;
    return true;
}

static bool read_count(const struct option_spec *spec, struct options *options, const char *item)
{
    uint64_t count = 0;

    return parse_u64(item, &count) && add_number(spec, options, count);
}

static bool read_width(const struct option_spec *spec, struct options *options, const char *item)
{
    uint64_t bytes = 0;

    return parse_size(item, &bytes) && bytes % 8 == 0 && add_number(spec, options, bytes);
}

static bool read_page_size(const struct option_spec *spec, struct options *options, const char *item)
{
    uint64_t bytes = 0;

    if (strcmp(item, "thp") == 0 || strcmp(item, "THP") == 0) {
        bool is_first = !options->thp;

        options->thp = true;
        return is_first;
    }
    return parse_size(item, &bytes) && (bytes & (bytes - 1)) == 0 && add_number(spec, options, bytes);
}

static bool read_footprint(const struct option_spec *spec, struct options *options, const char *item)
{
    struct number_list *list = member_of(spec, options);
    uint64_t bytes = 0;

    if (!parse_size(item, &bytes) || bytes % MIN_FOOTPRINT_BYTES != 0 || !add_number(spec, options, bytes))
        return false;
    for (size_t at = list->count - 1; at > 0 && list->items[at - 1] > bytes; at--) {
        list->items[at] = list->items[at - 1];
        list->items[at - 1] = bytes;
    }
    return true;
}

static const char *const PROFILES[] = {[PROFILE_QUICK] = "quick", [PROFILE_FULL] = "full"};
static const char *const PROGRESS[] = {
    [PROGRESS_AUTO] = "auto", [PROGRESS_ALWAYS] = "always", [PROGRESS_NEVER] = "never"};

#define MEMBER(of) .member = offsetof(struct options, of)
#define FLAG(of) .read = read_flag, MEMBER(of)
#define CHOICE(of, list, count) .read = read_choice, MEMBER(of), .names = (list), .name_count = (count)
#define SET(of, list, count) .read = read_member, .is_list = true, MEMBER(of), .names = (list), .name_count = (count)
#define BETWEEN(low, high) .least = (low), .most = (high)
#define SIZE(of, low, high) .read = read_size, MEMBER(of), BETWEEN(low, high)
#define WHOLE(reader) .read = (reader)
#define EACH(reader, of) .read = (reader), .is_list = true, MEMBER(of)

const struct option_spec option_specs[] = {
    {"--json", NULL, FOR_ALL, NULL, "print the JSON document (the default when standard output is no terminal)",
     FLAG(json)},
    {"--text", NULL, FOR_ALL, NULL, "print the readable report (the default on a terminal)", FLAG(text)},
    {"--profile", "NAME", FOR_MEASURING, "quick or full", "how much to measure (default: quick)",
     CHOICE(profile, PROFILES, 2)},
    {"--page-sizes", "LIST", FOR_MEASURING,
     "powers of two from 4K to 16G, and thp, separated by commas, at most 16, none twice",
     "page sizes to measure (default: all that the machine has)", EACH(read_page_size, page_sizes),
     BETWEEN(MIN_PAGE_BYTES, MAX_PAGE_BYTES)},
    {"--max-memory", "SIZE", FOR_MEASURING, "1M to 64T, a whole number of bytes, K, M, G or T",
     "most memory to use (default: 25 % of MemAvailable, less in a cgroup)",
     SIZE(max_memory_bytes, MIN_MEMORY_BYTES, MAX_MEMORY_BYTES)},
    {"--time-limit", "SECONDS", FOR_MEASURING, "0.1 to 3600", "stop measuring after this time", .read = read_seconds,
     MEMBER(time_limit_seconds)},
    {"--cpus", "LIST", FOR_MEASURING, "CPU numbers such as 0-3,8", "CPUs to measure on (default: those allowed)",
     WHOLE(read_cpus)},
    {"--numa-node", "N", FOR_MEASURING, "0 to 1023", "NUMA node to take memory from", .read = read_int,
     MEMBER(numa_node), BETWEEN(0, MAX_NUMA_NODE)},
    {"--seed", "N", FOR_MEASURING, "0 to 18446744073709551615", "seed of all random orders (default: 1)",
     WHOLE(read_seed)},
    {"--reserve", NULL, FOR_MEASURING, NULL,
     "reserve huge pages for the measurement and restore the previous nr_hugepages at the end (needs root)",
     FLAG(reserve)},
    {"--keep-priority", NULL, FOR_MEASURING, NULL, "do not lower the priority (nice, SCHED_BATCH)",
     FLAG(keep_priority)},
    {"--progress", "WHEN", FOR_MEASURING, "auto, always or never",
     "progress lines on standard error (default: auto, when it is a terminal)", CHOICE(progress, PROGRESS, 3)},
    {"--row-bytes", "LIST", FOR_ROWS, "multiples of 8 from 16 to 1M, separated by commas, at most 16, none twice",
     "row widths (default: 128,8K,16K)", EACH(read_width, rows.row_bytes), BETWEEN(MIN_ROW_BYTES, MAX_ROW_BYTES)},
    {"--workers", "LIST", FOR_ROWS, "1 to 1024, separated by commas, at most 16, none twice",
     "numbers of concurrent workers (default: those of the profile)", EACH(read_count, rows.workers),
     BETWEEN(1, MAX_WORKERS)},
    {"--mode", "LIST", FOR_ROWS, "threads, processes, none twice", "kinds of workers (default: both)",
     SET(rows.modes, ROW_MODE_NAMES, ROW_MODE_COUNT)},
    {"--keys", "LIST", FOR_ROWS, "uniform, zipf, none twice", "distributions of the keys (default: both)",
     SET(rows.keys, ROW_KEYS_NAMES, ROW_KEYS_COUNT)},
    {"--read", "LIST", FOR_ROWS, "header, row, index_then_row, none twice", "what is read per row (default: all)",
     SET(rows.reads, ROW_READ_NAMES, ROW_READ_COUNT)},
    {"--segment", "SIZE", FOR_ROWS, "1M to 64T, a whole number of bytes, K, M, G or T",
     "bytes of the shared segment (default: as large as allowed)",
     SIZE(rows.segment_bytes, MIN_MEMORY_BYTES, MAX_MEMORY_BYTES)},
    {"--footprints", "LIST", FOR_LATENCY, "multiples of 64K up to 64T, separated by commas, at most 16, none twice",
     "footprints of the curves (default: those of the profile)", EACH(read_footprint, latency.footprints),
     BETWEEN(MIN_FOOTPRINT_BYTES, MAX_MEMORY_BYTES)},
    {"--curves", "LIST", FOR_LATENCY, "line_per_page, random_64b, packed, pressure, walks, none twice",
     "what is measured (default: all)", SET(latency.curves, LATENCY_CURVE_NAMES, LATENCY_CURVE_COUNT)},
    {"--root", "DIR", FOR(COMMAND_INFO), "a directory that holds proc and sys",
     "read a captured tree instead of the running system", .read = read_text, MEMBER(root)},
    {"--pid", "N", FOR(COMMAND_COUNTERS), "the number of a running process",
     "count this process, its threads and descendants", .read = read_int, MEMBER(counters.pid), BETWEEN(1, INT_MAX)},
    {"--cgroup", "PATH", FOR(COMMAND_COUNTERS), "a directory below /sys/fs/cgroup", "count all of this control group",
     .read = read_text, MEMBER(counters.cgroup)},
    {"--seconds", "S", FOR(COMMAND_COUNTERS), "0.1 to 3600", "how long to count (default: 5)", .read = read_seconds,
     MEMBER(counters.seconds)},
    {"--processes", NULL, FOR(COMMAND_INFO), NULL, "add the page use of every process", FLAG(processes)},
    {"--registers", NULL, FOR(COMMAND_INFO), NULL, "print only the CPUID registers, in the layout that decode reads",
     FLAG(registers)},
};

const size_t option_spec_count = sizeof(option_specs) / sizeof(option_specs[0]);

/* Reads every item of a comma-separated list; false when one is refused or there are none. */
static bool read_list(const struct option_spec *spec, struct options *options, const char *value)
{
    char item[64];

    for (;;) {
        size_t length = strcspn(value, ",");

        if (length == 0 || length >= sizeof(item))
            return false;
        memcpy(item, value, length);
        item[length] = '\0';
        if (!spec->read(spec, options, item))
            return false;
        if (value[length] == '\0')
            return true;
        value += length + 1;
    }
}

bool option_read(const struct option_spec *spec, struct options *options, const char *value)
{
    return spec->is_list ? read_list(spec, options, value) : spec->read(spec, options, value);
}
