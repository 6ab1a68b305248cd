/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "cli/options.h"
#include "harness.h"
#include "latency/result.h"
#include "machine/environment.h"
#include "rows/result.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 32 };

/* Splits the line at spaces and parses it; the texts stay in `line`. */
static enum options_status parse(struct options *options, char *line, char error[OPTIONS_ERROR_BYTES])
{
    static char program[] = "tlbbench";
    char *arguments[MOST_ARGUMENTS + 1] = {program};
    int count = 1;
    char *rest = NULL;

    for (char *word = strtok_r(line, " ", &rest); word != NULL && count < MOST_ARGUMENTS;
         word = strtok_r(NULL, " ", &rest))
        arguments[count++] = word;
    return options_parse(options, count, arguments, error);
}

static void defaults(struct harness *h)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];
    char line[] = "run";

    CHECK(parse(&options, line, error) == OPTIONS_OK);
    CHECK(options.command == COMMAND_RUN && options.profile == PROFILE_QUICK && !options.json && !options.text);
    CHECK_U64(options.seed, 1);
    CHECK_I64(options.numa_node, -1);
    CHECK(options_want_page_size(&options, 4096) && options_want_page_size(&options, UINT64_C(1) << 30));
    CHECK(options_want_thp(&options));
    CHECK_U64(options.rows.modes, SET_BIT(MODE_THREADS) | SET_BIT(MODE_PROCESSES));
    CHECK_U64(options.rows.keys, SET_BIT(KEYS_UNIFORM) | SET_BIT(KEYS_ZIPF));
    CHECK_U64(options.rows.reads, SET_BIT(READ_HEADER) | SET_BIT(READ_ROW) | SET_BIT(READ_INDEX_THEN_ROW));
    CHECK_U64(options.latency.curves, SET_BIT(LATENCY_CURVE_COUNT) - 1);
    CHECK_U64(options.latency.footprints.count, 0);
    CHECK(!options.reserve);
}

static void footprints_rise(struct harness *h)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];
    char line[] = "latency --footprints 4G,64K,96M,1M --curves pressure,random_64b";

    CHECK(parse(&options, line, error) == OPTIONS_OK);
    CHECK_U64(options.latency.footprints.count, 4);
    CHECK_U64(options.latency.footprints.items[0], UINT64_C(64) << 10);
    CHECK_U64(options.latency.footprints.items[1], UINT64_C(1) << 20);
    CHECK_U64(options.latency.footprints.items[2], UINT64_C(96) << 20);
    CHECK_U64(options.latency.footprints.items[3], UINT64_C(4) << 30);
    CHECK_U64(options.latency.curves, SET_BIT(LATENCY_PRESSURE) | SET_BIT(LAYOUT_RANDOM_64B));
}

static void values(struct harness *h)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];
    char line[] = "rows --page-sizes=4K,thp,2M --max-memory 1G --time-limit=2.5 --cpus 0,2-3 --seed 7 --row-bytes "
                  "128,8K --workers 1,128 --mode processes --read row,header";

    CHECK(parse(&options, line, error) == OPTIONS_OK);
    CHECK_TEXT(error, "");
    CHECK_U64(options.page_sizes.count, 2);
    CHECK(options_want_page_size(&options, UINT64_C(2) << 20) && !options_want_page_size(&options, UINT64_C(1) << 30));
    CHECK(options_want_thp(&options));
    CHECK_U64(options.max_memory_bytes, UINT64_C(1) << 30);
    CHECK_I64(options.cpus.count, 3);
    CHECK_U64(options.seed, 7);
    CHECK_U64(options.rows.row_bytes.count, 2);
    CHECK_U64(options.rows.row_bytes.items[1], 8192);
    CHECK_U64(options.rows.workers.items[1], 128);
    CHECK_U64(options.rows.modes, SET_BIT(MODE_PROCESSES));
    CHECK_U64(options.rows.reads, SET_BIT(READ_ROW) | SET_BIT(READ_HEADER));
}

static void only_thp(struct harness *h)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];
    char line[] = "latency --page-sizes thp";

    CHECK(parse(&options, line, error) == OPTIONS_OK);
    CHECK(options_want_thp(&options) && !options_want_page_size(&options, 4096));
}

