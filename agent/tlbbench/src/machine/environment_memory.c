/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"
#include "machine/environment.h"

/* The kernel prints "kB" and means 1024 bytes. */
#define KILOBYTE 1024

enum {
    MEMINFO_BYTES = 16384, /* /proc/meminfo is about 2 KiB; a node's is smaller */
};

bool colon_value(const char *text, const char *key, char *value, size_t size)
{
    size_t key_length = strlen(key);

    value[0] = '\0';
    for (const char *line = text; *line != '\0'; line = text_next_line(line)) {
        if (strncmp(line, key, key_length) != 0)
            continue;
        const char *colon = line + key_length + strspn(line + key_length, " \t");

        if (*colon != ':')
            continue;
        const char *start = colon + 1 + strspn(colon + 1, " \t");

        (void)snprintf(value, size, "%.*s", (int)strcspn(start, "\n"), start);
        text_clean(value);
        return true;
    }
    return false;
}

int64_t colon_kilobytes(const char *text, const char *key)
{
    char value[64];
    uint64_t kilobytes = 0;

    if (!colon_value(text, key, value, sizeof(value)))
        return UNKNOWN;
    value[strcspn(value, " \t")] = '\0';
    if (!parse_u64(value, &kilobytes) || kilobytes > INT64_MAX / KILOBYTE)
        return UNKNOWN;
    return (int64_t)kilobytes * KILOBYTE;
}

void meminfo_parse(const char *text, struct memory_state *memory)
{
    const struct {
        const char *key;
        int64_t *bytes;
    } fields[] = {
        {"MemTotal", &memory->mem_total_bytes},
        {"MemFree", &memory->mem_free_bytes},
        {"MemAvailable", &memory->mem_available_bytes},
        {"PageTables", &memory->page_tables_bytes},
        {"AnonHugePages", &memory->anon_huge_pages_bytes},
        {"ShmemHugePages", &memory->shmem_huge_pages_bytes},
        {"FileHugePages", &memory->file_huge_pages_bytes},
        {"Hugetlb", &memory->hugetlb_bytes},
        {"DirectMap4k", &memory->direct_map_4k_bytes},
        {"DirectMap2M", &memory->direct_map_2m_bytes},
        {"DirectMap1G", &memory->direct_map_1g_bytes},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        int64_t bytes = colon_kilobytes(text, fields[i].key);

        if (bytes != UNKNOWN)
            *fields[i].bytes = bytes;
    }
}

void bracketed_choice(const char *text, char *choice, size_t size)
{
    const char *open = strchr(text, '[');
    const char *close = open != NULL ? strchr(open, ']') : NULL;

    choice[0] = '\0';
    if (close == NULL)
        return;
    (void)snprintf(choice, size, "%.*s", (int)(close - open) - 1, open + 1);
    text_clean(choice);
}

static void read_choice(const struct environment *environment, const char *name, char *choice, size_t size)
{
    char path[128];
    char text[256];

    (void)snprintf(path, sizeof(path), "/sys/kernel/mm/transparent_hugepage/%s", name);
    choice[0] = '\0';
    if (tree_read(environment->root, path, text, sizeof(text)) >= 0)
        bracketed_choice(text, choice, size);
}

/* Pools and multi-size THP begin with their page_bytes. */
static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void add_multi_size(const char *name, void *context)
{
    struct environment *environment = context;
    uint64_t bytes = pool_directory_bytes(name);
    char file[64];

    if (bytes == 0 || bytes >= environment->thp_bytes || environment->multi_size_count == ENV_MAX_PAGE_SIZES)
        return;
    struct multi_size_thp *size = &environment->multi_size[environment->multi_size_count++];

    size->page_bytes = bytes;
    (void)snprintf(file, sizeof(file), "%.40s/enabled", name);
    read_choice(environment, file, size->enabled, sizeof(size->enabled));
    if (size->enabled[0] == '\0')
        environment->multi_size_count--; /* of shared memory alone */
}

bool environment_grants_multi_size(const struct environment *environment, const struct multi_size_thp *size)
{
    const char *enabled = strcmp(size->enabled, "inherit") == 0 ? environment->thp.enabled : size->enabled;

    return strcmp(enabled, "always") == 0 || strcmp(enabled, "madvise") == 0;
}

