/* SPDX-License-Identifier: Apache-2.0 */
/* The one-byte TLB descriptors of CPUID leaf 2. */
#ifndef TLBBENCH_MACHINE_CPUID_DESCRIPTOR_H
#define TLBBENCH_MACHINE_CPUID_DESCRIPTOR_H

#include "machine/tlb_levels.h"

#include <stddef.h>

/* Structures of one leaf 2 descriptor (none, one or two). Returns their number. */
size_t cpuid_descriptor(unsigned char descriptor, struct tlb_structure structures[2]);

#endif
