/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits that no machine of today reaches; they stop a slip of the finger, not a use. */
#define MAX_TIME_LIMIT_SECONDS 3600.0
#define MIN_TIME_LIMIT_SECONDS 0.1
#define MIN_MEMORY_BYTES (UINT64_C(1) << 20) /* below this no ladder of pages fits */
#define MAX_MEMORY_BYTES (UINT64_C(1) << 46)
#define MIN_PAGE_BYTES UINT64_C(4096)
#define MAX_PAGE_BYTES (UINT64_C(16) << 30) /* POWER's 16 GiB page */
#define MIN_ROW_BYTES UINT64_C(16)          /* a key and a pointer */
#define MAX_ROW_BYTES (UINT64_C(1) << 20)
#define MAX_WORKERS 1024
#define MAX_NUMA_NODE 1023 /* MAX_NUMNODES of Linux is 1 << 10 */

#define DEFAULT_SEED 1

#define FOR(command) (1u << (unsigned)(command))
#define FOR_MEASURING                                                                                                  \
    (FOR(COMMAND_GEOMETRY) | FOR(COMMAND_LATENCY) | FOR(COMMAND_ROWS) | FOR(COMMAND_SCATTER) | FOR(COMMAND_RUN))
#define FOR_ROWS (FOR(COMMAND_ROWS) | FOR(COMMAND_RUN))
#define FOR_ALL (FOR_MEASURING | FOR(COMMAND_INFO) | FOR(COMMAND_DECODE))

struct command {
    const char *name;
    const char *arguments;
    const char *summary;
};

static const struct command commands[COMMAND_COUNT] = {
    [COMMAND_INFO] = {"info", "", "processor, hypervisor, page sizes, pools, THP, TLBs as CPUID and the catalogue say"},
    [COMMAND_GEOMETRY] = {"geometry", "", "measure entries and ways of the TLBs, the effective page size, penalties"},
    [COMMAND_LATENCY] = {"latency", "", "ns per access over footprint for every page size, paired"},
    [COMMAND_ROWS] = {"rows", "", "row reads per second from shared memory by threads and by processes"},
    [COMMAND_SCATTER] = {"scatter", "", "few hot lines over a wide range: where large TLB entries run out"},
    [COMMAND_DECODE] = {"decode", "FILE",
                        "TLB geometry from a CPUID register dump in text form ('-' = standard input)"},
    [COMMAND_RUN] = {"run", "", "all of the measurements in one document"},
};

struct option_spec {
    const char *name;
    const char *value; /* NULL = a flag */
    unsigned commands;
    const char *range; /* the valid values, for the error message and the help */
    const char *help;
    bool (*read)(struct options *options, const char *value);
};

/* Calls `read` for every item of a comma-separated list; false when one is refused or there are none. */
static bool read_list(struct options *options, const char *value, bool (*read)(struct options *, const char *))
{
    char item[64];

    for (;;) {
        size_t length = strcspn(value, ",");

        if (length == 0 || length >= sizeof item)
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
        options->thp = true;
        return true;
    }
    if (!parse_size(item, &bytes) || bytes < MIN_PAGE_BYTES || bytes > MAX_PAGE_BYTES || (bytes & (bytes - 1)) != 0)
        return false;
    if (options->page_size_count == OPTIONS_MAX_LIST)
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

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
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
    if (options->row_bytes_count == OPTIONS_MAX_LIST)
        return false;
    options->row_bytes[options->row_bytes_count++] = bytes;
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
    if (options->workers_count == OPTIONS_MAX_LIST)
        return false;
    options->workers[options->workers_count++] = (unsigned)workers;
    return true;
}

static bool read_workers(struct options *options, const char *value)
{
    return read_list(options, value, read_worker_count);
}

/* Adds the bit of the name found in `names`; false when it is not there. */
static bool add_named(unsigned *set, const char *const *names, size_t count, const char *item)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(item, names[i]) == 0) {
            *set |= OPTION_BIT(i);
            return true;
        }
    }
    return false;
}

static bool read_mode(struct options *options, const char *item)
{
    const char *const names[] = {row_mode_name(MODE_THREADS), row_mode_name(MODE_PROCESSES)};

    return add_named(&options->modes, names, sizeof names / sizeof names[0], item);
}

static bool read_modes(struct options *options, const char *value)
{
    return read_list(options, value, read_mode);
}

static bool read_key(struct options *options, const char *item)
{
    const char *const names[] = {row_keys_name(KEYS_UNIFORM), row_keys_name(KEYS_ZIPF)};

    return add_named(&options->keys, names, sizeof names / sizeof names[0], item);
}

static bool read_keys(struct options *options, const char *value)
{
    return read_list(options, value, read_key);
}

static bool read_read(struct options *options, const char *item)
{
    const char *const names[] = {row_read_name(READ_HEADER), row_read_name(READ_ROW),
                                 row_read_name(READ_INDEX_THEN_ROW)};

    return add_named(&options->reads, names, sizeof names / sizeof names[0], item);
}

