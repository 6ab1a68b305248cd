/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/tree.h"
#include "machine/environment.h"
#include "machine/environment_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_MEMINFO_BYTES = 8192 };

uint64_t pool_directory_bytes(const char *name)
{
    static const char prefix[] = "hugepages-";
    char digits[24];
    uint64_t kilobytes = 0;

    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return 0;
    name += sizeof(prefix) - 1;
    size_t length = strspn(name, "0123456789");

    (void)snprintf(digits, sizeof(digits), "%.*s", (int)length, name);
    if (length >= sizeof(digits) || strcmp(name + length, "kB") != 0 || !parse_u64(digits, &kilobytes) ||
        kilobytes > UINT64_MAX / 1024)
        return 0;
    return kilobytes * 1024;
}

static void add_pool(const char *name, void *context)
{
    struct environment *environment = context;
    uint64_t bytes = pool_directory_bytes(name);

    if (bytes == 0 || environment->pool_count == ENV_MAX_PAGE_SIZES)
        return;
    struct pool *pool = &environment->pools[environment->pool_count++];

    memset(pool, 0, sizeof(*pool));
    pool->page_bytes = bytes;
}

static int by_size(const void *a, const void *b)
{
    const struct pool *x = a;
    const struct pool *y = b;

    return (x->page_bytes > y->page_bytes) - (x->page_bytes < y->page_bytes);
}

static int64_t pool_number(const struct environment *environment, int node, uint64_t page_bytes, const char *file)
{
    char path[POOL_PATH_BYTES];

    pool_path("/sys", node, page_bytes, file, path);
    return tree_read_number(environment->root, path);
}

static void read_pool(const struct environment *environment, struct pool *pool)
{
    pool->nr = pool_number(environment, -1, pool->page_bytes, "nr_hugepages");
    pool->free = pool_number(environment, -1, pool->page_bytes, "free_hugepages");
    pool->reserved = pool_number(environment, -1, pool->page_bytes, "resv_hugepages");
    pool->surplus = pool_number(environment, -1, pool->page_bytes, "surplus_hugepages");
    pool->overcommit = pool_number(environment, -1, pool->page_bytes, "nr_overcommit_hugepages");
    for (size_t i = 0; i < environment->node_count; i++) {
        struct pool_node *node = &pool->numa[pool->numa_count];

        node->node = environment->nodes[i].id;
        node->nr = pool_number(environment, node->node, pool->page_bytes, "nr_hugepages");
        node->free = pool_number(environment, node->node, pool->page_bytes, "free_hugepages");
        node->surplus = pool_number(environment, node->node, pool->page_bytes, "surplus_hugepages");
        if (node->nr != UNKNOWN)
            pool->numa_count++;
    }
}

void environment_read_pools(struct environment *environment)
{
    char text[NODE_MEMINFO_BYTES];

    environment->pool_count = 0;
    environment->default_huge_bytes = 0;
    (void)tree_list(environment->root, "/sys/kernel/mm/hugepages", add_pool, environment);
    qsort(environment->pools, environment->pool_count, sizeof(environment->pools[0]), by_size);
    for (size_t i = 0; i < environment->pool_count; i++)
        read_pool(environment, &environment->pools[i]);
    if (environment->pool_count > 0 && tree_read(environment->root, "/proc/meminfo", text, sizeof(text)) >= 0) {
        int64_t bytes = colon_kilobytes(text, "Hugepagesize");

        environment->default_huge_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    }
}

void node_meminfo_parse(const char *text, struct numa_node *node)
{
    char key[48];

    (void)snprintf(key, sizeof(key), "Node %d MemTotal", node->id);
    node->mem_total_bytes = colon_kilobytes(text, key);
    (void)snprintf(key, sizeof(key), "Node %d MemFree", node->id);
    node->mem_free_bytes = colon_kilobytes(text, key);
}

static void read_node(const struct environment *environment, struct numa_node *node)
{
    char path[128];
    char text[NODE_MEMINFO_BYTES];

    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node->id);
    (void)tree_read_line(environment->root, path, node->cpus, sizeof(node->cpus));
    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node->id);
    node->mem_total_bytes = UNKNOWN;
    node->mem_free_bytes = UNKNOWN;
    if (tree_read(environment->root, path, text, sizeof(text)) >= 0)
        node_meminfo_parse(text, node);
}

void environment_read_nodes(struct environment *environment)
{
    char text[1024];
    struct cpu_list online;

    environment->node_count = 0;
    environment->numa_truncated = false;
    if (!tree_read_line(environment->root, "/sys/devices/system/node/online", text, sizeof(text)) ||
        !parse_cpu_list(text, &online))
        return; /* a kernel without NUMA */
    for (int id = 0; id < CPU_LIST_MAX; id++) {
        if (!cpu_list_has(&online, id))
            continue;
        if (environment->node_count == ENV_MAX_NODES) {
            environment->numa_truncated = true;
            return;
        }
        struct numa_node *node = &environment->nodes[environment->node_count++];

        memset(node, 0, sizeof(*node));
        node->id = id;
        read_node(environment, node);
    }
}
