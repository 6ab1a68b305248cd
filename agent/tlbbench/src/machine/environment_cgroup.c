/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the control groups of this process leave it: memory, huge pages of each size, and processor time. A limit
 * anywhere above the group binds it too, and inside a container the path may start at the mount point, so the walk goes
 * from the innermost group to the mount and keeps the tightest limit. Files: Documentation/admin-guide/cgroup-v2.rst
 * and cgroup-v1/{memory,hugetlb}.rst of the kernel.
 */
#include "base/text.h"
#include "base/tree.h"
#include "base/units.h"
#include "machine/environment_parts.h"

enum {
    CGROUP_TEXT_BYTES = 16384,
    /* Version 1 prints "no limit" as the largest page-aligned number; nothing real is above this. */
    NO_LIMIT_SHIFT = 60,
    NAME_BYTES = 64,
};

/* Lines of "N:controllers:path". */
void cgroup_parse(const char *text, const char *controller, struct cgroup_place *place)
{
    place->version = UNKNOWN;
    place->path[0] = '\0';
    for (const char *line = text; *line != '\0'; line = text_next_line(line)) {
        size_t length = strcspn(line, "\n");
        const char *first = memchr(line, ':', length);
        const char *second = first != NULL ? memchr(first + 1, ':', (size_t)(line + length - first) - 1) : NULL;

        if (second == NULL)
            continue;
        size_t controllers_length = (size_t)(second - first) - 1;
        size_t path_length = (size_t)(line + length - second) - 1;
        bool is_v1 = text_has_word(first + 1, controllers_length, ",", controller, strlen(controller));
        bool is_v2 = controllers_length == 0 && line[0] == '0';

        /* On a hybrid system the controller may sit in a version 1 hierarchy: that one counts. */
        if ((is_v1 || (is_v2 && place->version != 1)) && path_length < sizeof(place->path)) {
            place->version = is_v1 ? 1 : 2;
            (void)snprintf(place->path, sizeof(place->path), "%.*s", (int)path_length, second + 1);
        }
    }
}

/* A limit and what is used of it, by the files' names in one version. */
struct limit_files {
    int version;
    const char *limit, *usage;
};

/* The tightest limit on the way up: the one that leaves least. */
struct tightest {
    int64_t limit_bytes, current_bytes;
    char name[NAME_BYTES];
};

static int64_t read_number(const struct environment *environment, const struct cgroup_place *place,
                           const char *controller, const char *file)
{
    char path[sizeof(place->path) + (size_t)2 * NAME_BYTES]; /* tree_read refuses what is longer than a path may be */

    (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s%s/%s", place->version == 1 ? "/" : "",
                   place->version == 1 ? controller : "", place->path, file);
    return tree_read_number(environment->root, path);
}

static void tighten(const struct environment *environment, const struct cgroup_place *place, const char *controller,
                    const struct limit_files *files, struct tightest *tightest)
{
    int64_t limit = read_number(environment, place, controller, files->limit);
    int64_t usage = read_number(environment, place, controller, files->usage);

    if (limit >= INT64_C(1) << NO_LIMIT_SHIFT)
        limit = UNKNOWN;
    if (tightest->current_bytes == UNKNOWN)
        tightest->current_bytes = usage; /* the innermost group's, unless an outer limit is tighter */
    if (limit == UNKNOWN)
        return;
    int64_t left = limit - (usage == UNKNOWN ? 0 : usage);

    if (tightest->limit_bytes == UNKNOWN || left < tightest->limit_bytes - tightest->current_bytes) {
        tightest->limit_bytes = limit;
        tightest->current_bytes = usage;
        (void)snprintf(tightest->name, sizeof(tightest->name), "%s", files->limit);
    }
}

