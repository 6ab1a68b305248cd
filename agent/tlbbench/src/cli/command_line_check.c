/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/text.h"
#include "cli/options.h"
#include "machine/environment.h"
#include "rows/result.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static enum options_status check_cpus(const struct options *options, const struct environment *environment,
                                      char error[OPTIONS_ERROR_BYTES])
{
    cpu_set_t allowed;
    int first = -1;
    int last = -1;

    (void)environment;
    if (options->cpus.count == 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return OPTIONS_OK;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            first = first < 0 ? (int)cpu : first;
            last = (int)cpu;
        }
    }
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        if (cpu_list_has(&options->cpus, cpu) && (cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &allowed)))
            return options_fail(error,
                                "--cpus: CPU %d is not online or not allowed; valid: CPUs allowed between %d and %d",
                                cpu, first, last);
    return OPTIONS_OK;
}

/* What may be used at most: what is free by then is the document's to say. 0 = not known. */
static uint64_t most_bytes(const struct options *options, const struct environment *environment)
{
    int64_t total = environment->memory.mem_total_bytes;

    return options->max_memory_bytes != 0 ? options->max_memory_bytes : total > 0 ? (uint64_t)total : 0;
}

static enum options_status check_memory(const struct options *options, const struct environment *environment,
                                        char error[OPTIONS_ERROR_BYTES])
{
    int64_t total = environment->memory.mem_total_bytes;
    uint64_t most = most_bytes(options, environment);

    if (total > 0 && options->max_memory_bytes > (uint64_t)total)
        return options_fail(error,
                            "--max-memory: %" PRIu64 " bytes are more than this machine has; valid: 1M to %" PRId64,
                            options->max_memory_bytes, total);
    if (most > 0 && options->rows.segment_bytes > most)
        return options_fail(error, "--segment: %" PRIu64 " bytes do not fit the memory allowed; valid: 1M to %" PRIu64,
                            options->rows.segment_bytes, most);
    return OPTIONS_OK;
}

static enum options_status check_footprints(const struct options *options, const struct environment *environment,
                                            char error[OPTIONS_ERROR_BYTES])
{
    uint64_t most = most_bytes(options, environment);
    uint64_t largest = number_list_largest(&options->latency.footprints);

    if (most > 0 && largest > most)
        return options_fail(error,
                            "--footprints: %" PRIu64 " bytes do not fit the memory allowed; valid: 64K to %" PRIu64,
                            largest, most);
    return OPTIONS_OK;
}

static enum options_status check_rows(const struct options *options, const struct environment *environment,
                                      char error[OPTIONS_ERROR_BYTES])
{
    uint64_t segment = options->rows.segment_bytes != 0 ? options->rows.segment_bytes : options->max_memory_bytes;
    uint64_t widest = number_list_largest(&options->rows.row_bytes);

    (void)environment;
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
    static enum options_status (*const checks[])(const struct options *, const struct environment *, char *) = {
        check_page_sizes, check_numa_node, check_cpus, check_memory, check_footprints, check_rows};
    enum options_status status = OPTIONS_OK;

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && status == OPTIONS_OK; i++)
        status = checks[i](options, environment, error);
    return status;
}

enum options_status options_check_root(const struct options *options, char error[OPTIONS_ERROR_BYTES])
{
    struct stat status;

    if (options->root[0] == '\0' || (stat(options->root, &status) == 0 && S_ISDIR(status.st_mode)))
        return OPTIONS_OK;
    return options_fail(error, "--root: '%.200s' is not a directory; valid: a directory that holds proc and sys",
                        options->root);
}
