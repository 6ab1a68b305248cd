/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "machine/environment.h"
#include "machine/processes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void meminfo(struct harness *h)
{
    struct memory_state memory = {.direct_map_1g_bytes = UNKNOWN, .mem_free_bytes = UNKNOWN};

    meminfo_parse("MemTotal:       65841208 kB\nMemTotalX:  1 kB\nMemFree: none kB\nHugetlb:  17825792 kB\n"
                  "DirectMap2M:   18446744073709551615 kB\nPageTables:\t24 kB",
                  &memory);
    CHECK_I64(memory.mem_total_bytes, INT64_C(65841208) * 1024);
    CHECK_I64(memory.mem_free_bytes, UNKNOWN);      /* not a number */
    CHECK_I64(memory.direct_map_2m_bytes, 0);       /* overflows: not changed */
    CHECK_I64(memory.direct_map_1g_bytes, UNKNOWN); /* absent */
    CHECK_I64(memory.hugetlb_bytes, INT64_C(17825792) * 1024);
    CHECK_I64(memory.page_tables_bytes, 24 * 1024); /* the last line needs no line break */
}

static void choices(struct harness *h)
{
    char choice[8];

    bracketed_choice("always [madvise] never\n", choice, sizeof(choice));
    CHECK_TEXT(choice, "madvise");
    bracketed_choice("[a-very-long-choice]", choice, sizeof(choice));
    CHECK_TEXT(choice, "a-very-");
    bracketed_choice("] never [open", choice, sizeof(choice));
    CHECK_TEXT(choice, "");
    bracketed_choice("[]", choice, sizeof(choice));
    CHECK_TEXT(choice, "");
}

static void multi_size_follows_its_own_choice(struct harness *h)
{
    struct environment *e = calloc(1, sizeof(*e));
    struct multi_size_thp size = {.page_bytes = 65536, .enabled = "inherit"};

    (void)snprintf(e->thp.enabled, sizeof(e->thp.enabled), "madvise");
    CHECK(environment_grants_multi_size(e, &size));
    (void)snprintf(e->thp.enabled, sizeof(e->thp.enabled), "never");
    CHECK(!environment_grants_multi_size(e, &size));
    (void)snprintf(size.enabled, sizeof(size.enabled), "always");
    CHECK(environment_grants_multi_size(e, &size));
    (void)snprintf(size.enabled, sizeof(size.enabled), "never");
    (void)snprintf(e->thp.enabled, sizeof(e->thp.enabled), "always");
    CHECK(!environment_grants_multi_size(e, &size));
    free(e);
}

static void pool_names(struct harness *h)
{
    CHECK_U64(pool_directory_bytes("hugepages-2048kB"), UINT64_C(2) << 20);
    CHECK_U64(pool_directory_bytes("hugepages-16777216kB"), UINT64_C(16) << 30);
    CHECK_U64(pool_directory_bytes("hugepages-kB"), 0);
    CHECK_U64(pool_directory_bytes("hugepages-2048"), 0);
    CHECK_U64(pool_directory_bytes("hugepages-x2048kB"), 0);
    CHECK_U64(pool_directory_bytes("hugepages-99999999999999999999999kB"), 0);
    CHECK_U64(pool_directory_bytes(""), 0);
}

static void cgroups(struct harness *h)
{
    struct cgroup_place place;

    cgroup_parse("0::/user.slice\n", "memory", &place);
    CHECK_I64(place.version, 2);
    CHECK_TEXT(place.path, "/user.slice");
    cgroup_parse("12:cpu,cpuacct:/a\n9:hugetlb,memory:/docker/4f5e\n0::/\n", "memory", &place);
    CHECK_I64(place.version, 1); /* hybrid: the memory controller's hierarchy counts */
    CHECK_TEXT(place.path, "/docker/4f5e");
    cgroup_parse("0::/\n9:memory:/late", "memory", &place);
    CHECK_I64(place.version, 1);
    CHECK_TEXT(place.path, "/late");
    cgroup_parse("3:cpu,memoryless:/a\n", "memory", &place);
    CHECK_I64(place.version, UNKNOWN);
    cgroup_parse("nonsense\n::\n:", "memory", &place);
    CHECK_I64(place.version, UNKNOWN);
}

static void clear(struct processor *processor, struct hypervisor *hypervisor)
{
    memset(processor, 0, sizeof(*processor));
    memset(hypervisor, 0, sizeof(*hypervisor));
    processor->family = processor->model = processor->stepping = UNKNOWN;
    processor->midr = processor->pvr = UNKNOWN;
}

static void cpuinfo_of_x86(struct harness *h)
{
    struct processor processor;
    struct hypervisor hypervisor;

    clear(&processor, &hypervisor);
    cpuinfo_parse("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n"
                  "stepping\t: 1\nflags\t\t: fpu hypervisor vme\n",
                  &processor, &hypervisor);
    CHECK_TEXT(processor.architecture, "x86_64");
    CHECK_TEXT(processor.brand, "AMD EPYC");
    CHECK_I64(processor.family, 26);
    CHECK_I64(processor.model, 2); /* not "model name" */
    CHECK(hypervisor.state == HYPERVISOR_PRESENT);
    clear(&processor, &hypervisor);
    cpuinfo_parse("vendor_id : GenuineIntel\nflags\t: fpu nohypervisor hypervisorx\n", &processor, &hypervisor);
    CHECK(hypervisor.state == HYPERVISOR_ABSENT); /* whole words only */
    CHECK_I64(processor.family, UNKNOWN);
}

