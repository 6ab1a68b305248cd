/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/environment_read.h"

#include "base/tree.h"
#include "machine/catalogue.h"
#include "machine/cpuid_tlb.h"
#include "machine/environment_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
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

int environment_read(struct environment *environment, const char *root)
{
    memset(environment, 0, sizeof(*environment));
    if (root[0] != '\0' && (!is_directory(root) || strlen(root) >= sizeof(environment->root)))
        return -1;
    (void)snprintf(environment->root, sizeof(environment->root), "%s", root);
    if (root[0] == '\0')
        read_running_facts(environment);
    else
        environment_read_capture(environment);
    (void)tree_read_line(environment->root, "/proc/cmdline", environment->kernel_command_line,
                         sizeof(environment->kernel_command_line));
    environment_read_processor(environment);
    environment_read_nodes(environment);
    environment_read_pools(environment);
    environment_read_memory(environment);
    environment_read_cgroup(environment);
    if (environment->base_page_bytes == 0)
        environment->base_page_bytes = base_page_inferred(environment);
    return 0;
}

void environment_from_dump(struct environment *environment, const struct cpuid_dump *dump)
{
    memset(environment, 0, sizeof(*environment));
    environment->cpuid = *dump;
    environment_clear_memory(environment);
    environment_identify(environment);
}

int environment_tlb_levels(const struct environment *environment, struct tlb_level_list *levels,
                           struct verdict *verdict)
{
    struct cpuid_identity identity;
    struct cpuid_tlb tlb;

    cpuid_identify(&environment->cpuid, &identity);
    cpuid_tlb_decode(&environment->cpuid, &identity, &tlb);
    *verdict = tlb.verdict;
    if (environment->processor.midr != UNKNOWN || environment->processor.pvr != UNKNOWN)
        *verdict = (struct verdict){STATUS_OK, ""}; /* nobody expects CPUID there */
    if (cpuid_tlb_levels(&tlb, &identity, levels) != 0 ||
        tlb_levels_from_structures(levels, environment->device_tree_tlbs, environment->device_tree_tlb_count,
                                   SOURCE_DEVICE_TREE, CONFIDENCE_MEDIUM) != 0)
        return -1;
    return environment->processor.catalogue == NULL ? 0 : catalogue_levels(environment->processor.catalogue, levels);
}