/* Makes the path that of the group above; false at the mount point. */
static bool go_up(struct cgroup_place *place)
{
    char *slash = strrchr(place->path, '/');

    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

/* Where the controller accounts this process; false when it does not. */
static bool find_place(const char *text, const char *controller, struct cgroup_place *place)
{
    cgroup_parse(text, controller, place);
    /* "/.." stands for a group outside this cgroup namespace, whose files are not visible here. */
    if (strcmp(place->path, "/") == 0 || strstr(place->path, "/..") != NULL)
        place->path[0] = '\0';
    return place->version != UNKNOWN;
}

static void read_memory(struct environment *environment, const char *text)
{
    static const struct limit_files FILES[] = {{1, "memory.limit_in_bytes", "memory.usage_in_bytes"},
                                               {2, "memory.max", "memory.current"},
                                               {2, "memory.high", "memory.current"}};
    struct tightest tightest = {UNKNOWN, UNKNOWN, ""};
    struct cgroup_place place;

    if (!find_place(text, "memory", &place))
        return;
    environment->cgroup.version = place.version;
    do {
        for (size_t index = 0; index < sizeof(FILES) / sizeof(FILES[0]); index++)
            if (FILES[index].version == place.version)
                tighten(environment, &place, "memory", &FILES[index], &tightest);
    } while (go_up(&place));
    environment->cgroup.memory_limit_bytes = tightest.limit_bytes;
    environment->cgroup.memory_current_bytes = tightest.current_bytes;
    (void)snprintf(environment->cgroup.memory_limit_name, sizeof(environment->cgroup.memory_limit_name), "%.31s",
                   tightest.name);
}

/* "2MB", "1GB", "64KB": the page size in the names of hugetlb files. */
static void hugetlb_name(uint64_t page_bytes, char name[24])
{
    bool is_giga = page_bytes >= GIB;
    bool is_mega = page_bytes >= MIB;

    (void)snprintf(name, 24, "%llu%s",
                   (unsigned long long)(page_bytes / (is_giga   ? GIB
                                                      : is_mega ? MIB
                                                                : 1024)),
                   is_giga   ? "GB"
                   : is_mega ? "MB"
                             : "KB");
}

/* Pages are charged when they are touched and, with "rsvd", when they are mapped: both limits bind. */
static void read_hugetlb(struct environment *environment, const char *text, struct pool *pool)
{
    static const struct limit_files FILES[] = {{1, "limit_in_bytes", "usage_in_bytes"},
                                               {1, "rsvd.limit_in_bytes", "rsvd.usage_in_bytes"},
                                               {2, "max", "current"},
                                               {2, "rsvd.max", "rsvd.current"}};
    struct cgroup_place place;
    char size[24];

    if (!find_place(text, "hugetlb", &place))
        return;
    hugetlb_name(pool->page_bytes, size);
    do {
        for (size_t index = 0; index < sizeof(FILES) / sizeof(FILES[0]); index++) {
            struct tightest tightest = {UNKNOWN, UNKNOWN, ""};
            char limit[NAME_BYTES], usage[NAME_BYTES];

            (void)snprintf(limit, sizeof(limit), "hugetlb.%s.%s", size, FILES[index].limit);
            (void)snprintf(usage, sizeof(usage), "hugetlb.%s.%s", size, FILES[index].usage);
            struct limit_files files = {FILES[index].version, limit, usage};

            if (files.version == place.version)
                tighten(environment, &place, "hugetlb", &files, &tightest);
            if (tightest.limit_bytes == UNKNOWN)
                continue;
            int64_t left = tightest.limit_bytes - (tightest.current_bytes > 0 ? tightest.current_bytes : 0);

            left = left > 0 ? left : 0;
            if (pool->cgroup_left_bytes == UNKNOWN || left < pool->cgroup_left_bytes)
                pool->cgroup_left_bytes = left;
        }
    } while (go_up(&place));
}

double cgroup_cpu_max_parse(const char *text)
{
    char *end;
    double quota = strtod(text, &end); /* "max 100000" has no number first */
    double period = end != text ? strtod(end, NULL) : 0;

    return quota > 0 && period > 0 ? quota / period : NAN;
}

static void read_cpu(struct environment *environment, const char *text)
{
    struct cgroup *cgroup = &environment->cgroup;
    struct cgroup_place place;

    if (!find_place(text, "cpu", &place))
        return;
    do {
        char path[sizeof(place.path) + NAME_BYTES];
        char line[NAME_BYTES];
        double cpus = NAN;

        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", place.path);
        if (place.version == 1) {
            int64_t quota = read_number(environment, &place, "cpu", "cpu.cfs_quota_us"); /* -1 = none */
            int64_t period = read_number(environment, &place, "cpu", "cpu.cfs_period_us");

            cpus = quota > 0 && period > 0 ? (double)quota / (double)period : NAN;
        } else if (tree_read_line(environment->root, path, line, sizeof(line))) {
            cpus = cgroup_cpu_max_parse(line);
        }
        if (!isnan(cpus) && !(cgroup->cpu_quota <= cpus))
            cgroup->cpu_quota = cpus;
    } while (go_up(&place));
}

void environment_read_cgroup(struct environment *environment)
{
    char text[CGROUP_TEXT_BYTES];

    if (tree_read(environment->root, "/proc/self/cgroup", text, sizeof(text)) < 0)
        return;
    read_memory(environment, text);
    read_cpu(environment, text);
    for (size_t index = 0; index < environment->pool_count; index++)
        read_hugetlb(environment, text, &environment->pools[index]);
}
