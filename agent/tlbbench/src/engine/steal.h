/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the hypervisor took from this guest. */
#ifndef TLBBENCH_ENGINE_STEAL_H
#define TLBBENCH_ENGINE_STEAL_H

#include <stdint.h>
#include <stdio.h>

/* Clock ticks (USER_HZ) that the hypervisor took from `cpu` (all cores when negative) since boot; 0 when unknown. */
uint64_t steal_ticks(int cpu);

/* The same of an open /proc/stat. */
uint64_t steal_parse(FILE *file, int cpu);

#endif
