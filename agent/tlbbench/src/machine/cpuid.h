/* SPDX-License-Identifier: Apache-2.0 */
/* CPUID registers of one logical CPU: captured here, or read from a dump in text form. */
#pragma once

#include "machine/tlb_levels.h"

enum {
    CPUID_MAX_LEAVES = 1024, /* the longest real dumps have below 200 for one logical CPU */
    CPUID_ERROR_BYTES = 200,
};

struct cpuid_registers {
    uint32_t eax, ebx, ecx, edx;
};

struct cpuid_leaf {
    uint32_t leaf, subleaf;
    struct cpuid_registers registers;
};

struct cpuid_dump {
    struct cpuid_leaf *leaves;
    size_t count;
};

/* Registers of this leaf and sub-leaf, or NULL when the dump lacks them. */
const struct cpuid_registers *cpuid_find(const struct cpuid_dump *dump, uint32_t leaf, uint32_t subleaf);

/* Appends registers. Returns 0, or -1 when memory ran out or CPUID_MAX_LEAVES is reached. */
int cpuid_add(struct cpuid_dump *dump, uint32_t leaf, uint32_t subleaf, struct cpuid_registers registers);

/* Reads the running CPU. Returns 0, or -1 on a processor without CPUID (then the dump is empty). */
int cpuid_capture(struct cpuid_dump *dump);

/* Reads the text layout of Todd Allen's `cpuid -r`:
 *     CPU 0:
 *        0x00000000 0x00: eax=0x00000010 ebx=0x68747541 ecx=0x444d4163 edx=0x69746e65
 * Only the first logical CPU is taken; a register has eight digits, and a leaf that comes twice must say the same.
 * Returns 0, or -1 with one line in `error`. */
int cpuid_read(struct cpuid_dump *dump, FILE *in, char error[CPUID_ERROR_BYTES]);

/* Writes the same layout. */
void cpuid_write(const struct cpuid_dump *dump, FILE *out);

void cpuid_free(struct cpuid_dump *dump);

/* Who made the processor, from leaves 0, 1, 0x40000000 and 0x80000002 to 4. Texts are "" when their leaves are absent.
 */
struct cpuid_identity {
    bool known; /* false: leaf 0 or 1 is absent */
    char vendor[13];
    unsigned family, model, stepping;
    char brand[49];
    bool hypervisor;
    char hypervisor_vendor[13];
};

void cpuid_identify(const struct cpuid_dump *dump, struct cpuid_identity *identity);

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