static void cpuinfo_of_arm_and_power(struct harness *h)
{
    struct processor processor;
    struct hypervisor hypervisor;

    clear(&processor, &hypervisor);
    cpuinfo_parse("CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"
                  "CPU revision\t: 1\n",
                  &processor, &hypervisor);
    CHECK_TEXT(processor.architecture, "aarch64");
    CHECK_I64(processor.midr, 0x413fd0c1);
    CHECK(hypervisor.state == HYPERVISOR_UNKNOWN);
    clear(&processor, &hypervisor);
    cpuinfo_parse("cpu\t\t: POWER9 (architected)\nrevision\t: 2.2 (pvr 004e 1202)\n\nplatform\t: pSeries\n"
                  "machine\t\t: CHRP IBM pSeries (emulated by qemu)\n",
                  &processor, &hypervisor);
    CHECK_I64(processor.pvr, 0x004e1202);
    CHECK(hypervisor.state == HYPERVISOR_PRESENT);
    CHECK_TEXT(hypervisor.name, "KVM");
    clear(&processor, &hypervisor);
    cpuinfo_parse("revision\t: 2.2 (pvr zz)\n", &processor, &hypervisor);
    CHECK_I64(processor.pvr, 0); /* no digits are zero digits */
}

static void cells(struct harness *h)
{
    CHECK_U64(device_tree_cell("\x00\x00\x04\x00", 4), 1024);
    CHECK_U64(device_tree_cell("\xff\xff\xff\xff", 4), UINT32_MAX);
    CHECK_U64(device_tree_cell("\x01\x02", 2), 0);
}

static void processes(struct harness *h)
{
    struct process_pages process = {.pss_bytes = UNKNOWN, .anon_huge_pages_bytes = UNKNOWN};

    process_status_parse("Name:\tpostgres\nVmPeak:\t 10 kB\nVmSize:\t 9 kB\nVmRSS:\t 5 kB\nVmPTE:\t 2 kB\n", &process);
    CHECK_TEXT(process.name, "postgres");
    CHECK(!process.is_kernel_thread);
    CHECK_I64(process.rss_bytes, 5 * 1024);
    CHECK_I64(process.page_tables_bytes, 2 * 1024);
    CHECK_I64(process.hugetlb_bytes, UNKNOWN);
    process_smaps_rollup_parse("Rss: 5 kB\nPss: 3 kB\nPss_Anon: 1 kB\nAnonHugePages: 2048 kB\nShared_Hugetlb: 4 kB\n"
                               "Private_Hugetlb: 6 kB\n",
                               &process);
    CHECK_I64(process.pss_bytes, 3 * 1024);
    CHECK_I64(process.hugetlb_bytes, 10 * 1024);
    process_status_parse("Name:\tkthreadd\nThreads:\t1\n", &process);
    CHECK(process.is_kernel_thread);
}

static void captured_trees_without_facts(struct harness *h)
{
    struct environment *e = calloc(1, sizeof(*e));
    char release[16];

    if (e == NULL)
        abort();
    CHECK_U64(base_page_inferred(e), 0);
    (void)snprintf(e->processor.architecture, sizeof(e->processor.architecture), "aarch64");
    CHECK_U64(base_page_inferred(e), 0); /* without THP the base page is not told */
    e->thp_bytes = UINT64_C(512) << 20;
    CHECK_U64(base_page_inferred(e), 65536);
    (void)snprintf(e->processor.architecture, sizeof(e->processor.architecture), "x86_64");
    CHECK_U64(base_page_inferred(e), 4096);
    free(e);
    kernel_version_parse("Linux version 6.1.0-28-amd64 (debian-kernel@lists) #1 SMP\n", release, sizeof(release));
    CHECK_TEXT(release, "6.1.0-28-amd64");
    kernel_version_parse("Linux version 6", release, sizeof(release));
    CHECK_TEXT(release, "6");
    kernel_version_parse("FreeBSD 14", release, sizeof(release));
    CHECK_TEXT(release, "");
}

static void the_running_machine(struct harness *h)
{
    struct environment *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    CHECK_I64(environment_read(e, ""), 0);
    CHECK_U64(e->base_page_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK(e->processor.architecture[0] != '\0');
    CHECK(e->kernel_release[0] != '\0');
    environment_free(e);
    CHECK_I64(environment_read(e, "/dev/null"), -1);
    environment_free(e);
    free(e);
}

static const struct harness_case cases[] = {
    {"meminfo", meminfo},
    {"bracketed choices", choices},
    {"multi-size THP follow their own choice", multi_size_follows_its_own_choice},
    {"pool directories", pool_names},
    {"cgroup places", cgroups},
    {"cpuinfo of x86", cpuinfo_of_x86},
    {"cpuinfo of Arm and POWER", cpuinfo_of_arm_and_power},
    {"device tree cells", cells},
    {"processes", processes},
    {"captured trees without facts", captured_trees_without_facts},
    {"the running machine", the_running_machine},
};

HARNESS_MAIN("environment", cases)
