/* SPDX-License-Identifier: Apache-2.0 */
/* The TLB descriptors of CPUID leaf 2: Intel SDM volume 2A, CPUID leaf 02H, "Encoding of CPUID Leaf 2 Descriptors". */
#include "machine/cpuid_descriptor.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

#define P4K (4 * KIB)
#define P2M (2 * MIB)
#define P4M (4 * MIB)
#define P1G GIB

struct descriptor {
    unsigned char code;
    unsigned char level;
    enum tlb_kind kind;
    uint64_t page_bytes[3];
    unsigned short entries;
    short ways;
    const char *note;
};

/* A code that stands twice is two structures. The level is the manual's "DTLB1" or "second level" where it says so. */
static const struct descriptor descriptors[] = {
    {0x01, 1, TLB_INSTRUCTION, {P4K}, 32, 4, NULL},
    {0x02, 1, TLB_INSTRUCTION, {P4M}, 2, TLB_WAYS_FULL, NULL},
    {0x03, 1, TLB_DATA, {P4K}, 64, 4, NULL},
    {0x04, 1, TLB_DATA, {P4M}, 8, 4, NULL},
    {0x05, 2, TLB_DATA, {P4M}, 32, 4, NULL},
    {0x0B, 1, TLB_INSTRUCTION, {P4M}, 4, 4, NULL},
    {0x4F, 1, TLB_INSTRUCTION, {P4K}, 32, TLB_WAYS_UNKNOWN, NULL},
    {0x50, 1, TLB_INSTRUCTION, {P4K, P2M, P4M}, 64, TLB_WAYS_UNKNOWN, NULL},
    {0x51, 1, TLB_INSTRUCTION, {P4K, P2M, P4M}, 128, TLB_WAYS_UNKNOWN, NULL},
    {0x52, 1, TLB_INSTRUCTION, {P4K, P2M, P4M}, 256, TLB_WAYS_UNKNOWN, NULL},
    {0x55, 1, TLB_INSTRUCTION, {P2M, P4M}, 7, TLB_WAYS_FULL, NULL},
    {0x56, 1, TLB_DATA, {P4M}, 16, 4, NULL},
    {0x57, 1, TLB_DATA, {P4K}, 16, 4, NULL},
    {0x59, 1, TLB_DATA, {P4K}, 16, TLB_WAYS_FULL, NULL},
    {0x5A, 1, TLB_DATA, {P2M, P4M}, 32, 4, NULL},
    {0x5B, 1, TLB_DATA, {P4K, P4M}, 64, TLB_WAYS_UNKNOWN, NULL},
    {0x5C, 1, TLB_DATA, {P4K, P4M}, 128, TLB_WAYS_UNKNOWN, NULL},
    {0x5D, 1, TLB_DATA, {P4K, P4M}, 256, TLB_WAYS_UNKNOWN, NULL},
    {0x61, 1, TLB_INSTRUCTION, {P4K}, 48, TLB_WAYS_FULL, NULL},
    {0x63, 1, TLB_DATA, {P2M, P4M}, 32, 4, NULL},
    {0x63, 1, TLB_DATA, {P1G}, 4, 4, NULL},
    {0x64, 2, TLB_DATA, {P4K}, 512, 4, NULL},
    {0x6A, 1, TLB_DATA, {P4K}, 64, 8, NULL},
    {0x6B, 2, TLB_DATA, {P4K}, 256, 8, NULL},
    {0x6C, 2, TLB_DATA, {P2M, P4M}, 128, 8, NULL},
    {0x6D, 2, TLB_DATA, {P1G}, 16, TLB_WAYS_FULL, NULL},
    {0x76, 1, TLB_INSTRUCTION, {P2M, P4M}, 8, TLB_WAYS_FULL, NULL},
    {0xA0, 1, TLB_DATA, {P4K}, 32, TLB_WAYS_FULL, NULL},
    {0xB0, 1, TLB_INSTRUCTION, {P4K}, 128, 4, NULL},
    {0xB1, 1, TLB_INSTRUCTION, {P2M}, 8, 4, "or 4 of 4M"},
    {0xB2, 1, TLB_INSTRUCTION, {P4K}, 64, 4, NULL},
    {0xB3, 1, TLB_DATA, {P4K}, 128, 4, NULL},
    {0xB4, 2, TLB_DATA, {P4K}, 256, 4, NULL},
    {0xB5, 1, TLB_INSTRUCTION, {P4K}, 64, 8, NULL},
    {0xB6, 1, TLB_INSTRUCTION, {P4K}, 128, 8, NULL},
    {0xBA, 2, TLB_DATA, {P4K}, 64, 4, NULL},
    {0xC0, 1, TLB_DATA, {P4K, P4M}, 8, 4, NULL},
    {0xC1, 2, TLB_UNIFIED, {P4K, P2M}, 1024, 8, NULL},
    {0xC2, 1, TLB_DATA, {P4K, P2M}, 16, 4, NULL},
    {0xC3, 2, TLB_UNIFIED, {P4K, P2M}, 1536, 6, "from Skylake on the hardware is 12-way (erratum SKL148)"},
    {0xC3, 2, TLB_UNIFIED, {P1G}, 16, 4, NULL},
    {0xC4, 2, TLB_DATA, {P2M, P4M}, 32, 4, NULL},
    {0xCA, 2, TLB_UNIFIED, {P4K}, 512, 4, NULL},
};

size_t cpuid_descriptor(unsigned char code, struct tlb_structure structures[2])
{
    size_t found = 0;

    for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]) && found < 2; i++) {
        const struct descriptor *d = &descriptors[i];

        if (d->code != code)
            continue;
        struct tlb_structure *s = &structures[found++];
        memset(s, 0, sizeof(*s));
        s->level = d->level;
        s->kind = d->kind;
        for (size_t p = 0; p < sizeof(d->page_bytes) / sizeof(d->page_bytes[0]) && d->page_bytes[p] != 0; p++)
            s->page_bytes[s->page_count++] = d->page_bytes[p];
        s->entries = d->entries;
        s->ways = d->ways;
        s->note = d->note;
        (void)snprintf(s->origin, sizeof(s->origin), "leaf2:0x%02x", code);
    }
    return found;
}
