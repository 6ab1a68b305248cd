/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cpuid.h"

#define P4K (4 * KIB)
#define P2M (2 * MIB)
#define P4M (4 * MIB)
#define P1G GIB

/* Family of Zen 5, the first whose CPUID counts L2 TLB entries in units of 32 (L2TlbSizeX32). */
#define FAMILY_ZEN5 0x1A
#define L2_SIZE_UNIT 32
/* A leaf that names itself may claim any number of sub-leaves; real ones have below 10. */
#define MAX_TLB_SUBLEAVES 64

/* --- leaf 2: Intel SDM volume 2A, CPUID leaf 02H, "Encoding of CPUID Leaf 2 Descriptors" --- */

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

static void add(struct cpuid_tlb *tlb, const struct tlb_structure *structure)
{
    if (tlb->structure_count < CPUID_TLB_MAX_STRUCTURES)
        tlb->structures[tlb->structure_count++] = *structure;
}

/* --- Intel: leaf 0x18 (deterministic address translation parameters) and leaf 2 --- */

static bool decode_translation_subleaf(const struct cpuid_registers *r, uint32_t subleaf, struct tlb_structure *s)
{
    static const enum tlb_kind kinds[] = {
        [1] = TLB_DATA, [2] = TLB_INSTRUCTION, [3] = TLB_UNIFIED, [4] = TLB_LOAD, [5] = TLB_STORE};
    static const uint64_t sizes[] = {P4K, P2M, P4M, P1G}; /* EBX[0] to EBX[3] */
    uint32_t type = r->edx & 0x1F;
    uint64_t entries = (uint64_t)(r->ebx >> 16) * r->ecx; /* ways x sets, also when fully associative */

    if (type == 0 || type >= sizeof(kinds) / sizeof(kinds[0]) || entries == 0 || entries > UINT32_MAX)
        return false;
    memset(s, 0, sizeof(*s));
    s->level = r->edx >> 5 & 0x7;
    s->kind = kinds[type];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if ((r->ebx >> i & 1) != 0)
            s->page_bytes[s->page_count++] = sizes[i];
    s->entries = (unsigned)entries;
    s->ways = (r->edx >> 8 & 1) != 0 ? TLB_WAYS_FULL : (int)(r->ebx >> 16);
    (void)snprintf(s->origin, sizeof(s->origin), "leaf18:%" PRIu32, subleaf);
    return s->page_count > 0 && s->level > 0;
}

/* Sub-leaf 0 may itself be null while later ones are not (Ice Lake), so the walk skips null ones and never stops early.
 */
static void decode_leaf_18(const struct cpuid_dump *dump, struct cpuid_tlb *tlb)
{
    const struct cpuid_registers *first = cpuid_find(dump, 0x18, 0);
    uint32_t last = first != NULL ? first->eax : 0;

    if (first == NULL)
        return;
    for (uint32_t subleaf = 0; subleaf <= last && subleaf < MAX_TLB_SUBLEAVES; subleaf++) {
        const struct cpuid_registers *r = cpuid_find(dump, 0x18, subleaf);
        struct tlb_structure structure;

        if (r != NULL && decode_translation_subleaf(r, subleaf, &structure))
            add(tlb, &structure);
    }
}

/* Descriptors come in any byte order. AL is a count (always 01), and a register with bit 31 set holds none. */
static void read_descriptors(const struct cpuid_dump *dump, struct cpuid_tlb *tlb)
{
    const struct cpuid_registers *r = cpuid_find(dump, 2, 0);

    if (r == NULL || (r->eax & 0xFF) != 0x01)
        return;
    const uint32_t registers[] = {r->eax & ~UINT32_C(0xFF), r->ebx, r->ecx, r->edx};

    for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
        if ((registers[i] >> 31) != 0)
            continue;
        for (unsigned shift = 0; shift < 32; shift += 8) {
            unsigned char descriptor = (unsigned char)(registers[i] >> shift & 0xFF);

            if (descriptor != 0 && tlb->descriptor_count < CPUID_TLB_MAX_DESCRIPTORS)
                tlb->descriptors[tlb->descriptor_count++] = descriptor;
        }
    }
}

