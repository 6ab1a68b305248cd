/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/processes.h"

#include "base/tree.h"
#include "machine/environment.h"

#include <limits.h>

enum { PROC_FILE_BYTES = 8192 /* status and smaps_rollup are below 2 KiB */ };

static int64_t sum_known(int64_t a, int64_t b)
{
    if (a == UNKNOWN)
        return b;
    if (b == UNKNOWN)
        return a;
    return a > INT64_MAX - b ? UNKNOWN : a + b; /* no memory is so large: what a tree claims there is not known */
}

void process_status_parse(const char *text, struct process_pages *process)
{
    (void)colon_value(text, "Name", process->name, sizeof(process->name));
    process->rss_bytes = colon_kilobytes(text, "VmRSS");
    process->page_tables_bytes = colon_kilobytes(text, "VmPTE");
    process->hugetlb_bytes = colon_kilobytes(text, "HugetlbPages");
    process->is_kernel_thread = colon_kilobytes(text, "VmSize") == UNKNOWN;
}

void process_smaps_rollup_parse(const char *text, struct process_pages *process)
{
    int64_t hugetlb = sum_known(colon_kilobytes(text, "Shared_Hugetlb"), colon_kilobytes(text, "Private_Hugetlb"));

    process->pss_bytes = colon_kilobytes(text, "Pss");
    process->anon_huge_pages_bytes = colon_kilobytes(text, "AnonHugePages");
    process->shmem_pmd_mapped_bytes = colon_kilobytes(text, "ShmemPmdMapped");
    process->file_pmd_mapped_bytes = colon_kilobytes(text, "FilePmdMapped");
    if (hugetlb != UNKNOWN)
        process->hugetlb_bytes = hugetlb;
}

struct reading {
    struct process_list *list;
    const char *root;
    bool out_of_memory;
};

static void read_rollup(const char *root, struct process_pages *process)
{
    char path[64];
    char text[PROC_FILE_BYTES];

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", process->pid);
    if (tree_read(root, path, text, sizeof(text)) >= 0)
        process_smaps_rollup_parse(text, process);
    else
        /* A captured tree lacks what its user was not allowed to read. */
        process->denied = errno == EACCES || errno == EPERM || (root[0] != '\0' && errno == ENOENT);
}

bool process_number(const char *name, int *number)
{
    uint64_t found = 0;

    if (!parse_u64(name, &found) || found == 0 || found > INT_MAX)
        return false;
    *number = (int)found;
    return true;
}

static void add_process(const char *name, void *context)
{
    struct reading *reading = context;
    struct process_pages process = {.pss_bytes = UNKNOWN,
                                    .anon_huge_pages_bytes = UNKNOWN,
                                    .shmem_pmd_mapped_bytes = UNKNOWN,
                                    .file_pmd_mapped_bytes = UNKNOWN};
    char path[64];
    char text[PROC_FILE_BYTES];

    if (!process_number(name, &process.pid))
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", process.pid);
    if (tree_read(reading->root, path, text, sizeof(text)) < 0)
        return; /* it has ended meanwhile */
    process_status_parse(text, &process);
    if (process.is_kernel_thread)
        return;
    read_rollup(reading->root, &process);
    struct process_pages *items = realloc(reading->list->items, (reading->list->count + 1) * sizeof(*items));

    if (items == NULL) {
        reading->out_of_memory = true;
        return;
    }
    reading->list->items = items;
    items[reading->list->count++] = process;
}

static int by_pid(const void *a, const void *b)
{
    const struct process_pages *x = a;
    const struct process_pages *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

int processes_read(struct process_list *list, const char *root)
{
    struct reading reading = {list, root, false};

    memset(list, 0, sizeof(*list));
    if (!tree_list(root, "/proc", add_process, &reading) || reading.out_of_memory) {
        processes_free(list);
        return -1;
    }
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(list->items[0]), by_pid);
    return 0;
}

void processes_free(struct process_list *list)
{
    free(list->items);
    memset(list, 0, sizeof(*list));
}

uint64_t process_own_status_bytes(const char *field)
{
    char text[PROC_FILE_BYTES];

    if (tree_read("", "/proc/self/status", text, sizeof(text)) < 0)
        return UINT64_MAX;
    int64_t bytes = colon_kilobytes(text, field);

    return bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
}
