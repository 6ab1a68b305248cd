/* SPDX-License-Identifier: Apache-2.0 */
#include "counters/targets.h"

#include "base/text.h"
#include "base/tree.h"
#include "machine/processes.h"

#include <fcntl.h>
#include <limits.h>

enum { STAT_BYTES = 1024, PATH_BYTES = 4096 };

struct reading {
    struct count_targets *targets;
    struct count_parent *parents;
    size_t parent_count;
    bool out_of_memory;
};

static bool add(struct count_targets *targets, int pid, int cpu)
{
    struct count_target *items = realloc(targets->items, (targets->count + 1) * sizeof(*items));

    if (items == NULL)
        return false;
    targets->items = items;
    items[targets->count++] = (struct count_target){pid, cpu};
    return true;
}

/* "PID (NAME) STATE PARENT ...": the name may hold anything, its last parenthesis ends it (proc(5)). */
static void add_parent(const char *name, void *context)
{
    struct reading *reading = context;
    struct count_parent found = {0};
    char path[64];
    char text[STAT_BYTES];

    if (!process_number(name, &found.pid))
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", found.pid);
    const char *end = tree_read("", path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

    if (end == NULL || strlen(end) < 4)
        return;
    found.parent = (int)strtol(end + 4, NULL, 10);
    struct count_parent *parents = realloc(reading->parents, (reading->parent_count + 1) * sizeof(*parents));

    if (parents == NULL) {
        reading->out_of_memory = true;
        return;
    }
    reading->parents = parents;
    parents[reading->parent_count++] = found;
}

static void add_thread(const char *name, void *context)
{
    struct reading *reading = context;
    int thread = 0;

    if (process_number(name, &thread) && !add(reading->targets, thread, -1))
        reading->out_of_memory = true;
}

static int by_parent(const void *one, const void *other)
{
    int a = ((const struct count_parent *)one)->parent, b = ((const struct count_parent *)other)->parent;

    return (a > b) - (a < b);
}

void targets_mark(struct count_parent *all, size_t count, int pid)
{
    size_t queued = 0;

    qsort(all, count, sizeof(*all), by_parent);
    for (size_t i = 0; i < count; i++) {
        all[i].is_wanted = all[i].pid == pid;
        if (all[i].is_wanted)
            all[queued++].queued = pid;
    }
    for (size_t done = 0; done < queued; done++) {
        struct count_parent wanted = {.parent = all[done].queued};
        struct count_parent *child = bsearch(&wanted, all, count, sizeof(*all), by_parent);

        while (child != NULL && child > all && child[-1].parent == wanted.parent)
            child--;
        for (; child != NULL && child < all + count && child->parent == wanted.parent; child++) {
            if (!child->is_wanted)
                all[queued++].queued = child->pid;
            child->is_wanted = true;
        }
    }
}

/* All threads are listed before any is counted: what a counted thread starts later is counted with it, and must not
 * be opened a second time. A thread that starts between the two is missed. */
static void read_threads(int pid, struct count_targets *targets, struct verdict *verdict)
{
    struct reading reading = {.targets = targets};

    (void)tree_list("", "/proc", add_parent, &reading);
    if (reading.parent_count > 0)
        targets_mark(reading.parents, reading.parent_count, pid);
    for (size_t i = 0; i < reading.parent_count; i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/task", reading.parents[i].pid);
        if (reading.parents[i].is_wanted)
            (void)tree_list("", path, add_thread, &reading);
    }
    free(reading.parents);
    if (reading.out_of_memory)
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the list of threads");
    else if (targets->count == 0)
        verdict_set(verdict, STATUS_FAILED, "--pid: there is no process %d", pid);
}

static void read_cgroup(const char *cgroup, struct count_targets *targets, struct verdict *verdict)
{
    static const char MOUNT[] = "/sys/fs/cgroup";
    char path[PATH_BYTES];
    char online[PATH_BYTES];
    struct cpu_list cpus;

    /* A container sees the machine's tree elsewhere, such as /host/sys/fs/cgroup. */
    (void)snprintf(path, sizeof(path), "%s%s%s", strstr(cgroup, MOUNT) != NULL ? "" : MOUNT,
                   cgroup[0] == '/' ? "" : "/", cgroup);
    targets->cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (targets->cgroup_fd < 0) {
        verdict_set(verdict, STATUS_FAILED, "--cgroup: '%.80s' cannot be opened: %s", path, strerror(errno));
        return;
    }
    if (!tree_read_line("", "/sys/devices/system/cpu/online", online, sizeof(online)) ||
        !parse_cpu_list(online, &cpus)) {
        verdict_set(verdict, STATUS_FAILED, "/sys/devices/system/cpu/online cannot be read");
        return;
    }
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        if (cpu_list_has(&cpus, cpu) && !add(targets, targets->cgroup_fd, cpu))
            verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the list of CPUs");
}

void targets_read(const struct counters_request *request, struct count_targets *targets, struct verdict *verdict)
{
    *targets = (struct count_targets){.cgroup_fd = -1};
    if (request->pid != 0)
        read_threads(request->pid, targets, verdict);
    else
        read_cgroup(request->cgroup, targets, verdict);
}

void targets_free(struct count_targets *targets)
{
    free(targets->items);
    if (targets->cgroup_fd >= 0)
        (void)close(targets->cgroup_fd);
    *targets = (struct count_targets){.cgroup_fd = -1};
}