void environment_read_memory(struct environment *environment)
{
    struct memory_state *m = &environment->memory;
    struct thp *thp = &environment->thp;
    char text[MEMINFO_BYTES];

    if (tree_read(environment->root, "/proc/meminfo", text, sizeof(text)) >= 0) {
        int64_t huge_bytes = colon_kilobytes(text, "Hugepagesize");

        meminfo_parse(text, m);
        environment->default_huge_bytes = environment->pool_count > 0 && huge_bytes > 0 ? (uint64_t)huge_bytes : 0;
    }
    read_choice(environment, "enabled", thp->enabled, sizeof(thp->enabled));
    read_choice(environment, "defrag", thp->defrag, sizeof(thp->defrag));
    read_choice(environment, "shmem_enabled", thp->shmem_enabled, sizeof(thp->shmem_enabled));
    int64_t bytes = tree_read_number(environment->root, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");

    environment->thp_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    environment->multi_size_count = 0;
    (void)tree_list(environment->root, "/sys/kernel/mm/transparent_hugepage", add_multi_size, environment);
    qsort(environment->multi_size, environment->multi_size_count, sizeof(environment->multi_size[0]), by_size);
}

/* --- pools and NUMA nodes ----------------------------------------------------------------------------------------- */

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
    pool->cgroup_left_bytes = UNKNOWN;
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
    environment->pool_count = 0;
    (void)tree_list(environment->root, "/sys/kernel/mm/hugepages", add_pool, environment);
    qsort(environment->pools, environment->pool_count, sizeof(environment->pools[0]), by_size);
    for (size_t i = 0; i < environment->pool_count; i++)
        read_pool(environment, &environment->pools[i]);
}

void node_meminfo_parse(const char *text, struct numa_node *node)
{
    /* What MemAvailable counts beside free memory; kernels before 4.20 have no KReclaimable. */
    static const char *const RECLAIMABLE[] = {"Active(file)", "Inactive(file)", "SReclaimable"};
    char key[48];

    (void)snprintf(key, sizeof(key), "Node %d MemTotal", node->id);
    node->mem_total_bytes = colon_kilobytes(text, key);
    (void)snprintf(key, sizeof(key), "Node %d MemFree", node->id);
    node->mem_free_bytes = colon_kilobytes(text, key);
    node->mem_reclaimable_bytes = UNKNOWN;
    for (size_t index = 0; index < sizeof(RECLAIMABLE) / sizeof(RECLAIMABLE[0]); index++) {
        (void)snprintf(key, sizeof(key), "Node %d %s", node->id, RECLAIMABLE[index]);
        int64_t bytes = colon_kilobytes(text, key);

        if (bytes != UNKNOWN)
            node->mem_reclaimable_bytes =
                bytes + (node->mem_reclaimable_bytes == UNKNOWN ? 0 : node->mem_reclaimable_bytes);
    }
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
    node->mem_reclaimable_bytes = UNKNOWN;
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

int64_t environment_node_available_bytes(const struct environment *environment, int node)
{
    for (size_t index = 0; index < environment->node_count; index++) {
        const struct numa_node *found = &environment->nodes[index];

        if (found->id == node && found->mem_free_bytes != UNKNOWN)
            return found->mem_free_bytes + (found->mem_reclaimable_bytes > 0 ? found->mem_reclaimable_bytes / 2 : 0);
    }
    return UNKNOWN;
}

bool environment_cpus_of_node(const struct environment *environment, int node, struct cpu_list *cpus)
{
    for (size_t index = 0; index < environment->node_count; index++)
        if (environment->nodes[index].id == node)
            return parse_cpu_list(environment->nodes[index].cpus, cpus) && cpus->count > 0;
    return false;
}

int environment_node_of_cpu(const struct environment *environment, int cpu)
{
    struct cpu_list cpus;

    for (size_t index = 0; index < environment->node_count; index++) {
        int node = environment->nodes[index].id;

        if (environment_cpus_of_node(environment, node, &cpus) && cpu_list_has(&cpus, cpu))
            return node;
    }
    return UNKNOWN;
}
