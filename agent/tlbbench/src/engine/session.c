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
    int64_t free_pages = backing_free_pages(backing->page_bytes, session->numa_node);

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
