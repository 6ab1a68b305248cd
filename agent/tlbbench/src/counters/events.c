/* SPDX-License-Identifier: Apache-2.0 */
#include "counters/events.h"

#include <linux/perf_event.h>

const char *const COUNT_NAMES[COUNT_KINDS] = {
    [COUNT_CYCLES] = "cycles",           [COUNT_INSTRUCTIONS] = "instructions",
    [COUNT_DATA_WALKS] = "data_walks",   [COUNT_INSTRUCTION_WALKS] = "instruction_walks",
    [COUNT_WALK_CYCLES] = "walk_cycles", [COUNT_L2_HITS] = "l2_hits",
};
const char *const WALK_CYCLES_NAMES[] = {
    [WALK_CYCLES_NONE] = NULL,
    [WALK_CYCLES_ACTIVE] = "active",
    [WALK_CYCLES_PENDING] = "pending",
    [WALK_CYCLES_STALL] = "stall",
};

#define RAW(kind, group, name, code, umask, cmask)                                                                     \
    {                                                                                                                  \
        COUNT_##kind, name, code, umask, cmask, group, 1, PERF_TYPE_RAW                                                \
    }
#define LESS(kind, group, name, code)                                                                                  \
    {                                                                                                                  \
        COUNT_##kind, name, code, 0, 0, group, -1, PERF_TYPE_RAW                                                       \
    }
#define CACHE(kind, name, cache, operation)                                                                            \
    {                                                                                                                  \
        COUNT_##kind, name, (cache) | PERF_COUNT_HW_CACHE_OP_##operation << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16, \
            0, 0, 0, 1, PERF_TYPE_HW_CACHE                                                                             \
    }

/* Groups of three beside cycles and instructions: a core with SMT has four counters, and the watchdog may hold the
 * fixed one of the cycles. */
#define INTEL(load, store, fetch)                                                                                      \
    RAW(WALK_CYCLES, 0, "DTLB_LOAD_MISSES.WALK_ACTIVE", load, 0x10, 1),                                                \
        RAW(WALK_CYCLES, 0, "DTLB_STORE_MISSES.WALK_ACTIVE", store, 0x10, 1),                                          \
        RAW(WALK_CYCLES, 0, "ITLB_MISSES.WALK_ACTIVE", fetch, 0x10, 1),                                                \
        RAW(DATA_WALKS, 1, "DTLB_LOAD_MISSES.WALK_COMPLETED", load, 0x0e, 0),                                          \
        RAW(DATA_WALKS, 1, "DTLB_STORE_MISSES.WALK_COMPLETED", store, 0x0e, 0),                                        \
        RAW(INSTRUCTION_WALKS, 1, "ITLB_MISSES.WALK_COMPLETED", fetch, 0x0e, 0),                                       \
        RAW(L2_HITS, 2, "DTLB_LOAD_MISSES.STLB_HIT", load, 0x20, 0),                                                   \
        RAW(L2_HITS, 2, "DTLB_STORE_MISSES.STLB_HIT", store, 0x20, 0),                                                 \
        RAW(L2_HITS, 2, "ITLB_MISSES.STLB_HIT", fetch, 0x20, 0)

static const struct pmu_event intel_skylake[] = {INTEL(0x08, 0x49, 0x85)};
static const struct pmu_event intel_golden_cove[] = {INTEL(0x12, 0x13, 0x11)};

/* The small core has no event of cycles with a walk, only walks in progress per cycle. */
static const struct pmu_event intel_crestmont[] = {
    RAW(WALK_CYCLES, 0, "DTLB_LOAD_MISSES.WALK_PENDING", 0x08, 0x10, 0),
    RAW(WALK_CYCLES, 0, "DTLB_STORE_MISSES.WALK_PENDING", 0x49, 0x10, 0),
    RAW(WALK_CYCLES, 0, "ITLB_MISSES.WALK_PENDING", 0x85, 0x10, 0),
    RAW(DATA_WALKS, 1, "DTLB_LOAD_MISSES.WALK_COMPLETED", 0x08, 0x0e, 0),
    RAW(DATA_WALKS, 1, "DTLB_STORE_MISSES.WALK_COMPLETED", 0x49, 0x0e, 0),
    RAW(INSTRUCTION_WALKS, 1, "ITLB_MISSES.WALK_COMPLETED", 0x85, 0x0e, 0),
    RAW(L2_HITS, 2, "DTLB_LOAD_MISSES.STLB_HIT", 0x08, 0x20, 0),
    RAW(L2_HITS, 2, "DTLB_STORE_MISSES.STLB_HIT", 0x49, 0x20, 0),
    RAW(L2_HITS, 2, "ITLB_MISSES.STLB_HIT", 0x85, 0x20, 0),
};

