/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"
#include "timing/cpus.h"

#include <stdarg.h>

#define DEFAULT_SEED 1
#define DEFAULT_COUNTERS_SECONDS 5.0

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
    [COMMAND_COUNTERS] = {"counters", "", "page walks of a running program, as the processor counts them"},
    [COMMAND_DECODE] = {"decode", "FILE",
                        "TLB geometry from a CPUID register dump in text form ('-' = standard input)"},
    [COMMAND_RUN] = {"run", "", "all of the measurements in one document"},
};

const char *command_name(enum command_id command)
{
    return commands[command].name;
}

/* Writes the error's line. Returns OPTIONS_ERROR. */
__attribute__((format(printf, 2, 3))) static enum options_status options_fail(char error[OPTIONS_ERROR_BYTES],
                                                                              const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error, OPTIONS_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return OPTIONS_ERROR;
}

static enum options_status fail(char error[OPTIONS_ERROR_BYTES], const char *option, const char *value,
                                const char *range)
{
    return options_fail(error, "%s: '%.64s' is not valid; valid: %s", option, value, range);
}

static enum options_status fail_command(char error[OPTIONS_ERROR_BYTES], const char *value)
{
    char names[OPTIONS_ERROR_BYTES / 2] = "";

    for (int i = 0; i < COMMAND_COUNT; i++)
        text_append(names, sizeof(names), "%s%s", i > 0 ? ", " : "", commands[i].name);
    return fail(error, "command", value, names);
}

static const struct option_spec *find_spec(const char *text, size_t length)
{
    for (size_t i = 0; i < option_spec_count; i++)
        if (strlen(option_specs[i].name) == length && memcmp(option_specs[i].name, text, length) == 0)
            return &option_specs[i];
    return NULL;
}

/* Options that ask for different output. */
static const char *const EXCLUSIVE[][2] = {{"--json", "--text"},
                                           {"--registers", "--json"},
                                           {"--registers", "--text"},
                                           {"--registers", "--processes"},
                                           {"--pid", "--cgroup"}};

static bool is_given(uint64_t given, const char *name)
{
    const struct option_spec *spec = find_spec(name, strlen(name));

    return spec != NULL && (given >> (unsigned)(spec - option_specs) & 1) != 0;
}

/* Notes that an option was given. One value too many is a slip of the finger: which one is meant is not guessed. */
static enum options_status note_given(uint64_t *given, const struct option_spec *spec, char error[OPTIONS_ERROR_BYTES])
{
    if (spec->value != NULL && is_given(*given, spec->name))
        return options_fail(error, "%s: given more than once; valid: once, %s", spec->name, spec->range);
    *given |= UINT64_C(1) << (unsigned)(spec - option_specs);
    for (size_t i = 0; i < sizeof(EXCLUSIVE) / sizeof(EXCLUSIVE[0]); i++)
        if (is_given(*given, EXCLUSIVE[i][0]) && is_given(*given, EXCLUSIVE[i][1]))
            return options_fail(error, "%s: not together with %s; valid: one of the two", EXCLUSIVE[i][0],
                                EXCLUSIVE[i][1]);
    return OPTIONS_OK;
}

static enum options_status read_option(struct options *options, int argc, char **argv, int *index, uint64_t *given,
                                       char error[OPTIONS_ERROR_BYTES])
{
    const char *text = argv[*index];
    size_t length = strcspn(text, "=");
    const struct option_spec *spec = find_spec(text, length);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;

    if (spec == NULL)
        return options_fail(error, "%.64s: unknown option; valid: those that 'tlbbench --help' lists", text);
    if ((spec->commands & FOR(options->command)) == 0)
        return options_fail(error, "%s: not an option of '%s'; valid: those that 'tlbbench --help' lists for it",
                            spec->name, commands[options->command].name);
    if (note_given(given, spec, error) != OPTIONS_OK)
        return OPTIONS_ERROR;
    if (spec->value == NULL)
        return value == NULL && option_read(spec, options, "") ? OPTIONS_OK
                                                               : fail(error, spec->name, value, "no value");
    if (value == NULL) {
        if (*index + 1 >= argc)
            return fail(error, spec->name, "", spec->range);
        value = argv[++*index];
    }
    return option_read(spec, options, value) ? OPTIONS_OK : fail(error, spec->name, value, spec->range);
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
    memset(options, 0, sizeof(*options));
    options->numa_node = -1;
    options->seed = DEFAULT_SEED;
    options->root = "";
    options->counters.seconds = DEFAULT_COUNTERS_SECONDS;
}