static bool read_reads(struct options *options, const char *value)
{
    return read_list(options, value, read_read);
}

static bool read_segment(struct options *options, const char *value)
{
    return parse_size(value, &options->segment_bytes) && options->segment_bytes >= MIN_MEMORY_BYTES &&
           options->segment_bytes <= MAX_MEMORY_BYTES;
}

static const struct option_spec option_specs[] = {
    {"--json", NULL, FOR_ALL, NULL, "print the JSON document (the default when standard output is no terminal)",
     read_json},
    {"--text", NULL, FOR_ALL, NULL, "print the readable report (the default on a terminal)", read_text},
    {"--profile", "NAME", FOR_MEASURING, "quick or full", "how much to measure (default: quick)", read_profile},
    {"--page-sizes", "LIST", FOR_MEASURING, "powers of two from 4K to 16G, and thp, separated by commas, at most 16",
     "page sizes to measure (default: all that the machine has)", read_page_sizes},
    {"--max-memory", "SIZE", FOR_MEASURING, "1M to 64T",
     "most memory to use (default: 25 % of MemAvailable, less in a cgroup)", read_max_memory},
    {"--time-limit", "SECONDS", FOR_MEASURING, "0.1 to 3600", "stop measuring after this time", read_time_limit},
    {"--cpus", "LIST", FOR_MEASURING, "CPU numbers such as 0-3,8", "CPUs to measure on (default: those allowed)",
     read_cpus},
    {"--numa-node", "N", FOR_MEASURING, "0 to 1023", "NUMA node to take memory from", read_numa_node},
    {"--seed", "N", FOR_MEASURING, "0 to 18446744073709551615", "seed of all random orders (default: 1)", read_seed},
    {"--reserve", NULL, FOR_MEASURING, NULL,
     "reserve huge pages for the measurement and give the former counts back at the end (needs root)", read_reserve},
    {"--keep-priority", NULL, FOR_MEASURING, NULL, "do not lower the priority (nice, SCHED_BATCH)", read_keep_priority},
    {"--progress", "WHEN", FOR_MEASURING, "auto, always or never",
     "progress lines on standard error (default: auto, when it is a terminal)", read_progress},
    {"--row-bytes", "LIST", FOR_ROWS, "multiples of 8 from 16 to 1M, separated by commas, at most 16",
     "row widths (default: 128,8K,16K)", read_row_bytes},
    {"--workers", "LIST", FOR_ROWS, "1 to 1024, separated by commas, at most 16",
     "numbers of concurrent workers (default: the profile's ladder)", read_workers},
    {"--mode", "LIST", FOR_ROWS, "threads, processes", "kinds of workers (default: both)", read_modes},
    {"--keys", "LIST", FOR_ROWS, "uniform, zipf", "distributions of the keys (default: both)", read_keys},
    {"--read", "LIST", FOR_ROWS, "header, row, index_then_row", "what is read of a row (default: all)", read_reads},
    {"--segment", "SIZE", FOR_ROWS, "1M to 64T", "bytes of the shared segment (default: as large as allowed)",
     read_segment},
    {"--root", "DIR", FOR(COMMAND_INFO), "a directory that holds proc and sys",
     "read a captured tree instead of the running system", read_root},
    {"--processes", NULL, FOR(COMMAND_INFO), NULL, "add the page use of every process", read_processes},
    {"--registers", NULL, FOR(COMMAND_INFO), NULL, "print only the CPUID registers, in the layout that decode reads",
     read_registers},
};

enum { OPTION_SPECS = sizeof option_specs / sizeof option_specs[0] };

const char *command_name(enum command_id command)
{
    return commands[command].name;
}

static enum options_status fail(char error[OPTIONS_ERROR_BYTES], const char *option, const char *value,
                                const char *range)
{
    (void)snprintf(error, OPTIONS_ERROR_BYTES, "%s: '%.64s' is not valid; valid: %s", option, value, range);
    return OPTIONS_ERROR;
}

static enum options_status fail_command(char error[OPTIONS_ERROR_BYTES], const char *value)
{
    char names[OPTIONS_ERROR_BYTES / 2] = "";
    size_t used = 0;

    for (int i = 0; i < COMMAND_COUNT; i++) {
        int n = snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", commands[i].name);

        used += n > 0 ? (size_t)n : 0;
    }
    return fail(error, "command", value, names);
}

/* Finds the spec whose name is `text` up to an optional '='. */
static const struct option_spec *find_spec(const char *text, size_t length)
{
    for (size_t i = 0; i < OPTION_SPECS; i++)
        if (strlen(option_specs[i].name) == length && memcmp(option_specs[i].name, text, length) == 0)
            return &option_specs[i];
    return NULL;
}