/* AMD publishes no event of the cycles that walks take. Of the first level's data misses the upper four bits of the
 * unit mask missed the second level too, the lower four hit it. */
#define AMD(walk_name, walk_umask, hit_name)                                                                           \
    RAW(DATA_WALKS, 0, "ls_l1_d_tlb_miss.all_l2_miss", 0x45, 0xf0, 0),                                                 \
        RAW(INSTRUCTION_WALKS, 0, walk_name, 0x85, walk_umask, 0),                                                     \
        RAW(L2_HITS, 0, "ls_l1_d_tlb_miss.all_l2_hit", 0x45, 0x0f, 0), RAW(L2_HITS, 0, hit_name, 0x84, 0, 0)

static const struct pmu_event amd_zen1[] = {AMD("bp_l1_tlb_miss_l2_miss", 0, "bp_l1_tlb_miss_l2_hit")};
static const struct pmu_event amd_zen2[] = {AMD("bp_l1_tlb_miss_l2_tlb_miss", 0xff, "bp_l1_tlb_miss_l2_hit")};
static const struct pmu_event amd_zen3[] = {AMD("bp_l1_tlb_miss_l2_tlb_miss", 0xff, "bp_l1_tlb_miss_l2_tlb_hit")};
static const struct pmu_event amd_zen4[] = {AMD("bp_l1_tlb_miss_l2_tlb_miss.all", 0x0f, "bp_l1_tlb_miss_l2_tlb_hit")};

#define ARM                                                                                                            \
    RAW(DATA_WALKS, 0, "DTLB_WALK", 0x34, 0, 0), RAW(INSTRUCTION_WALKS, 0, "ITLB_WALK", 0x35, 0, 0),                   \
        RAW(L2_HITS, 0, "L2D_TLB", 0x2f, 0, 0), LESS(L2_HITS, 0, "L2D_TLB_REFILL", 0x2d)

static const struct pmu_event arm[] = {ARM};
static const struct pmu_event arm_v3[] = {
    ARM,
    RAW(WALK_CYCLES, 1, "DTLB_WALK_PERCYC", 0x8128, 0, 0),
    RAW(WALK_CYCLES, 1, "ITLB_WALK_PERCYC", 0x8129, 0, 0),
};
static const struct pmu_event ampere_one[] = {
    ARM,
    RAW(WALK_CYCLES, 1, "STALL_BACKEND_TLB", 0xd20e, 0, 0),
    RAW(WALK_CYCLES, 1, "STALL_FRONTEND_TLB", 0xd20c, 0, 0),
};

/* The first digit of a code of POWER is its counter: two events of one counter never run at the same time. */
static const struct pmu_event power9[] = {
    RAW(DATA_WALKS, 0, "PM_DTLB_MISS", 0x300fc, 0, 0),
    RAW(INSTRUCTION_WALKS, 0, "PM_ITLB_MISS", 0x400fc, 0, 0),
};
static const struct pmu_event power10[] = {
    RAW(DATA_WALKS, 0, "PM_DTLB_MISS", 0x300fc, 0, 0),
    RAW(INSTRUCTION_WALKS, 0, "PM_ITLB_MISS", 0x400fc, 0, 0),
    RAW(WALK_CYCLES, 1, "PM_EXEC_STALL_DERAT_DTLB_MISS", 0x30016, 0, 0),
};

static const struct pmu_event generic[] = {
    CACHE(DATA_WALKS, "dTLB-load-misses", PERF_COUNT_HW_CACHE_DTLB, READ),
    CACHE(DATA_WALKS, "dTLB-store-misses", PERF_COUNT_HW_CACHE_DTLB, WRITE),
    CACHE(INSTRUCTION_WALKS, "iTLB-load-misses", PERF_COUNT_HW_CACHE_ITLB, READ),
};

