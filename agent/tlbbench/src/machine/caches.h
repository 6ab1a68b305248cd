/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the data caches, from the kernel. */
#pragma once

#include <stdint.h>

/* Largest data cache that the core reaches, from the kernel; 32 MiB when it says nothing. */
uint64_t cache_last_level_bytes(void);
