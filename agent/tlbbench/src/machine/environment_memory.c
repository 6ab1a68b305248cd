/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/text.h"
#include "base/tree.h"
#include "machine/environment.h"
#include "machine/environment_parts.h"

#include <stdio.h>
#include <string.h>

/* The kernel prints "kB" and means 1024 bytes. */
#define KILOBYTE 1024

enum {
    MEMINFO_BYTES = 16384, /* /proc/meminfo is about 2 KiB; a node's is smaller */
    /* cgroup v1 prints "no limit" as the largest page-aligned number; nothing real is above this. */
    CGROUP_NO_LIMIT_SHIFT = 60,
};

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

bool colon_value(const char *text, const char *key, char *value, size_t size)
{
    size_t key_length = strlen(key);

    value[0] = '\0';
    for (const char *line = text; *line != '\0'; line = next_line(line)) {
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

void environment_clear_memory(struct environment *environment)
{
    environment->memory = (struct memory_state){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN,
                                                UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    environment->cgroup = (struct cgroup){UNKNOWN, UNKNOWN, UNKNOWN};
}

void environment_read_memory(struct environment *environment)
{
    struct memory_state *m = &environment->memory;
    struct thp *thp = &environment->thp;
    char text[MEMINFO_BYTES];

    environment_clear_memory(environment);
    if (tree_read(environment->root, "/proc/meminfo", text, sizeof(text)) >= 0)
        meminfo_parse(text, m);
    read_choice(environment, "enabled", thp->enabled, sizeof(thp->enabled));
    read_choice(environment, "defrag", thp->defrag, sizeof(thp->defrag));
    read_choice(environment, "shmem_enabled", thp->shmem_enabled, sizeof(thp->shmem_enabled));
    int64_t bytes = tree_read_number(environment->root, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");

    environment->thp_bytes = bytes > 0 ? (uint64_t)bytes : 0;
}

/* Lines of "N:controllers:path". */
void cgroup_parse(const char *text, struct cgroup_place *place)
{
    place->version = UNKNOWN;
    place->path[0] = '\0';
    for (const char *line = text; *line != '\0'; line = next_line(line)) {
        size_t length = strcspn(line, "\n");
        const char *first = memchr(line, ':', length);
        const char *second = first != NULL ? memchr(first + 1, ':', (size_t)(line + length - first) - 1) : NULL;

        if (second == NULL)
            continue;
        size_t controllers_length = (size_t)(second - first) - 1;
        size_t path_length = (size_t)(line + length - second) - 1;
        bool is_v1 = text_has_word(first + 1, controllers_length, ",", "memory", strlen("memory"));
        bool is_v2 = controllers_length == 0 && line[0] == '0';

        /* On a hybrid system the memory controller sits in a version 1 hierarchy: that one counts. */
        if ((is_v1 || (is_v2 && place->version != 1)) && path_length < sizeof(place->path)) {
            place->version = is_v1 ? 1 : 2;
            (void)snprintf(place->path, sizeof(place->path), "%.*s", (int)path_length, second + 1);
        }
    }
}

static void read_limit(struct environment *environment, const struct cgroup_place *place)
{
    const char *mount = place->version == 1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const char *limit_name = place->version == 1 ? "memory.limit_in_bytes" : "memory.max";
    const char *usage_name = place->version == 1 ? "memory.usage_in_bytes" : "memory.current";
    char path[sizeof(place->path) + 64]; /* tree_read refuses what is longer than a path may be */
    struct cgroup *cgroup = &environment->cgroup;

    (void)snprintf(path, sizeof(path), "%s%s/%s", mount, place->path, limit_name);
    int64_t limit = tree_read_number(environment->root, path);

    (void)snprintf(path, sizeof(path), "%s%s/%s", mount, place->path, usage_name);
    int64_t usage = tree_read_number(environment->root, path);

    if (limit >= INT64_C(1) << CGROUP_NO_LIMIT_SHIFT)
        limit = UNKNOWN;
    if (cgroup->memory_current_bytes == UNKNOWN)
        cgroup->memory_current_bytes = usage; /* the innermost group's, unless an outer limit is tighter */
    if (limit == UNKNOWN)
        return;
    int64_t headroom = limit - (usage == UNKNOWN ? 0 : usage);

    if (cgroup->memory_limit_bytes == UNKNOWN || headroom < cgroup->memory_limit_bytes - cgroup->memory_current_bytes) {
        cgroup->memory_limit_bytes = limit;
        cgroup->memory_current_bytes = usage;
    }
}

void environment_read_cgroup(struct environment *environment)
{
    struct cgroup_place place;
    char text[MEMINFO_BYTES];

    environment->cgroup = (struct cgroup){UNKNOWN, UNKNOWN, UNKNOWN};
    if (tree_read(environment->root, "/proc/self/cgroup", text, sizeof(text)) < 0)
        return;
    cgroup_parse(text, &place);
    environment->cgroup.version = place.version;
    if (place.version == UNKNOWN)
        return;
    /* "/.." stands for a group outside this cgroup namespace, whose files are not visible here. */
    if (strcmp(place.path, "/") == 0 || strstr(place.path, "/..") != NULL)
        place.path[0] = '\0';
    /* A limit anywhere above this group binds it too, and inside a container the path may start at the mount point. */
    for (;;) {
        read_limit(environment, &place);
        char *slash = strrchr(place.path, '/');

        if (slash == NULL)
            break;
        *slash = '\0';
    }
}

uint64_t cache_last_level_bytes(void)
{
    enum { CACHE_INDEXES = 8 };
    uint64_t bytes = 32u << 20;
    int64_t best = 0;

    for (int index = 0; index < CACHE_INDEXES; index++) {
        char directory[64];
        char path[96];
        char text[32];
        uint64_t size = 0;

        (void)snprintf(directory, sizeof(directory), "/sys/devices/system/cpu/cpu0/cache/index%d", index);
        (void)snprintf(path, sizeof(path), "%s/level", directory);
        int64_t level = tree_read_number("", path);

        (void)snprintf(path, sizeof(path), "%s/size", directory);
        if (!tree_read_line("", path, text, sizeof(text)) || !parse_size(text, &size))
            continue;
        (void)snprintf(path, sizeof(path), "%s/type", directory);
        (void)tree_read_line("", path, text, sizeof(text)); /* absent = not one of instructions */
        if (level > best && size > 0 && strcmp(text, "Instruction") != 0) {
            best = level;
            bytes = size;
        }
    }
    return bytes;
}
