/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/arena.h"

#include "base/clock.h"
#include "base/signals.h"

#include <sys/mman.h>

enum { TOUCH_PART_BYTES = 64 << 20 }; /* how long a stop request waits at most: some tens of milliseconds */

/* Of an arena's pages, on the NUMA node that was named. */
#define ON_NODE_MIN 0.95

static double granted_fraction(const struct arena *arena)
{
    struct smaps_proof proof;

    if (smaps_read(arena->base, arena->bytes, &proof) != 0)
        return NAN;
    switch (arena->backing.kind) {
    case BACKING_BASE:
        return proof.rss_bytes == 0 ? NAN : 1.0 - (double)proof.anon_huge_bytes / (double)arena->bytes;
    case BACKING_THP:
        return (double)proof.anon_huge_bytes / (double)arena->bytes;
    case BACKING_MULTI_SIZE_THP: /* smaps does not tell them from base pages */
        break;
    case BACKING_HUGETLB:
        return proof.kernel_page_bytes == arena->backing.page_bytes ? (double)proof.hugetlb_bytes / (double)arena->bytes
                                                                    : 0;
    }
    return NAN;
}

/* Gives back what lies behind the first `bytes`, rounded up to whole pages. */
static void cut_arena(struct arena *arena, size_t bytes)
{
    size_t page = (size_t)arena->backing.page_bytes;
    size_t kept = (bytes + page - 1) / page * page;

    if (kept < arena->bytes) {
        (void)munmap(arena->base + kept, arena->bytes - kept);
        arena->bytes = kept;
    }
}

struct touch {
    const struct touch_request *request;
    size_t from, to;
};

static void touch_part(void *context)
{
    const struct touch *touch = context;

    for (size_t offset = touch->from; offset < touch->to; offset += touch->request->step) {
        volatile uint64_t *word = (volatile uint64_t *)(touch->request->base + offset);

        if (touch->request->writes)
            *word = offset + 1;
        else
            (void)*word;
    }
}

int memory_touch(const struct touch_request *request, size_t *touched_bytes, struct verdict *verdict)
{
    uint64_t start_ns = clock_now_ns();
    double seconds = 0;
    size_t touched = 0;

    while (touched < request->bytes && seconds <= request->seconds) {
        size_t left = request->bytes - touched;
        struct touch touch = {request, touched, touched + (left < TOUCH_PART_BYTES ? left : TOUCH_PART_BYTES)};

        if (signals_stop_requested())
            return FAILED(verdict, STATUS_STOPPED, "stopped by signal %d", signals_stop_signal());
        if (signals_guard_bus(touch_part, &touch) != 0)
            return FAILED(verdict, STATUS_SIGBUS, "SIGBUS on a page of %s: %s", request->name, signals_bus_reason());
        touched = touch.to;
        seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    }
    if (touched_bytes != NULL)
        *touched_bytes = touched;
    else if (touched < request->bytes)
        return FAILED(verdict, STATUS_STOPPED, "the time ended before the %s pages were touched", request->name);
    return 0;
}

/* Stops touching when the time is over, and cuts the arena there, where a part is enough. */
static int touch_arena(struct arena *arena, const struct arena_request *wanted, struct verdict *verdict)
{
    struct touch_request request = {arena->base, arena->bytes,        (size_t)sysconf(_SC_PAGESIZE),
                                    true,        arena->backing.name, wanted->seconds};
    uint64_t start_ns = clock_now_ns();
    size_t touched_bytes = arena->bytes;

    if (memory_touch(&request, wanted->may_be_cut ? &touched_bytes : NULL, verdict) != 0)
        return -1;
    arena->touch_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    cut_arena(arena, touched_bytes);
    return 0;
}

bool arena_is_allowed(const struct arena_request *request, struct verdict *verdict)
{
    const struct backing *backing = request->backing;
    uint64_t page = backing->page_bytes;
    uint64_t pages = request->bytes / page + (request->bytes % page > 0 ? 1 : 0);
    bool is_left = request->mapped_bytes <= request->budget_bytes;

    if (is_left && pages <= (request->budget_bytes - request->mapped_bytes) / page)
        return true;
    if (page > request->budget_bytes) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT, "one %s page exceeds the memory budget of %" PRIu64 " MiB",
                    backing->name, request->budget_bytes / MIB);
    } else {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "%" PRIu64 " MiB in %s pages exceed the memory budget: %" PRIu64 " MiB, of which %" PRIu64
                    " MiB are mapped",
                    request->bytes / MIB, backing->name, request->budget_bytes / MIB, request->mapped_bytes / MIB);
    }
    return false;
}