static void decode_intel(const struct cpuid_dump *dump, struct cpuid_tlb *tlb)
{
    unsigned char use_leaf_18 = 0xFE;
    bool points_to_leaf_18 = false;

    read_descriptors(dump, tlb);
    decode_leaf_18(dump, tlb);
    for (size_t i = 0; i < tlb->descriptor_count; i++)
        points_to_leaf_18 = points_to_leaf_18 || tlb->descriptors[i] == use_leaf_18;
    if (tlb->structure_count > 0)
        return;
    for (size_t i = 0; i < tlb->descriptor_count; i++) {
        struct tlb_structure structures[2];
        size_t count = cpuid_descriptor(tlb->descriptors[i], structures);

        for (size_t k = 0; k < count; k++)
            add(tlb, &structures[k]);
    }
    if (tlb->structure_count == 0)
        verdict_set(&tlb->verdict, STATUS_CPUID_HIDDEN, "%s",
                    points_to_leaf_18 ? "leaf 2 points to leaf 0x18, which is zero or absent"
                                      : "leaves 2 and 0x18 describe no TLB");
}

/* --- AMD and Hygon: leaves 0x80000005, 0x80000006 and 0x80000019 (APM volume 3, appendix E) --- */

/* Ways by the 4-bit code of the L2 and 1G fields; several codes are ranges. */
static void ways_of_code(unsigned code, struct tlb_structure *s)
{
    static const struct {
        short min, max;
    } ranges[16] = {[1] = {1, 1},    [2] = {2, 2},    [3] = {3, 3},     [4] = {4, 5},
                    [5] = {6, 7},    [6] = {8, 15},   [8] = {16, 31},   [10] = {32, 47},
                    [11] = {48, 63}, [12] = {64, 95}, [13] = {96, 127}, [15] = {TLB_WAYS_FULL, TLB_WAYS_FULL}};

    s->ways = ranges[code].min;
    s->ways_max = ranges[code].max > ranges[code].min ? ranges[code].max : 0;
}

/* Registers of two TLBs of one page size each, data in the upper half. */
static const struct amd_register {
    uint32_t leaf;
    bool is_ebx;
    /* A 4-bit code of the ways and a 12-bit size, a zero upper half meaning that the lower one is a unified TLB of the
     * second level; else 8 bits of ways (0xFF = full) and 8 of size. */
    bool is_coded;
    unsigned level;
    uint64_t page_bytes;
} AMD_REGISTERS[] = {{0x80000005, false, false, 1, P2M}, {0x80000005, true, false, 1, P4K},
                     {0x80000006, false, true, 2, P2M},  {0x80000006, true, true, 2, P4K},
                     {0x80000019, false, true, 1, P1G},  {0x80000019, true, true, 2, P1G}};

static void decode_amd_register(struct cpuid_tlb *tlb, const struct amd_register *from, uint32_t value)
{
    unsigned unit = from->level == 2 && tlb->l2_size_x32 ? L2_SIZE_UNIT : 1;

    for (unsigned half = 0; half < 2; half++) {
        uint32_t bits = half == 0 ? value >> 16 : value & 0xFFFF;
        bool is_unified = half == 1 && value >> 16 == 0 && from->is_coded && from->level == 2;
        struct tlb_structure s = {.level = from->level, .page_bytes = {from->page_bytes}, .page_count = 1};

        s.kind = half == 0 ? TLB_DATA : is_unified ? TLB_UNIFIED : TLB_INSTRUCTION;
        s.entries = from->is_coded ? (bits & 0xFFF) * unit : bits & 0xFF;
        if (from->is_coded)
            ways_of_code(bits >> 12, &s);
        else
            s.ways = bits >> 8 == 0xFF ? TLB_WAYS_FULL : (int)(bits >> 8);
        s.note = s.ways_max > 0 ? "CPUID gives a range of ways" : NULL;
        (void)snprintf(s.origin, sizeof(s.origin), "%08" PRIx32 ":%s", from->leaf, from->is_ebx ? "ebx" : "eax");
        if (s.entries > 0) /* zero means unknown, and on K8 also none: either way nothing to say */
            add(tlb, &s);
    }
}

