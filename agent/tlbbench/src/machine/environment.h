/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine is and how its memory stands: the document's `environment`. Reading changes nothing. */
#pragma once

#include "base/text.h"
#include "machine/catalogue.h"
#include "machine/cpuid.h"

/* A count or a number of bytes that may be unknown (the file is absent or unreadable); null in the document. */
#define UNKNOWN (-1)

enum {
    ENV_MAX_DEVICE_TREE_TLBS = 4,
    ENV_MAX_PAGE_SIZES = 16, /* arm64 with all contiguous sizes has 4; POWER and x86 fewer */
    ENV_MAX_NODES = 64,      /* larger machines are cut and say so (numa_truncated) */
    ENV_TEXT_BYTES = 128,
    ENV_CPUS_BYTES = 2048,         /* every other CPU of 800: some firmware numbers sockets in turn */
    ENV_COMMAND_LINE_BYTES = 4096, /* COMMAND_LINE_SIZE is at most 4096 on these architectures */
};

struct processor {
    char architecture[32];       /* as uname -m: x86_64, aarch64, ppc64le */
    char vendor[32];             /* "" = unknown, as for the texts below */
    int family, model, stepping; /* UNKNOWN off x86 */
    char brand[ENV_TEXT_BYTES];
    int64_t midr; /* Arm main ID register */
    int64_t pvr;  /* POWER processor version register */
    int cpus_online;
    const struct catalogue_entry *catalogue; /* NULL = not in the catalogue */
};

enum hypervisor_state { HYPERVISOR_UNKNOWN, HYPERVISOR_ABSENT, HYPERVISOR_PRESENT };

struct hypervisor {
    enum hypervisor_state state;
    char name[32]; /* "" = unknown */
};

struct pool_node {
    int node;
    int64_t nr, free, surplus;
};

/* The kernel's huge page pool of one size, in pages. */
struct pool {
    uint64_t page_bytes;
    int64_t nr, free, reserved, surplus, overcommit;
    /* What the hugetlb limits of this process's cgroups leave it, rsvd included; UNKNOWN = no limit or not readable. */
    int64_t cgroup_left_bytes;
    struct pool_node numa[ENV_MAX_NODES];
    size_t numa_count;
};

struct numa_node {
    int id;
    char cpus[ENV_CPUS_BYTES]; /* cpulist; "" = none */
    int64_t mem_total_bytes, mem_free_bytes;
    int64_t mem_reclaimable_bytes; /* file pages and reclaimable slab */
};

/* The bracketed choice of each file; "" = the file is absent. */
struct thp {
    char enabled[16], defrag[16], shmem_enabled[16];
};

/* A size of transparent huge pages below thp_bytes (since 6.8). */
struct multi_size_thp {
    uint64_t page_bytes;
    char enabled[16]; /* the bracketed choice: "never", "madvise", "always", "inherit" (as thp.enabled) */
};

struct memory_state {
    int64_t mem_total_bytes, mem_free_bytes, mem_available_bytes;
    int64_t page_tables_bytes, anon_huge_pages_bytes, shmem_huge_pages_bytes, file_huge_pages_bytes, hugetlb_bytes;
    int64_t direct_map_4k_bytes, direct_map_2m_bytes, direct_map_1g_bytes;
};

struct cgroup {
    int version;                /* 1, 2 or UNKNOWN */
    int64_t memory_limit_bytes; /* the tightest on the way up; UNKNOWN = no limit or not readable */
    int64_t memory_current_bytes;
    char memory_limit_name[32]; /* its file: "memory.max", "memory.high", "memory.limit_in_bytes"; "" = no limit */
    double cpu_quota;           /* CPUs that cpu.max leaves; NAN = no quota or not readable */
};

/* What changes a measured time without being measured. 0 or 1, and UNKNOWN, unless said otherwise. */
struct conditions {
    char governor[32];     /* of frequencies; "" = unknown, as below */
    char clock_source[32]; /* of the kernel: tsc, kvm-clock, hpet */
    int64_t boost;
    int64_t numa_balancing; /* the kernel's number: 0 off, 1 hinting faults, 2 tiering */
    int64_t page_table_isolation;
    int64_t page_table_levels; /* 4 or 5 */
    int64_t smt_active;
    uint64_t second_level_cache_bytes; /* 0 = unknown, as the next */
    uint64_t last_level_cache_bytes;   /* 0 = unknown */
};