/* Memory is preferred from the node, not bound to it: a full node must not bring the OOM killer. So what came is
 * looked up; a few pages that the kernel had to take elsewhere do not move a median. */
static bool is_on_node(struct arena *arena, int node, struct verdict *verdict)
{
    double share = node < 0 ? NAN : backing_share_on_node(arena->base, arena->bytes, node);

    arena->on_node = share;
    if (isnan(share) || share >= ON_NODE_MIN)
        return true;
    return REFUSED(verdict, STATUS_NO_MEMORY, "NUMA node %d has no room: %.0f %% of the %s pages lie on other nodes",
                   node, 100 * (1 - share), arena->backing.name);
}

int arena_open(struct arena *arena, const struct arena_request *request, struct verdict *verdict)
{
    const struct backing *backing = request->backing;
    size_t page = (size_t)backing->page_bytes;

    *arena = (struct arena){.backing = *backing, .granted_fraction = NAN};
    *verdict = (struct verdict){.status = STATUS_OK};
    if (!arena_is_allowed(request, verdict))
        return -1;
    arena->bytes = ((size_t)request->bytes + page - 1) / page * page;
    arena->base = backing_map(backing, arena->bytes, verdict);
    if (arena->base == NULL)
        return -1;
    backing_prefer(arena->base, arena->bytes, request->node);
    int64_t given = backing->kind == BACKING_MULTI_SIZE_THP ? backing_multi_size_given("/sys", page) : -1;

    if (touch_arena(arena, request, verdict) != 0 || !is_on_node(arena, request->node, verdict)) {
        arena_close(arena);
        return -1;
    }
    arena->granted_fraction = granted_fraction(arena);
    /* From the kernel's counter of all processes: others may add to it, so that it shows at best what did not come. */
    if (given >= 0)
        arena->granted_fraction =
            fmin(1, (double)(backing_multi_size_given("/sys", page) - given) * (double)page / (double)arena->bytes);
    bool is_transparent = backing->kind == BACKING_THP || backing->kind == BACKING_MULTI_SIZE_THP;

    if (is_transparent && !(arena->granted_fraction >= 1.0)) {
        if (isnan(arena->granted_fraction))
            verdict_set(verdict, STATUS_THP_NOT_GRANTED, "page sizes are unknown: %s cannot be read",
                        backing->kind == BACKING_THP ? "/proc/self/smaps" : "stats/anon_fault_alloc");
        else
            verdict_set(verdict, STATUS_THP_NOT_GRANTED, "the kernel gave huge pages for %.0f %% of the mapping",
                        100 * arena->granted_fraction);
    }
    return 0;
}

void arena_close(struct arena *arena)
{
    if (arena->base != NULL)
        (void)munmap(arena->base, arena->bytes);
    arena->base = NULL;
}

/* --- what the kernel says that a range of memory is made of ------------------------------------------------------- */

void smaps_parse_line(struct smaps_parser *parser, const char *line)
{
    struct smaps_proof *proof = &parser->proof;
    unsigned long long first, last;
    char field[32];

    if (sscanf(line, "%llx-%llx ", &first, &last) == 2) {
        parser->inside = first >= parser->start && last <= parser->end;
        return;
    }
    if (!parser->inside || sscanf(line, "%31[A-Za-z_]: %llu", field, &first) != 2)
        return;
    uint64_t bytes = (uint64_t)first * 1024;

    if (strcmp(field, "Rss") == 0)
        proof->rss_bytes += bytes;
    else if (strcmp(field, "AnonHugePages") == 0)
        proof->anon_huge_bytes += bytes;
    else if (strcmp(field, "ShmemPmdMapped") == 0)
        proof->shmem_huge_bytes += bytes;
    else if (strcmp(field, "Private_Hugetlb") == 0 || strcmp(field, "Shared_Hugetlb") == 0)
        proof->hugetlb_bytes += bytes;
    else if (strcmp(field, "KernelPageSize") == 0)
        proof->kernel_page_bytes = bytes;
}

int smaps_read(const char *start, size_t bytes, struct smaps_proof *proof)
{
    struct smaps_parser parser = {.start = (uint64_t)(uintptr_t)start, .end = (uint64_t)(uintptr_t)start + bytes};
    char line[512];
    FILE *file = fopen("/proc/self/smaps", "re");

    if (file == NULL)
        return -1;
    while (fgets(line, sizeof(line), file) != NULL)
        smaps_parse_line(&parser, line);
    (void)fclose(file);
    *proof = parser.proof;
    return 0;
}
