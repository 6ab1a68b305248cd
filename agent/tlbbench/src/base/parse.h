/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for the small texts of the command line, /proc and /sys. All of them refuse what they do not fully
 * understand. */
#pragma once

#include "base/std.h"

enum { CPU_LIST_MAX = 4096 }; /* CONFIG_NR_CPUS of the largest distribution kernels is 8192; servers stay below this */

/* A set of CPU or node numbers, as in /sys/devices/system/cpu/online. */
struct cpu_list {
    uint64_t bits[CPU_LIST_MAX / 64];
    int count;
};

/* An unsigned as a set of small numbers, such as those of an enum. */
#define SET_BIT(value) (1u << (unsigned)(value))

/* A list of the command line. */
enum { NUMBER_LIST_MAX = 16 };
struct number_list {
    uint64_t items[NUMBER_LIST_MAX];
    size_t count;
};

bool number_list_has(const struct number_list *list, uint64_t number);

/* The largest number; 0 when there is none. */
uint64_t number_list_largest(const struct number_list *list);

/* Decimal or 0x-hexadecimal digits only. Returns false on anything else and on overflow. */
bool parse_u64(const char *text, uint64_t *value);

/* A size with an optional unit: bytes, or K, M, G, T (powers of 1024; "KiB" and "kB" mean the same). */
bool parse_size(const char *text, uint64_t *bytes);

/* Seconds with an optional fraction ("2.5"). */
bool parse_seconds(const char *text, double *seconds);

/* "0-3,8" -> the set; an empty text is the empty set. Trailing white space is allowed. */
bool parse_cpu_list(const char *text, struct cpu_list *list);
bool cpu_list_has(const struct cpu_list *list, int cpu);

/* Copies `text` into `out` without leading and trailing white space, cut to `size` - 1 bytes. Returns its length. */
size_t parse_trimmed(const char *text, char *out, size_t size);
