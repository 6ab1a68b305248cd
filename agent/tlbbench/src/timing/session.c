/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/session.h"

#include "base/signals.h"

bool session_must_stop(const struct session *session, struct verdict *verdict)
{
    if (signals_stop_requested()) {
        verdict_set(verdict, STATUS_STOPPED, "stopped by signal %d", signals_stop_signal());
        return true;
    }
    if (deadline_passed(session->deadline)) {
        verdict_set(verdict, STATUS_STOPPED, "the time limit was reached");
        return true;
    }
    return false;
}

void session_report_progress(const struct session *session, double fraction)
{
    if (session->progress != NULL)
        session->progress(session->progress_context, fraction);
}

uint64_t session_pool_bytes(const struct session *session, const struct backing *backing, struct verdict *verdict)
{
    if (backing->kind != BACKING_HUGETLB)
        return UINT64_MAX;
    const struct pool *pool = environment_pool(session->environment, backing->page_bytes);
    int64_t free_pages = backing_free_pages("/sys", backing->page_bytes, session->numa_node);
    uint64_t free_bytes = free_pages > 0 ? (uint64_t)free_pages * backing->page_bytes : 0;
    int64_t left = pool != NULL ? pool->cgroup_left_bytes : UNKNOWN;
    uint64_t allowed = left == UNKNOWN ? UINT64_MAX : (uint64_t)left / backing->page_bytes * backing->page_bytes;

    if (free_bytes == 0)
        verdict_set(verdict, STATUS_NO_FREE_HUGEPAGES, "the pool of %s pages has no free page", backing->name);
    else if (allowed == 0)
        verdict_set(verdict, STATUS_CGROUP_LIMIT,
                    "the hugetlb cgroup leaves no page of %s; the pool has %" PRId64 " free", backing->name,
                    free_pages);
    return free_bytes < allowed ? free_bytes : allowed;
}

bool session_allows(const struct session *session, const struct backing *backing, uint64_t mapped_bytes, uint64_t bytes,
                    struct verdict *verdict)
{
    struct arena_request request = session_arena(session, backing, bytes, mapped_bytes);

    return arena_is_allowed(&request, verdict);
}

struct arena_request session_arena(const struct session *session, const struct backing *backing, uint64_t bytes,
                                   uint64_t mapped_bytes)
{
    return (struct arena_request){.backing = backing,
                                  .bytes = bytes,
                                  .node = session->numa_node,
                                  .seconds = deadline_remaining_seconds(session->deadline),
                                  .budget_bytes = session->memory_bytes,
                                  .mapped_bytes = mapped_bytes};
}

/* --- how much memory a measurement may take ----------------------------------------------------------------------- */

/* Without --max-memory a quarter of what is available: the node has other work. */
#define DEFAULT_SHARE 4
/* With --max-memory still not the last eighth of what is available: page tables and the kernel need some. */
#define KEPT_FREE_SHARE 8
/* In a cgroup, page tables, kernel objects and the program itself count too. */
#define CGROUP_MARGIN_BYTES (8ull << 20)

static uint64_t cgroup_headroom(int64_t limit_bytes, int64_t current_bytes)
{
    if (limit_bytes < 0)
        return UINT64_MAX;
    uint64_t used = current_bytes > 0 ? (uint64_t)current_bytes : 0;
    uint64_t left = (uint64_t)limit_bytes > used ? (uint64_t)limit_bytes - used : 0;

    return left > CGROUP_MARGIN_BYTES ? (left - CGROUP_MARGIN_BYTES) / KEPT_FREE_SHARE * (KEPT_FREE_SHARE - 1) : 0;
}

/* What the machine has, or the NUMA node where that has less. */
static uint64_t available_bytes(const struct environment *environment, int numa_node, char name[64])
{
    int64_t bytes = environment->memory.mem_available_bytes;
    int64_t on_node = numa_node < 0 ? UNKNOWN : environment_node_available_bytes(environment, numa_node);

    (void)snprintf(name, 64, "MemAvailable");
    if (on_node != UNKNOWN && (bytes == UNKNOWN || on_node < bytes)) {
        (void)snprintf(name, 64, "available on NUMA node %d:", numa_node);
        bytes = on_node;
    }
    return bytes == UNKNOWN ? 4 * BUDGET_MIN_BYTES : (uint64_t)bytes;
}

uint64_t budget_memory_bytes(const struct environment *environment, uint64_t max_memory_bytes, int numa_node,
                             struct verdict *verdict)
{
    const struct cgroup *cgroup = &environment->cgroup;
    char name[64];
    uint64_t available = available_bytes(environment, numa_node, name);
    uint64_t headroom = cgroup_headroom(cgroup->memory_limit_bytes, cgroup->memory_current_bytes);
    uint64_t allowed =
        max_memory_bytes > 0 ? available / KEPT_FREE_SHARE * (KEPT_FREE_SHARE - 1) : available / DEFAULT_SHARE;

    *verdict = (struct verdict){.status = STATUS_OK};
    if (max_memory_bytes > 0 && max_memory_bytes < allowed)
        allowed = max_memory_bytes;
    if (headroom < allowed) {
        allowed = headroom;
        if (allowed < BUDGET_MIN_BYTES) {
            verdict_set(verdict, STATUS_CGROUP_LIMIT, "the memory cgroup (%s) leaves %llu MiB; %llu MiB are needed",
                        cgroup->memory_limit_name, (unsigned long long)(headroom >> 20), BUDGET_MIN_BYTES >> 20);
        }
    } else if (allowed < BUDGET_MIN_BYTES) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT, "%llu MiB of memory may be used (%s %llu MiB); %llu MiB are needed",
                    (unsigned long long)(allowed >> 20), name, (unsigned long long)(available >> 20),
                    BUDGET_MIN_BYTES >> 20);
    }
    return allowed;
}
