/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that environment_read() is made of, and the pure parsers below them (the fuzz targets call those). */
#pragma once

#include "machine/environment.h"

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

/* cpu.max of version 2, "50000 100000" or "max 100000": CPUs; NAN = no quota. */
double cgroup_cpu_max_parse(const char *text);

/* A big-endian 32-bit cell of the device tree; 0 when `length` is not 4. */
uint32_t device_tree_cell(const char *bytes, size_t length);

/* Value of the line "key<spaces>: value" or "key: value"; "" when there is none. Returns whether it was found. */
bool colon_value(const char *text, const char *key, char *value, size_t size);

/* The same for "N kB", in bytes; UNKNOWN when there is none. */
int64_t colon_kilobytes(const char *text, const char *key);
