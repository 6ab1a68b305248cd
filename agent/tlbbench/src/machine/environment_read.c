/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"
#include "machine/environment.h"

#include <sys/stat.h>
#include <sys/utsname.h>

/* --- a captured tree: what a running system is asked by system calls --- */

/* Beside proc and sys; capture.sh writes them. A tree without them still replays, with more unknowns. */
#define CAPTURE_FACTS "/capture.txt" /* machine:, release:, page_size: */
#define CAPTURE_CPUID "/cpuid.txt"

enum { SMAPS_BYTES = 8192 /* the first mappings are enough */ };

void kernel_version_parse(const char *text, char *release, size_t size)
{
    static const char start[] = "Linux version ";

    release[0] = '\0';
    if (strncmp(text, start, sizeof(start) - 1) != 0)
        return;
    text += sizeof(start) - 1;
    (void)snprintf(release, size, "%.*s", (int)strcspn(text, " \n"), text);
}

static void read_release(struct environment *environment)
{
    char text[512];

    if (environment->kernel_release[0] == '\0')
        (void)tree_read_line(environment->root, "/proc/sys/kernel/osrelease", environment->kernel_release,
                             sizeof(environment->kernel_release));
    if (environment->kernel_release[0] == '\0' &&
        tree_read(environment->root, "/proc/version", text, sizeof(text)) >= 0)
        kernel_version_parse(text, environment->kernel_release, sizeof(environment->kernel_release));
}

/* Every process has mappings of base pages first: its program. */
static uint64_t read_smaps_page(const struct environment *environment)
{
    static const char *const paths[] = {"/proc/self/smaps", "/proc/1/smaps"};
    char text[SMAPS_BYTES];

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (tree_read(environment->root, paths[i], text, sizeof(text)) < 0)
            continue;
        int64_t bytes = colon_kilobytes(text, "KernelPageSize");

        if (bytes > 0)
            return (uint64_t)bytes;
    }
    return 0;
}

static void read_cpuid(struct environment *environment)
{
    char error[CPUID_ERROR_BYTES];
    FILE *dump = tree_open(environment->root, CAPTURE_CPUID);

    if (dump == NULL)
        return;
    (void)cpuid_read(&environment->cpuid, dump, error); /* a broken dump leaves CPUID unknown */
    (void)fclose(dump);
}

static void read_captured_facts(struct environment *environment)
{
    char text[1024];
    char value[64];
    uint64_t page_bytes = 0;

    if (tree_read(environment->root, CAPTURE_FACTS, text, sizeof(text)) >= 0) {
        (void)colon_value(text, "machine", environment->processor.architecture,
                          sizeof(environment->processor.architecture));
        (void)colon_value(text, "release", environment->kernel_release, sizeof(environment->kernel_release));
        if (colon_value(text, "page_size", value, sizeof(value)) && parse_u64(value, &page_bytes))
            environment->base_page_bytes = page_bytes;
    }
    if (environment->base_page_bytes == 0)
        environment->base_page_bytes = read_smaps_page(environment);
    read_release(environment);
    read_cpuid(environment);
}

uint64_t base_page_inferred(const struct environment *environment)
{
    /* x86 has no other base page. On arm64 a table holds as many 8-byte entries as fit a base page, so the size of a
     * transparent huge page (one entry of the second-last table) is base / 8 x base. */
    static const struct {
        uint64_t thp_bytes, base_bytes;
    } arm64[] = {{UINT64_C(2) << 20, 4096}, {UINT64_C(32) << 20, 16384}, {UINT64_C(512) << 20, 65536}};

    if (strcmp(environment->processor.architecture, "x86_64") == 0)
        return 4096;
    if (strcmp(environment->processor.architecture, "aarch64") != 0)
        return 0;
    for (size_t i = 0; i < sizeof(arm64) / sizeof(arm64[0]); i++)
        if (environment->thp_bytes == arm64[i].thp_bytes)
            return arm64[i].base_bytes;
    return 0;
}

