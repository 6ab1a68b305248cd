/* SPDX-License-Identifier: Apache-2.0 */
/* TLB geometry from CPUID registers, by the vendors' definitions. CPUID is a prior: hypervisors hide leaves, and some
 * processors describe themselves wrongly. */
#pragma once

#include "machine/cpuid.h"
#include "machine/tlb_levels.h"

enum {
    CPUID_TLB_MAX_STRUCTURES = 48,
    CPUID_TLB_MAX_DESCRIPTORS = 16, /* leaf 2 has at most 15 */
};

struct cpuid_tlb {
    struct verdict verdict; /* STATUS_OK, or STATUS_CPUID_HIDDEN / STATUS_UNSUPPORTED with the reason */
    struct tlb_structure structures[CPUID_TLB_MAX_STRUCTURES];
    size_t structure_count;
    unsigned char descriptors[CPUID_TLB_MAX_DESCRIPTORS]; /* of leaf 2, as they come */
    size_t descriptor_count;
    bool l2_size_x32;      /* AMD 0x80000021 EAX[14] */
    bool l2_size_doubtful; /* a guest on a core that has the x32 bit, without the bit */
    bool huge_1g_silent;   /* 1G pages are supported, yet leaf 0x80000019 is absent or zero */
};

/* Decodes; everything the registers do not say stays out of `structures`. */
void cpuid_tlb_decode(const struct cpuid_dump *dump, const struct cpuid_identity *identity, struct cpuid_tlb *tlb);

/* Appends the levels with source cpuid, and a level with unknown entries for what CPUID should say and does not. */
void cpuid_tlb_levels(const struct cpuid_tlb *tlb, const struct cpuid_identity *identity,
                      struct tlb_level_list *levels);

/* Structures of a one-byte descriptor of leaf 2 (none, one or two). Returns their number. */
size_t cpuid_descriptor(unsigned char descriptor, struct tlb_structure structures[2]);
