/* SPDX-License-Identifier: Apache-2.0 */
/* What every measuring section needs to know, and the budget it must keep. */
#pragma once

#include "base/clock.h"
#include "machine/environment.h"
#include "memory/arena.h"

enum { SESSION_BACKINGS_MAX = 8, SESSION_ALL_BACKINGS_MAX = SESSION_BACKINGS_MAX + ENV_MAX_PAGE_SIZES };

struct session {
    const struct environment *environment;
    const struct tlb_level_list *priors; /* what CPUID, device tree and catalogue say; may be NULL */
    uint64_t base_page_bytes;
    /* The backings to compare, base pages first. A hugetlb size whose pool is empty is listed too, so that its absence
     * is reported. */
    struct backing backings[SESSION_ALL_BACKINGS_MAX];
    size_t backing_count;
    size_t multi_size_count;  /* of multi-size THP, behind the others: for walks alone */
    bool full;                /* the profile */
    uint64_t seed;            /* of everything random */
    int numa_node;            /* that memory is taken from; -1 = any */
    uint64_t memory_bytes;    /* physical memory that may be mapped at once */
    struct deadline deadline; /* of the section that runs */
    struct cpu_list cpus;     /* that may be used */
    int cpu;                  /* the core measured on */
    bool keep_priority;       /* of all threads and processes, as the user started them */
    /* The data walks of this thread that the processor has counted so far, NAN = not known; NULL where it cannot be
     * asked, and why. */
    double (*counted_walks)(void *context);
    void *walks_context;
    struct verdict walks_verdict;
    /* Tells how far the section is, 0 .. 1. May be NULL. */
    void (*progress)(void *context, double fraction);
    void *progress_context;
};

/* True when the section must end now; then `verdict` says why. */
bool session_must_stop(const struct session *session, struct verdict *verdict);

void session_report_progress(const struct session *session, double fraction);

/* Bytes that the pool of the backing has free, with the reason where there are none; UINT64_MAX = it needs no pool. */
uint64_t session_pool_bytes(const struct session *session, const struct backing *backing, struct verdict *verdict);

/* True when `bytes` more of a backing may be mapped beside the `mapped_bytes` that are; else `verdict` says why not. */
bool session_allows(const struct session *session, const struct backing *backing, uint64_t mapped_bytes, uint64_t bytes,
                    struct verdict *verdict);

/* What arena_open() needs for `bytes` of a backing beside the `mapped_bytes` that are, on the session's NUMA node. */
struct arena_request session_arena(const struct session *session, const struct backing *backing, uint64_t bytes,
                                   uint64_t mapped_bytes);

/* --- how much memory a measurement may take, from what the environment says --------------------------------------- */

/* Below this nothing useful can be measured: the geometry alone maps about 10 MiB with its page tables. */
#define BUDGET_MIN_BYTES (16ull << 20)

/* Bytes that may be mapped at once: min(25 % of what is available, cgroup headroom less a margin), or
 * `max_memory_bytes` (0 = not set) when that is lower than what is available. With memory of one NUMA node (-1 = any)
 * that is what this node has available. Below BUDGET_MIN_BYTES `verdict` names the limit; else it is STATUS_OK. */
uint64_t budget_memory_bytes(const struct environment *environment, uint64_t max_memory_bytes, int numa_node,
                             struct verdict *verdict);