static uint32_t extended_bit(const struct cpuid_dump *dump, uint32_t leaf, bool edx, unsigned bit)
{
    const struct cpuid_registers *r = cpuid_find(dump, leaf, 0);

    return r == NULL ? 0 : (edx ? r->edx : r->eax) >> bit & 1;
}

static void decode_amd(const struct cpuid_dump *dump, const struct cpuid_identity *identity, struct cpuid_tlb *tlb)
{
    const struct cpuid_registers *huge = cpuid_find(dump, 0x80000019, 0);
    bool has_1g_pages = extended_bit(dump, 0x80000001, true, 26) != 0;

    tlb->l2_size_x32 = extended_bit(dump, 0x80000021, false, 14) != 0;
    tlb->l2_size_doubtful = identity->family == FAMILY_ZEN5 && !tlb->l2_size_x32 && identity->hypervisor;
    tlb->huge_1g_silent = has_1g_pages && (huge == NULL || (huge->eax == 0 && huge->ebx == 0));
    for (size_t i = 0; i < sizeof(AMD_REGISTERS) / sizeof(AMD_REGISTERS[0]); i++) {
        const struct cpuid_registers *r = cpuid_find(dump, AMD_REGISTERS[i].leaf, 0);

        if (r != NULL)
            decode_amd_register(tlb, &AMD_REGISTERS[i], AMD_REGISTERS[i].is_ebx ? r->ebx : r->eax);
    }
    if (tlb->structure_count == 0)
        verdict_set(&tlb->verdict, STATUS_CPUID_HIDDEN,
                    "leaves 0x80000005, 0x80000006 and 0x80000019 are zero or absent");
}

void cpuid_tlb_decode(const struct cpuid_dump *dump, const struct cpuid_identity *identity, struct cpuid_tlb *tlb)
{
    memset(tlb, 0, sizeof(*tlb));
    if (!identity->known)
        verdict_set(&tlb->verdict, STATUS_UNSUPPORTED, "there are no CPUID registers of leaves 0 and 1");
    else if (strcmp(identity->vendor, "GenuineIntel") == 0)
        decode_intel(dump, tlb);
    else if (strcmp(identity->vendor, "AuthenticAMD") == 0 || strcmp(identity->vendor, "HygonGenuine") == 0)
        decode_amd(dump, identity, tlb);
    else
        verdict_set(&tlb->verdict, STATUS_UNSUPPORTED, "how '%s' describes TLBs in CPUID is not known here",
                    identity->vendor);
}

static void add_silent_1g(struct tlb_level_list *levels)
{
    for (unsigned number = 1; number <= 2; number++) {
        struct tlb_level level = {.level = number,
                                  .kind = TLB_DATA,
                                  .page_bytes = P1G,
                                  .source = SOURCE_CPUID,
                                  .confidence = CONFIDENCE_LOW,
                                  .note = "1G pages are supported but leaf 0x80000019 is silent: unknown, not none"};

        tlb_levels_add(levels, &level);
    }
}

void cpuid_tlb_levels(const struct cpuid_tlb *tlb, const struct cpuid_identity *identity, struct tlb_level_list *levels)
{
    static const char doubt[] = "32 times as many where the hypervisor hides the bit 0x80000021 EAX[14] (L2TlbSizeX32)";
    size_t from = levels->count;
    /* A hypervisor writes CPUID as it likes; on bare metal it is still a claim, not a measurement. */
    enum confidence confidence = identity->hypervisor ? CONFIDENCE_LOW : CONFIDENCE_MEDIUM;

    tlb_levels_from_structures(levels, tlb->structures, tlb->structure_count, SOURCE_CPUID, confidence);
    for (size_t i = from; tlb->l2_size_doubtful && i < levels->count; i++)
        if (levels->items[i].level == 2)
            (void)snprintf(levels->items[i].note, sizeof(levels->items[i].note), "%s", doubt);
    if (tlb->huge_1g_silent)
        add_silent_1g(levels);
}
