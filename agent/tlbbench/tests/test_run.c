/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a run, with their measurements replaced: what follows when one of them ends by SIGBUS. */
#include "base/signals.h"
#include "base/verdict.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "geometry/result.h"
#include "harness.h"
#include "latency/result.h"
#include "machine/environment.h"
#include "output/run_result.h"
#include "rows/result.h"
#include "scatter/scatter.h"
#include "timing/session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static char measured[8];  /* one letter per section */
static bool takes_memory; /* geometry does, and frees it */
static char *kept[64];
static char dies; /* the section that touches a page that is not there; 0 = none */

static int note(char section)
{
    measured[strlen(measured)] = section;
    if (section == dies)
        (void)raise(SIGBUS);
    return 0;
}

int __wrap_geometry_measure(struct session *session, struct geometry_result *result);
int __wrap_latency_measure(const struct session *session, const struct latency_request *request,
                           struct latency_result *result);
int __wrap_rows_measure(const struct session *session, const struct rows_request *request, struct rows_result *result);
int __wrap_scatter_measure(const struct session *session, struct scatter_result *result);

/* Blocks as sections take them, and one of each that stays. */
static void take_and_free(void)
{
    enum { BLOCKS = 64, LARGE_BYTES = 2 << 20, BLOCK_BYTES = 100 << 10, KEPT_BYTES = 512 };
    char *large = malloc(LARGE_BYTES);
    char *blocks[BLOCKS];

    memset(large, 1, LARGE_BYTES);
    free(large);
    for (size_t index = 0; index < BLOCKS; index++) {
        blocks[index] = malloc(BLOCK_BYTES);
        memset(blocks[index], 1, BLOCK_BYTES);
        kept[index] = malloc(KEPT_BYTES);
    }
    for (size_t index = 0; index < BLOCKS; index++)
        free(blocks[index]);
}

int __wrap_geometry_measure(struct session *session, struct geometry_result *result)
{
    (void)session;
    (void)result;
    if (takes_memory)
        take_and_free();
    return note('g');
}

int __wrap_latency_measure(const struct session *session, const struct latency_request *request,
                           struct latency_result *result)
{
    (void)session;
    (void)request;
    (void)result;
    return note('l');
}

int __wrap_rows_measure(const struct session *session, const struct rows_request *request, struct rows_result *result)
{
    (void)session;
    (void)request;
    (void)result;
    return note('r');
}

int __wrap_scatter_measure(const struct session *session, struct scatter_result *result)
{
    (void)session;
    (void)result;
    return note('s');
}

static void run(char dying, struct run_result *result)
{
    static struct environment environment = {.memory = {.mem_available_bytes = 8ll << 30},
                                             .cgroup = {.memory_limit_bytes = UNKNOWN}};
    static const struct options options = {.command = COMMAND_RUN,
                                           .numa_node = -1,
                                           .keep_priority = true,
                                           .latency = {.curves = SET_BIT(LAYOUT_LINE_PER_PAGE)}};

    memset(measured, 0, sizeof(measured));
    dies = dying;
    (void)run_measure(&options, &environment, NULL, result);
}

static void every_section_is_measured(struct harness *h)
{
    struct run_result result;

    run(0, &result);
    CHECK_TEXT(measured, "glrs");
    CHECK(result.exit_status == 0 && result.section_count == 4);
    run_result_free(&result);
}

static void nothing_is_measured_after_a_sigbus(struct harness *h)
{
    struct run_result result;

    run('l', &result);
    CHECK_TEXT(measured, "gl");
    CHECK(result.exit_status == 3 && result.section_count == 4);
    CHECK(result.sections[0].verdict.status == STATUS_OK);
    CHECK(result.sections[1].verdict.status == STATUS_SIGBUS);
    CHECK(result.sections[2].verdict.status == STATUS_STOPPED && result.sections[3].verdict.status == STATUS_STOPPED);
    CHECK(strstr(result.sections[3].verdict.reason, "SIGBUS") != NULL);
    run_result_free(&result);
}

static void freed_memory_goes_back(struct harness *h)
{
#if !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__) /* the sanitizer has an allocator of its own */
    struct run_result result;

    run(0, &result);
    uint64_t before = result.rss_outside_bytes;

    run_result_free(&result);
    takes_memory = true;
    run(0, &result);
    takes_memory = false;
    CHECK(before > 0 && result.rss_outside_bytes < before + (1 << 20));
    run_result_free(&result);
    for (size_t index = 0; index < sizeof(kept) / sizeof(kept[0]); index++)
        free(kept[index]);
#else
    (void)h;
    (void)kept;
    (void)takes_memory;
#endif
}

static const struct harness_case CASES[] = {
    {"memory that a section freed is not the next one's", freed_memory_goes_back},
    {"every section is measured", every_section_is_measured},
    {"nothing is measured after a SIGBUS", nothing_is_measured_after_a_sigbus},
};

int main(void)
{
    return signals_install() != 0 ? 1 : harness_run("run", CASES, sizeof(CASES) / sizeof(CASES[0]));
}
