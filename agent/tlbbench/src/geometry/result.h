/* SPDX-License-Identifier: Apache-2.0 */
/* The TLBs as they behave: entries of each level, ways of the first, what one entry covers, what a miss costs. */
#pragma once

#include "timing/curve.h"

struct effective_page {
    struct backing backing;
    uint64_t entry_bytes;   /* what one TLB entry covers; 0 = unknown, printed as null */
    struct verdict verdict; /* STATUS_OK: entry_bytes == backing.page_bytes; STATUS_FRACTURED: smaller */
};

enum { GEOMETRY_PENALTIES_MAX = 2 * SESSION_BACKINGS_MAX };

struct penalty {
    const char *level; /* "l2_hit", "walk" */
    uint64_t page_bytes;
    double ns, ns_min, ns_max; /* on top of an L1 hit */
    double cycles;
};

struct core_clock {
    double core_hz;
    double l1_hit_ns;
    double l1_hit_cycles;
};

enum alias_method { METHOD_ALIASED, METHOD_DISTINCT_LINES };
extern const char *const ALIAS_METHOD_NAMES[];

/* What the processor's own counter says of the last level of base pages: a cycle that the level holds walks hardly
 * ever, one of more pages than it may hold walks at most accesses. */
struct walk_witness {
    struct verdict verdict;                /* STATUS_OK: it agrees; STATUS_NOISY: it does not */
    uint64_t held_pages, missed_pages;     /* of the two cycles; 0 = not counted */
    double held_fraction, missed_fraction; /* of their accesses that walked; NAN = not counted */
};

struct geometry_result {
    struct verdict verdict;
    enum alias_method method;   /* chosen by measuring: does aliasing cost anything on this core? */
    double alias_cost_ns;       /* aliased minus distinct lines, few pages; NAN = not measured */
    double core_alone_fraction; /* of the probes: the SMT sibling was idle; NAN = no probe */
    bool coalescing_seen;       /* contiguous frames raise the capacity */
    char coalescing[REASON_BYTES];
    struct tlb_level_list levels; /* cpuid and catalogue facts first, then measured ones */
    struct effective_page effective_pages[SESSION_BACKINGS_MAX];
    size_t effective_page_count;
    struct penalty penalties[GEOMETRY_PENALTIES_MAX];
    size_t penalty_count;
    struct core_clock clock;
    struct walk_witness witness;
    struct disagreement_list disagreements;
    struct curve_list curves;
    uint64_t peak_mapped_bytes; /* physical memory the section used at most */
};

/* Finds the measured level of a page size in the result, or NULL. */
struct tlb_level *geometry_find_measured(struct geometry_result *result, unsigned level, uint64_t page_bytes);

void geometry_result_free(struct geometry_result *result);

/* Measures on the calling thread, which must be bound to session->cpu. Moves to another CPU where this one is
 * contended, and leaves session->cpu the one it is bound to. Always leaves a valid result; what could not be measured
 * says why. Returns 0, or -1 when memory for the result ran out. Free with geometry_result_free(). */
int geometry_measure(struct session *session, struct geometry_result *result);