static void read_running_facts(struct environment *environment)
{
    struct utsname name;
    long page_bytes = sysconf(_SC_PAGESIZE);

    environment->base_page_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 0;
    if (uname(&name) == 0) {
        (void)snprintf(environment->processor.architecture, sizeof(environment->processor.architecture), "%.31s",
                       name.machine);
        (void)snprintf(environment->kernel_release, sizeof(environment->kernel_release), "%s", name.release);
    }
    (void)cpuid_capture(&environment->cpuid);
}

/* Nothing is known. */
static void clear(struct environment *environment)
{
    memset(environment, 0, sizeof(*environment));
    environment->memory = (struct memory_state){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN,
                                                UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    environment->cgroup = (struct cgroup){
        .version = UNKNOWN, .memory_limit_bytes = UNKNOWN, .memory_current_bytes = UNKNOWN, .cpu_quota = NAN};
    environment->conditions = (struct conditions){.boost = UNKNOWN,
                                                  .numa_balancing = UNKNOWN,
                                                  .page_table_isolation = UNKNOWN,
                                                  .page_table_levels = UNKNOWN,
                                                  .smt_active = UNKNOWN};
}

static bool is_tree(const char *root)
{
    char proc[ENV_TEXT_BYTES * 8 + 8], sys[ENV_TEXT_BYTES * 8 + 8];

    (void)snprintf(proc, sizeof(proc), "%s/proc/.", root);
    (void)snprintf(sys, sizeof(sys), "%s/sys/.", root);
    return access(proc, F_OK) == 0 || access(sys, F_OK) == 0;
}

int environment_read(struct environment *environment, const char *root)
{
    clear(environment);
    if (root[0] != '\0' && (strlen(root) >= sizeof(environment->root) || !is_tree(root)))
        return -1;
    (void)snprintf(environment->root, sizeof(environment->root), "%s", root);
    if (root[0] == '\0')
        read_running_facts(environment);
    else
        read_captured_facts(environment);
    (void)tree_read_line(environment->root, "/proc/cmdline", environment->kernel_command_line,
                         sizeof(environment->kernel_command_line));
    environment_read_processor(environment);
    environment_read_nodes(environment);
    environment_read_pools(environment);
    environment_read_memory(environment);
    environment_read_cgroup(environment);
    environment_read_conditions(environment);
    if (environment->base_page_bytes == 0)
        environment->base_page_bytes = base_page_inferred(environment);
    return 0;
}

void environment_from_dump(struct environment *environment, const struct cpuid_dump *dump)
{
    clear(environment);
    environment->cpuid = *dump;
    environment_identify(environment);
}

void environment_tlb_levels(const struct environment *environment, struct tlb_level_list *levels,
                            struct verdict *verdict)
{
    struct cpuid_identity identity;
    struct cpuid_tlb tlb;

    cpuid_identify(&environment->cpuid, &identity);
    cpuid_tlb_decode(&environment->cpuid, &identity, &tlb);
    *verdict = tlb.verdict;
    if (environment->processor.midr != UNKNOWN || environment->processor.pvr != UNKNOWN)
        *verdict = (struct verdict){STATUS_OK, ""}; /* nobody expects CPUID there */
    cpuid_tlb_levels(&tlb, &identity, levels);
    tlb_levels_from_structures(levels, environment->device_tree_tlbs, environment->device_tree_tlb_count,
                               SOURCE_DEVICE_TREE, CONFIDENCE_MEDIUM);
    if (environment->processor.catalogue != NULL)
        catalogue_levels(environment->processor.catalogue, levels);
}

void environment_free(struct environment *environment)
{
    cpuid_free(&environment->cpuid);
}

const struct pool *environment_pool(const struct environment *environment, uint64_t page_bytes)
{
    for (size_t i = 0; i < environment->pool_count; i++)
        if (environment->pools[i].page_bytes == page_bytes)
            return &environment->pools[i];
    return NULL;
}