static enum options_status read_option(struct options *options, int argc, char **argv, int *index,
                                       char error[OPTIONS_ERROR_BYTES])
{
    const char *text = argv[*index];
    size_t length = strcspn(text, "=");
    const struct option_spec *spec = find_spec(text, length);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;

    if (spec == NULL) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "%.64s: unknown option; valid: those that 'tlbbench --help' lists",
                       text);
        return OPTIONS_ERROR;
    }
    if ((spec->commands & FOR(options->command)) == 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES,
                       "%s: not an option of '%s'; valid: those that 'tlbbench --help' lists for it", spec->name,
                       commands[options->command].name);
        return OPTIONS_ERROR;
    }
    if (spec->value == NULL)
        return value == NULL && spec->read(options, "") ? OPTIONS_OK : fail(error, spec->name, value, "no value");
    if (value == NULL) {
        if (*index + 1 >= argc)
            return fail(error, spec->name, "", spec->range);
        value = argv[++*index];
    }
    return spec->read(options, value) ? OPTIONS_OK : fail(error, spec->name, value, spec->range);
}

static enum options_status read_command(struct options *options, const char *text, char error[OPTIONS_ERROR_BYTES])
{
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0 || strcmp(text, "help") == 0)
        return OPTIONS_HELP;
    if (strcmp(text, "--version") == 0)
        return OPTIONS_VERSION;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(text, commands[i].name) == 0) {
            options->command = (enum command_id)i;
            return OPTIONS_OK;
        }
    }
    return fail_command(error, text);
}

static void set_defaults(struct options *options)
{
    memset(options, 0, sizeof *options);
    options->numa_node = -1;
    options->seed = DEFAULT_SEED;
    options->root = "";
}

static void complete(struct options *options)
{
    if (options->modes == 0)
        options->modes = OPTION_BIT(MODE_THREADS) | OPTION_BIT(MODE_PROCESSES);
    if (options->keys == 0)
        options->keys = OPTION_BIT(KEYS_UNIFORM) | OPTION_BIT(KEYS_ZIPF);
    if (options->reads == 0)
        options->reads = OPTION_BIT(READ_HEADER) | OPTION_BIT(READ_ROW) | OPTION_BIT(READ_INDEX_THEN_ROW);
}

enum options_status options_parse(struct options *options, int argc, char **argv, char error[OPTIONS_ERROR_BYTES])
{
    set_defaults(options);
    error[0] = '\0';
    if (argc < 2)
        return fail_command(error, "");
    enum options_status status = read_command(options, argv[1], error);

    for (int i = 2; status == OPTIONS_OK && i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return OPTIONS_HELP;
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            status = read_option(options, argc, argv, &i, error);
        else if (options->command == COMMAND_DECODE && options->file == NULL)
            options->file = argv[i];
        else
            status = fail(error, "argument", argv[i], "options only");
    }
    if (status == OPTIONS_OK && options->command == COMMAND_DECODE && options->file == NULL)
        status = fail(error, "decode FILE", "", "the path of a CPUID register dump, or - for standard input");
    complete(options);
    return status;
}

bool options_want_page_size(const struct options *options, uint64_t page_bytes)
{
    if (options->page_size_count == 0)
        return !options->thp;
    for (size_t i = 0; i < options->page_size_count; i++)
        if (options->page_sizes[i] == page_bytes)
            return true;
    return false;
}

bool options_want_thp(const struct options *options)
{
    return options->thp || options->page_size_count == 0;
}

static void print_commands_of(FILE *out, unsigned mask)
{
    if (mask == FOR_ALL || mask == FOR_MEASURING)
        return;
    (void)fputs(" [", out);
    for (int i = 0, first = 1; i < COMMAND_COUNT; i++) {
        if ((mask & FOR(i)) != 0) {
            (void)fprintf(out, "%s%s", first ? "" : ", ", commands[i].name);
            first = 0;
        }
    }
    (void)fputs(" only]", out);
}

void options_print_help(FILE *out)
{
    (void)fputs("usage: tlbbench COMMAND [OPTION]...\n\ncommands:\n", out);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        char usage[32];

        (void)snprintf(usage, sizeof usage, "%s %s", commands[i].name, commands[i].arguments);
        (void)fprintf(out, "  %-12s %s\n", usage, commands[i].summary);
    }
    (void)fputs("\noptions:\n", out);
    for (size_t i = 0; i < OPTION_SPECS; i++) {
        const struct option_spec *spec = &option_specs[i];
        char usage[40];

        (void)snprintf(usage, sizeof usage, "%s%s%s", spec->name, spec->value != NULL ? " " : "",
                       spec->value != NULL ? spec->value : "");
        (void)fprintf(out, "  %-22s %s", usage, spec->help);
        if (spec->range != NULL)
            (void)fprintf(out, "; valid: %s", spec->range);
        print_commands_of(out, spec->commands);
        (void)fputc('\n', out);
    }
    (void)fputs("  --version              print the version\n  --help                 print this text\n\n"
                "exit status: 0 done, 1 failed, 2 usage, 3 partial: a section was skipped or stopped, the document is\n"
                "valid and says why\n",
                out);
}