#define EVENTS(array) array, sizeof(array) / sizeof((array)[0])
#define PERFMON(file) "intel/perfmon " file
#define LINUX(folder) "linux tools/perf/pmu-events/arch/" folder
#define READ_ON "2026-11-24" /* when the kernel's tables were read; Intel's carry a date of their own */

static const struct event_set SETS[] = {
    {"generic", "linux include/uapi/linux/perf_event.h", READ_ON, WALK_CYCLES_NONE, EVENTS(generic)},
    {"intel-skylake-sp", PERFMON("SKX 1.37"), "2025-04-18", WALK_CYCLES_ACTIVE, EVENTS(intel_skylake)},
    {"intel-cascade-lake-sp", PERFMON("CLX 1.25"), "2025-04-18", WALK_CYCLES_ACTIVE, EVENTS(intel_skylake)},
    {"intel-icelake-sp", PERFMON("ICX 1.30"), "2025-10-13", WALK_CYCLES_ACTIVE, EVENTS(intel_skylake)},
    {"intel-sapphire-rapids", PERFMON("SPR 1.39"), "2026-03-24", WALK_CYCLES_ACTIVE, EVENTS(intel_golden_cove)},
    {"intel-emerald-rapids", PERFMON("EMR 1.24"), "2026-05-19", WALK_CYCLES_ACTIVE, EVENTS(intel_golden_cove)},
    {"intel-granite-rapids", PERFMON("GNR 1.20"), "2026-06-05", WALK_CYCLES_ACTIVE, EVENTS(intel_golden_cove)},
    {"intel-sierra-forest", PERFMON("SRF 1.18"), "2026-05-27", WALK_CYCLES_PENDING, EVENTS(intel_crestmont)},
    {"amd-zen1-naples", LINUX("x86/amdzen1"), READ_ON, WALK_CYCLES_NONE, EVENTS(amd_zen1)},
    {"amd-zen2-rome", LINUX("x86/amdzen2"), READ_ON, WALK_CYCLES_NONE, EVENTS(amd_zen2)},
    {"amd-zen3-milan", LINUX("x86/amdzen3"), READ_ON, WALK_CYCLES_NONE, EVENTS(amd_zen3)},
    {"amd-zen4-genoa", LINUX("x86/amdzen4"), READ_ON, WALK_CYCLES_NONE, EVENTS(amd_zen4)},
    {"amd-zen5-turin", LINUX("x86/amdzen5"), READ_ON, WALK_CYCLES_NONE, EVENTS(amd_zen4)},
    {"arm-neoverse-n1", LINUX("arm64/arm/neoverse-n1"), READ_ON, WALK_CYCLES_NONE, EVENTS(arm)},
    {"arm-neoverse-v1", LINUX("arm64/arm/neoverse-v1"), READ_ON, WALK_CYCLES_NONE, EVENTS(arm)},
    {"arm-neoverse-n2", LINUX("arm64/arm/neoverse-n2-v2"), READ_ON, WALK_CYCLES_NONE, EVENTS(arm)},
    {"arm-neoverse-v2", LINUX("arm64/arm/neoverse-n2-v2"), READ_ON, WALK_CYCLES_NONE, EVENTS(arm)},
    {"arm-neoverse-n3", LINUX("arm64/arm/neoverse-n3"), READ_ON, WALK_CYCLES_PENDING, EVENTS(arm_v3)},
    {"arm-neoverse-v3", LINUX("arm64/arm/neoverse-v3"), READ_ON, WALK_CYCLES_PENDING, EVENTS(arm_v3)},
    {"ampere-one", LINUX("arm64/ampere/ampereone"), READ_ON, WALK_CYCLES_STALL, EVENTS(ampere_one)},
    {"ibm-power9", LINUX("powerpc/power9"), READ_ON, WALK_CYCLES_NONE, EVENTS(power9)},
    {"ibm-power10", LINUX("powerpc/power10"), READ_ON, WALK_CYCLES_STALL, EVENTS(power10)},
};

const struct event_set *event_set_find(const char *catalogue_id)
{
    for (size_t i = 1; catalogue_id != NULL && i < sizeof(SETS) / sizeof(SETS[0]); i++)
        if (strcmp(SETS[i].id, catalogue_id) == 0)
            return &SETS[i];
    return &SETS[0];
}

uint64_t pmu_event_config(const struct pmu_event *event)
{
    return event->code | (uint64_t)event->umask << 8 | (uint64_t)event->cmask << 24;
}