static void errors_name_option_value_and_range(struct harness *h)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];
    char line[] = "run --max-memory 12Q";

    CHECK(parse(&options, line, error) == OPTIONS_ERROR);
    CHECK_TEXT(error, "--max-memory: '12Q' is not valid; valid: 1M to 64T, a whole number of bytes, K, M, G or T");
}

static void a_long_value_is_cut(struct harness *h)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];
    char line[1024] = "run --seed ";

    memset(line + strlen(line), 'x', 900);
    line[1000] = '\0';
    CHECK(parse(&options, line, error) == OPTIONS_ERROR);
    CHECK(strlen(error) < 150);
    CHECK(strstr(error, "18446744073709551615") != NULL);
}

/* A machine with 4K, 2M and THP, nodes 0 and 2, 16 GiB. */
static struct environment *machine(void)
{
    struct environment *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    e->base_page_bytes = 4096;
    e->pools[0].page_bytes = UINT64_C(2) << 20;
    e->pool_count = 1;
    (void)snprintf(e->thp.enabled, sizeof(e->thp.enabled), "never");
    e->nodes[0].id = 0;
    e->nodes[1].id = 2;
    e->node_count = 2;
    e->memory.mem_total_bytes = INT64_C(16) << 30;
    e->memory.mem_available_bytes = INT64_C(8) << 30;
    e->cgroup = (struct cgroup){.version = UNKNOWN, .memory_limit_bytes = UNKNOWN, .memory_current_bytes = UNKNOWN};
    return e;
}

static void against_the_machine(struct harness *h)
{
    static const struct {
        const char *line;
        const char *complaint; /* NULL = fine */
    } tries[] = {
        {"run", NULL},
        {"run --page-sizes 4K,2M,thp --numa-node 2 --max-memory 16G", NULL},
        {"run --page-sizes 1G", "--page-sizes: this machine has no 1G pages; valid: 4K, thp, 2M"},
        {"run --page-sizes 64K", "--page-sizes: this machine has no 64K pages; valid: 4K, thp, 2M"},
        {"run --numa-node 1", "--numa-node: node 1 is not online; valid: 0, 2"},
        {"run --max-memory 17G",
         "--max-memory: 18253611008 bytes are more than this machine has; valid: 1M to 17179869184"},
        {"rows --segment 2G --max-memory 1G",
         "--segment: 2147483648 bytes do not fit the memory allowed; valid: 1M to 1073741824"},
        {"rows --row-bytes 64K --segment 2M",
         "--row-bytes: rows of 65536 bytes do not fit a segment of 2097152 bytes 64 times; valid: 16 to 32768"},
        {"rows --row-bytes 32K --segment 2M", NULL},
        {"latency --footprints 64K,1G --max-memory 1G", NULL},
        {"latency --footprints 64K,2G --max-memory 1G",
         "--footprints: 2147483648 bytes do not fit the memory allowed; valid: 64K to 1073741824"},
        {"latency --footprints 32G",
         "--footprints: 34359738368 bytes do not fit the memory allowed; valid: 64K to 17179869184"},
    };
    struct environment *e = machine();

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct options options;
        char error[OPTIONS_ERROR_BYTES];
        char line[256];

        (void)snprintf(line, sizeof(line), "%s", tries[i].line);
        CHECK(parse(&options, line, error) == OPTIONS_OK);
        if (tries[i].complaint == NULL) {
            CHECK(options_check(&options, e, error) == OPTIONS_OK);
        } else {
            CHECK(options_check(&options, e, error) == OPTIONS_ERROR);
            CHECK_TEXT(error, tries[i].complaint);
        }
    }
    free(e);
}

static const struct harness_case cases[] = {
    {"defaults", defaults},
    {"values", values},
    {"footprints rise", footprints_rise},
    {"only THP", only_thp},
    {"errors name option, value and range", errors_name_option_value_and_range},
    {"a long value is cut", a_long_value_is_cut},
    {"options against the machine", against_the_machine},
};

HARNESS_MAIN("options", cases)