/* A list that was not given stands for all. */
static void complete(struct options *options)
{
    unsigned *sets[] = {&options->rows.modes, &options->rows.keys, &options->rows.reads, &options->latency.curves};
    static const unsigned counts[] = {ROW_MODE_COUNT, ROW_KEYS_COUNT, ROW_READ_COUNT, LATENCY_CURVE_COUNT};

    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        *sets[i] = *sets[i] == 0 ? SET_BIT(counts[i]) - 1 : *sets[i];
}

enum options_status options_parse(struct options *options, int argc, char **argv, char error[OPTIONS_ERROR_BYTES])
{
    uint64_t given = 0; /* a bit for each option */

    set_defaults(options);
    error[0] = '\0';
    if (argc < 2)
        return fail_command(error, "");
    enum options_status status = read_command(options, argv[1], error);

    for (int i = 2; status == OPTIONS_OK && i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return OPTIONS_HELP;
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            status = read_option(options, argc, argv, &i, &given, error);
        else if (options->command == COMMAND_DECODE && options->file == NULL)
            options->file = argv[i];
        else
            status = fail(error, "argument", argv[i], "options only");
    }
    if (status == OPTIONS_OK && options->command == COMMAND_DECODE && options->file == NULL)
        status = fail(error, "decode FILE", "", "the path of a CPUID register dump, or - for standard input");
    if (status == OPTIONS_OK && options->command == COMMAND_COUNTERS && options->counters.pid == 0 &&
        options->counters.cgroup == NULL)
        status = fail(error, "counters", "", "--pid N or --cgroup PATH");
    complete(options);
    return status;
}

bool options_want_page_size(const struct options *options, uint64_t page_bytes)
{
    return options->page_sizes.count == 0 ? !options->thp : number_list_has(&options->page_sizes, page_bytes);
}

