/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the control groups of this process leave it: memory, huge pages of each size, and processor time. A limit
 * anywhere above the group binds it too, and inside a container the path may start at the mount point, so the walk goes
 * from the innermost group to the mount and keeps the tightest limit. Files: Documentation/admin-guide/cgroup-v2.rst
 * and cgroup-v1/{memory,hugetlb}.rst of the kernel.
 */
#include "base/tree.h"
#include "machine/environment.h"

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

static int64_t read_number(const struct environment *environment, const struct cgroup_place *place,
                           const char *controller, const char *file)
{
    char path[sizeof(place->path) + (size_t)2 * NAME_BYTES]; /* tree_read refuses what is longer than a path may be */

    (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s%s/%s", place->version == 1 ? "/" : "",
                   place->version == 1 ? controller : "", place->path, file);
    return tree_read_number(environment->root, path);
}

struct limit {
    int64_t bytes, usage_bytes; /* as the files say */
    int64_t left_bytes;         /* INT64_MAX = no limit */
};

static struct limit read_limit(const struct environment *environment, const struct cgroup_place *place,
                               const char *controller, const struct limit_files *files)
{
    struct limit limit = {.bytes = read_number(environment, place, controller, files->limit),
                          .usage_bytes = read_number(environment, place, controller, files->usage),
                          .left_bytes = INT64_MAX};

    if (limit.bytes != UNKNOWN && limit.bytes < INT64_C(1) << NO_LIMIT_SHIFT)
        limit.left_bytes = limit.bytes - (limit.usage_bytes > 0 ? limit.usage_bytes : 0);
    return limit;
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
    struct cgroup *cgroup = &environment->cgroup;
    int64_t least = INT64_MAX;
    struct cgroup_place place;

    if (!find_place(text, "memory", &place))
        return;
    cgroup->version = place.version;
    do {
        for (size_t index = 0; index < sizeof(FILES) / sizeof(FILES[0]); index++) {
            if (FILES[index].version != place.version)
                continue;
            struct limit limit = read_limit(environment, &place, "memory", &FILES[index]);

            /* The innermost group's usage, unless an outer limit is tighter. */
            if (limit.left_bytes < least || cgroup->memory_current_bytes == UNKNOWN)
                cgroup->memory_current_bytes = limit.usage_bytes;
            if (limit.left_bytes >= least)
                continue;
            least = limit.left_bytes;
            cgroup->memory_limit_bytes = limit.bytes;
            (void)snprintf(cgroup->memory_limit_name, sizeof(cgroup->memory_limit_name), "%s", FILES[index].limit);
        }
    } while (go_up(&place));
}

/* Pages are charged when they are touched and, with "rsvd", when they are mapped: both limits bind. */
static void read_hugetlb(struct environment *environment, const char *text, struct pool *pool)
{
    static const struct limit_files FILES[] = {{1, "limit_in_bytes", "usage_in_bytes"},
                                               {1, "rsvd.limit_in_bytes", "rsvd.usage_in_bytes"},
                                               {2, "max", "current"},
                                               {2, "rsvd.max", "rsvd.current"}};
    struct cgroup_place place;
    char size[PAGE_TEXT_BYTES];

    if (!find_place(text, "hugetlb", &place))
        return;
    (void)page_text(pool->page_bytes, size);
    do {
        for (size_t index = 0; index < sizeof(FILES) / sizeof(FILES[0]); index++) {
            char limit_name[NAME_BYTES], usage_name[NAME_BYTES];

            if (FILES[index].version != place.version)
                continue;
            (void)snprintf(limit_name, sizeof(limit_name), "hugetlb.%sB.%s", size, FILES[index].limit);
            (void)snprintf(usage_name, sizeof(usage_name), "hugetlb.%sB.%s", size, FILES[index].usage);
            struct limit_files files = {place.version, limit_name, usage_name};
            int64_t left = read_limit(environment, &place, "hugetlb", &files).left_bytes;

            if (left != INT64_MAX && (pool->cgroup_left_bytes == UNKNOWN || left < pool->cgroup_left_bytes))
                pool->cgroup_left_bytes = left > 0 ? left : 0;
        }
    } while (go_up(&place));
}

/* cpu.max of version 2, "50000 100000" or "max 100000": CPUs; NAN = no quota. */
static double parse_cpu_max(const char *text)
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
            cpus = parse_cpu_max(line);
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
