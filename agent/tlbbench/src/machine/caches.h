/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the data caches, from the kernel. */
#ifndef TLBBENCH_MACHINE_CACHES_H
#define TLBBENCH_MACHINE_CACHES_H

#include <stdint.h>

/* Largest data cache that the core reaches, from the kernel; 32 MiB when it says nothing. */
uint64_t cache_last_level_bytes(void);

#endif