struct environment {
    char root[ENV_TEXT_BYTES * 8]; /* "" = the running system */
    struct cpuid_dump cpuid;       /* empty off x86, or when a captured tree lacks it */
    struct tlb_structure device_tree_tlbs[ENV_MAX_DEVICE_TREE_TLBS];
    size_t device_tree_tlb_count;
    struct processor processor;
    struct hypervisor hypervisor;
    char kernel_release[ENV_TEXT_BYTES];
    char kernel_command_line[ENV_COMMAND_LINE_BYTES];
    uint64_t base_page_bytes;    /* 0 = unknown, only in a captured tree */
    uint64_t default_huge_bytes; /* 0 = no hugetlb */
    struct pool pools[ENV_MAX_PAGE_SIZES];
    size_t pool_count;
    struct thp thp;
    uint64_t thp_bytes; /* size of a transparent huge page (hpage_pmd_size); 0 = unknown */
    struct multi_size_thp multi_size[ENV_MAX_PAGE_SIZES]; /* rising */
    size_t multi_size_count;                              /* 0 = this kernel has none */
    struct numa_node nodes[ENV_MAX_NODES];
    size_t node_count;
    bool numa_truncated;
    struct memory_state memory;
    struct cgroup cgroup;
    struct conditions conditions;
};

void environment_free(struct environment *environment);

/* Largest data cache that the core reaches, from the kernel; 32 MiB when it says nothing. */
uint64_t cache_last_level_bytes(const struct environment *environment);

/* What a measurement can take on this NUMA node: free memory, and half of what can be reclaimed, as MemAvailable is
 * made at worst. UNKNOWN where the kernel does not say. */
int64_t environment_node_available_bytes(const struct environment *environment, int node);

/* The NUMA node of a CPU; UNKNOWN where the kernel has none. */
int environment_node_of_cpu(const struct environment *environment, int cpu);

/* The CPUs of a NUMA node; false where it has none, or is not known. */
bool environment_cpus_of_node(const struct environment *environment, int node, struct cpu_list *cpus);

/* True when a program that requests (madvise) transparent huge pages gets them in this size. */
bool environment_grants_multi_size(const struct environment *environment, const struct multi_size_thp *size);

/* Pool of this page size, or NULL. */
const struct pool *environment_pool(const struct environment *environment, uint64_t page_bytes);

/* --- environment_read.c: reading the machine, or what was captured of one ----------------------------------------- */

/* Reads the machine, or the captured tree below `root` ("" = the running system). What cannot be read stays unknown, so
 * this fails only when `root` holds neither proc nor sys: returns 0 or -1. The struct is large: no small stack holds
 * it.
 */
int environment_read(struct environment *environment, const char *root);

/* The environment that a CPUID dump alone tells of; everything else is unknown. Takes the dump over. */
void environment_from_dump(struct environment *environment, const struct cpuid_dump *dump);

/* Appends what CPUID, the device tree and the catalogue say of the TLBs. `verdict` is STATUS_OK, or says why CPUID is
 * silent. */
void environment_tlb_levels(const struct environment *environment, struct tlb_level_list *levels,
                            struct verdict *verdict);

/* Each fills its part of the struct from files below environment->root; what is absent stays unknown. */
void environment_read_processor(struct environment *environment);
void environment_read_pools(struct environment *environment);
void environment_read_nodes(struct environment *environment);
void environment_read_memory(struct environment *environment);
void environment_read_cgroup(struct environment *environment);
void environment_read_conditions(struct environment *environment);

/* The base page by the architecture's rules, for a tree that does not say it; 0 = unknown. */
uint64_t base_page_inferred(const struct environment *environment);

/* Processor, hypervisor and catalogue entry as far as environment->cpuid tells. */
void environment_identify(struct environment *environment);
/* /proc/version: "Linux version 6.1.0-28-amd64 (...) ..." -> "6.1.0-28-amd64"; "" when it is of another form. */
void kernel_version_parse(const char *text, char *release, size_t size);

/* /proc/meminfo: "Key:   N kB" lines. Unknown keys are passed over; fields not seen are not changed. */
void meminfo_parse(const char *text, struct memory_state *memory);

/* /sys/devices/system/node/nodeN/meminfo. */
void node_meminfo_parse(const char *text, struct numa_node *node);

/* "always [madvise] never" -> "madvise"; "" when nothing is in brackets. */
void bracketed_choice(const char *text, char *choice, size_t size);

/* /proc/cpuinfo of x86, arm64 and POWER; fills only what is still unknown. */
void cpuinfo_parse(const char *text, struct processor *processor, struct hypervisor *hypervisor);

/* "hugepages-2048kB" -> 2097152; 0 when the name is of another form. */
uint64_t pool_directory_bytes(const char *name);

/* /proc/self/cgroup: where a controller ("memory", "hugetlb", "cpu") accounts this process. */
struct cgroup_place {
    int version;                       /* 1, 2 or UNKNOWN */
    char path[ENV_COMMAND_LINE_BYTES]; /* below the hierarchy's mount point */
};
void cgroup_parse(const char *text, const char *controller, struct cgroup_place *place);

/* A big-endian 32-bit cell of the device tree; 0 when `length` is not 4. */
uint32_t device_tree_cell(const char *bytes, size_t length);

/* Value of the line "key<spaces>: value" or "key: value"; "" when there is none. Returns whether it was found. */
bool colon_value(const char *text, const char *key, char *value, size_t size);

/* The same for "N kB", in bytes; UNKNOWN when there is none. */
int64_t colon_kilobytes(const char *text, const char *key);
