/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session.h"

#include "base/signals.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    int64_t free_pages = backing_free_pages("/sys", backing->page_bytes, session->numa_node);

    if (free_pages > 0)
        return (uint64_t)free_pages * backing->page_bytes;
    verdict_set(verdict, STATUS_NO_FREE_HUGEPAGES, "the pool of %s pages has no free page", backing->name);
    return 0;
}

bool session_allows(const struct session *session, const struct backing *backing, uint64_t mapped_bytes, uint64_t bytes,
                    struct verdict *verdict)
{
    if (mapped_bytes <= session->memory_bytes && bytes <= session->memory_bytes - mapped_bytes)
        return true;
    if (backing->page_bytes > session->memory_bytes) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT, "one %s page exceeds the memory budget of %llu MiB", backing->name,
                    (unsigned long long)session->memory_bytes / MIB);
    } else {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "%llu MiB in %s pages exceed the memory budget: %llu MiB, of which %llu MiB are mapped",
                    (unsigned long long)bytes / MIB, backing->name, (unsigned long long)session->memory_bytes / MIB,
                    (unsigned long long)mapped_bytes / MIB);
    }
    return false;
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

uint64_t budget_memory_bytes(uint64_t max_memory_bytes, int64_t mem_available_bytes, int64_t cgroup_limit_bytes,
                             int64_t cgroup_current_bytes, struct verdict *verdict)
{
    uint64_t available = mem_available_bytes < 0 ? 4 * BUDGET_MIN_BYTES : (uint64_t)mem_available_bytes;
    uint64_t headroom = cgroup_headroom(cgroup_limit_bytes, cgroup_current_bytes);
    uint64_t allowed =
        max_memory_bytes > 0 ? available / KEPT_FREE_SHARE * (KEPT_FREE_SHARE - 1) : available / DEFAULT_SHARE;

    *verdict = (struct verdict){.status = STATUS_OK};
    if (max_memory_bytes > 0 && max_memory_bytes < allowed)
        allowed = max_memory_bytes;
    if (headroom < allowed) {
        allowed = headroom;
        if (allowed < BUDGET_MIN_BYTES) {
            verdict_set(verdict, STATUS_CGROUP_LIMIT, "the memory cgroup leaves %llu MiB; %llu MiB are needed",
                        (unsigned long long)(headroom >> 20), BUDGET_MIN_BYTES >> 20);
        }
    } else if (allowed < BUDGET_MIN_BYTES) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "%llu MiB of memory may be used (MemAvailable %llu MiB); %llu MiB are needed",
                    (unsigned long long)(allowed >> 20), (unsigned long long)(available >> 20), BUDGET_MIN_BYTES >> 20);
    }
    return allowed;
}