bool options_want_thp(const struct options *options)
{
    return options->thp || options->page_sizes.count == 0;
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

        (void)snprintf(usage, sizeof(usage), "%s %s", commands[i].name, commands[i].arguments);
        (void)fprintf(out, "  %-12s %s\n", usage, commands[i].summary);
    }
    (void)fputs("\noptions:\n", out);
    for (size_t i = 0; i < option_spec_count; i++) {
        const struct option_spec *spec = &option_specs[i];
        char usage[40];

        (void)snprintf(usage, sizeof(usage), "%s%s%s", spec->name, spec->value != NULL ? " " : "",
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

/* --- what only the machine can tell ------------------------------------------------------------------------------- */

static enum options_status check_page_sizes(const struct options *options, const struct environment *environment,
                                            char error[OPTIONS_ERROR_BYTES])
{
    char page[PAGE_TEXT_BYTES];
    char valid[OPTIONS_ERROR_BYTES / 2];
    bool has_thp = environment->thp.enabled[0] != '\0';

    (void)snprintf(valid, sizeof(valid), "%s%s", page_text(environment->base_page_bytes, page), has_thp ? ", thp" : "");
    for (size_t i = 0; i < environment->pool_count; i++)
        text_append(valid, sizeof(valid), ", %s", page_text(environment->pools[i].page_bytes, page));
    if (options->thp && !has_thp)
        return options_fail(error, "--page-sizes: this kernel has no transparent huge pages; valid: %s", valid);
    for (size_t i = 0; i < options->page_sizes.count; i++) {
        uint64_t bytes = options->page_sizes.items[i];

        if (bytes != environment->base_page_bytes && environment_pool(environment, bytes) == NULL)
            return options_fail(error, "--page-sizes: this machine has no %s pages; valid: %s", page_text(bytes, page),
                                valid);
    }
    return OPTIONS_OK;
}

static enum options_status check_numa_node(const struct options *options, const struct environment *environment,
                                           char error[OPTIONS_ERROR_BYTES])
{
    char valid[OPTIONS_ERROR_BYTES / 2] = "";

    if (options->numa_node < 0 || (environment->node_count == 0 && options->numa_node == 0))
        return OPTIONS_OK;
    for (size_t i = 0; i < environment->node_count; i++) {
        if (environment->nodes[i].id == options->numa_node)
            return OPTIONS_OK;
        text_append(valid, sizeof(valid), "%s%d", i > 0 ? ", " : "", environment->nodes[i].id);
    }
    return options_fail(error, "--numa-node: node %d is not online; valid: %s", options->numa_node,
                        valid[0] != '\0' ? valid : "0");
}

static enum options_status check_cpus(const struct options *options, char error[OPTIONS_ERROR_BYTES])
{
    struct cpu_list allowed;
    int first = -1;
    int last = -1;

    if (options->cpus.count == 0 || cpus_get_affinity(&allowed) != 0)
        return OPTIONS_OK;
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        if (cpu_list_has(&allowed, cpu)) {
            first = first < 0 ? cpu : first;
            last = cpu;
        }
    }
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        if (cpu_list_has(&options->cpus, cpu) && !cpu_list_has(&allowed, cpu))
            return options_fail(error,
                                "--cpus: CPU %d is not online or not allowed; valid: CPUs allowed between %d and %d",
                                cpu, first, last);
    return OPTIONS_OK;
}

/* Against what may be used at most: what is free by then is the document's to say. */
static enum options_status check_sizes(const struct options *options, const struct environment *environment,
                                       char error[OPTIONS_ERROR_BYTES])
{
    int64_t total = environment->memory.mem_total_bytes;
    uint64_t limit = options->max_memory_bytes;
    uint64_t most = limit != 0 ? limit : total > 0 ? (uint64_t)total : UINT64_MAX;
    uint64_t segment = options->rows.segment_bytes != 0 ? options->rows.segment_bytes : limit;
    uint64_t widest = number_list_largest(&options->rows.row_bytes);
    uint64_t largest = number_list_largest(&options->latency.footprints);

    if (total > 0 && limit > (uint64_t)total)
        return options_fail(error,
                            "--max-memory: %" PRIu64 " bytes are more than this machine has; valid: 1M to %" PRId64,
                            limit, total);
    if (options->rows.segment_bytes > most)
        return options_fail(error, "--segment: %" PRIu64 " bytes do not fit the memory allowed; valid: 1M to %" PRIu64,
                            options->rows.segment_bytes, most);
    if (largest > most)
        return options_fail(error,
                            "--footprints: %" PRIu64 " bytes do not fit the memory allowed; valid: 64K to %" PRIu64,
                            largest, most);
    if (segment != 0 && widest > segment / ROWS_MIN)
        return options_fail(error,
                            "--row-bytes: rows of %" PRIu64 " bytes do not fit a segment of %" PRIu64
                            " bytes %d times; valid: 16 to %" PRIu64,
                            widest, segment, ROWS_MIN, segment / ROWS_MIN);
    return OPTIONS_OK;
}

enum options_status options_check(const struct options *options, const struct environment *environment,
                                  char error[OPTIONS_ERROR_BYTES])
{
    if (check_page_sizes(options, environment, error) != OPTIONS_OK ||
        check_numa_node(options, environment, error) != OPTIONS_OK || check_cpus(options, error) != OPTIONS_OK)
        return OPTIONS_ERROR;
    return check_sizes(options, environment, error);
}
