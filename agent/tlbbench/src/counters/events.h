/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of a processor count page walks, by its entry in the TLB catalogue. Not yet seen on hardware: no
 * machine of this project had a PMU. */
#pragma once

#include "base/std.h"

struct perf_event_attr;

enum count_kind {
    COUNT_CYCLES,
    COUNT_INSTRUCTIONS,
    COUNT_DATA_WALKS,
    COUNT_INSTRUCTION_WALKS,
    COUNT_WALK_CYCLES,
    COUNT_L2_HITS, /* of the second-level TLB */
    COUNT_KINDS
};
extern const char *const COUNT_NAMES[COUNT_KINDS];

/* What COUNT_WALK_CYCLES holds. Active and pending cycles bound what any page size can buy from above; stalls do not:
 * a walk may also delay what the pipeline waits for later. */
enum walk_cycles {
    WALK_CYCLES_NONE,
    WALK_CYCLES_ACTIVE,  /* cycles with a walk in progress, data and instruction walks added */
    WALK_CYCLES_PENDING, /* the walks in progress, added up over the cycles */
    WALK_CYCLES_STALL,   /* cycles in which the oldest instruction, or dispatch, waits for a walk */
};
extern const char *const WALK_CYCLES_NAMES[]; /* NULL, "active", "pending", "stall" */

struct pmu_event {
    enum count_kind count;
    const char *name; /* as published */
    uint64_t code;    /* of the event; of a generic event: perf's config */
    unsigned umask, cmask;
    unsigned group; /* events of one group are counted at the same time, each with cycles of its own */
    int sign;       /* -1: subtracted */
    uint32_t type;  /* PERF_TYPE_* */
};

enum { EVENT_GROUPS_MAX = 3, EVENT_GROUP_MAX = 8 };

struct event_set {
    const char *id; /* of the TLB catalogue; "generic" = what the kernel names on every processor */
    const char *source, *date;
    enum walk_cycles walk_cycles;
    const struct pmu_event *events;
    size_t count;
};

/* The set of this processor of the catalogue; the generic one where there is none, or `catalogue_id` is NULL. */
const struct event_set *event_set_find(const char *catalogue_id);

/* The kernel's config of the event. x86: event, unit mask, counter mask as Intel's and AMD's PMU drivers lay them out
 * (/sys/bus/event_source/devices/cpu/format); elsewhere the code itself. */
uint64_t pmu_event_config(const struct pmu_event *event);
