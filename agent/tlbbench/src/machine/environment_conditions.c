/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes a measured time without being measured: clocks and power, kernel features that walk or fault more, the
 * cache behind the core. They are recorded, so that two runs can be compared.
 */
#include "base/tree.h"
#include "machine/environment.h"

#include <sys/mman.h>

#define CPU_FOLDER "/sys/devices/system/cpu"
/* Assumed where the kernel does not describe its caches: more than a core's own, less than a socket's. */
#define ASSUMED_CACHE_BYTES (32u << 20)

/* Bytes of cpu0's last data cache of these levels; 0 = unknown. */
static uint64_t read_cache(const char *root, int64_t least, int64_t most)
{
    enum { CACHE_INDEXES = 8 };
    uint64_t bytes = 0;
    int64_t best = least - 1;

    for (int index = 0; index < CACHE_INDEXES; index++) {
        char directory[64];
        char path[96];
        char text[32];
        uint64_t size = 0;

        (void)snprintf(directory, sizeof(directory), CPU_FOLDER "/cpu0/cache/index%d", index);
        (void)snprintf(path, sizeof(path), "%s/level", directory);
        int64_t level = tree_read_number(root, path);

        (void)snprintf(path, sizeof(path), "%s/size", directory);
        if (!tree_read_line(root, path, text, sizeof(text)) || !parse_size(text, &size))
            continue;
        (void)snprintf(path, sizeof(path), "%s/type", directory);
        (void)tree_read_line(root, path, text, sizeof(text)); /* absent = not one of instructions */
        if (level > best && level <= most && size > 0 && strcmp(text, "Instruction") != 0) {
            best = level;
            bytes = size;
        }
    }
    return bytes;
}

uint64_t cache_last_level_bytes(const struct environment *environment)
{
    uint64_t bytes = environment->conditions.last_level_cache_bytes;

    return bytes > 0 ? bytes : ASSUMED_CACHE_BYTES;
}

/* acpi-cpufreq says boost; intel_pstate says the opposite. */
static int64_t read_boost(const char *root)
{
    int64_t boost = tree_read_number(root, CPU_FOLDER "/cpufreq/boost");
    int64_t no_turbo = tree_read_number(root, CPU_FOLDER "/intel_pstate/no_turbo");

    return boost != UNKNOWN ? boost != 0 : no_turbo != UNKNOWN ? no_turbo == 0 : UNKNOWN;
}

/* Page table isolation flushes or tags TLB entries at each system call. */
static int64_t read_isolation(const char *root)
{
    char text[64];

    if (!tree_read_line(root, CPU_FOLDER "/vulnerabilities/meltdown", text, sizeof(text)))
        return UNKNOWN;
    return strcmp(text, "Mitigation: PTI") == 0;
}

/* A kernel with five levels gives an address above the fourth's reach to whoever asks for one (Documentation/arch/x86/
 * x86_64/5level-paging.rst). Only the running system can be asked. */
static int64_t read_page_table_levels(const char *root)
{
#if defined(__x86_64__)
    const uintptr_t hint = (uintptr_t)1 << 50;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (root[0] != '\0')
        return UNKNOWN;
    void *found = mmap((void *)hint, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); // NOLINT

    if (found == MAP_FAILED)
        return UNKNOWN;
    (void)munmap(found, page);
    return (uintptr_t)found >= hint ? 5 : 4;
#else
    (void)root;
    return UNKNOWN;
#endif
}

void environment_read_conditions(struct environment *environment)
{
    struct conditions *conditions = &environment->conditions;
    const char *root = environment->root;

    (void)tree_read_line(root, CPU_FOLDER "/cpu0/cpufreq/scaling_governor", conditions->governor,
                         sizeof(conditions->governor));
    (void)tree_read_line(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                         conditions->clock_source, sizeof(conditions->clock_source));
    conditions->boost = read_boost(root);
    conditions->numa_balancing = tree_read_number(root, "/proc/sys/kernel/numa_balancing");
    conditions->page_table_isolation = read_isolation(root);
    conditions->page_table_levels = read_page_table_levels(root);
    conditions->smt_active = tree_read_number(root, CPU_FOLDER "/smt/active");
    conditions->second_level_cache_bytes = read_cache(root, 2, 2);
    conditions->last_level_cache_bytes = read_cache(root, 1, INT64_MAX);
}
