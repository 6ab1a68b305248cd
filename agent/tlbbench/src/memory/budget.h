/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a measurement may take. Pure arithmetic over what the environment says. */
#pragma once

#include "base/verdict.h"

#include <stdint.h>

/* Below this nothing useful can be measured: the geometry alone maps about 10 MiB with its page tables. */
#define BUDGET_MIN_BYTES (16ull << 20)

/* Bytes that may be mapped at once: min(25 % of MemAvailable, cgroup headroom less a margin), or `max_memory_bytes`
 * when that is set and lower than what is free. Below BUDGET_MIN_BYTES `verdict` names the limit; else it is STATUS_OK.
 */
uint64_t budget_memory_bytes(uint64_t max_memory_bytes, int64_t mem_available_bytes, int64_t cgroup_limit_bytes,
                             int64_t cgroup_current_bytes, struct verdict *verdict);
