/* SPDX-License-Identifier: Apache-2.0 */
/* Register vectors built from the vendors' definitions: Intel SDM volume 2A (leaves 2 and 0x18), AMD APM volume 3
 * appendix E (0x80000005, 0x80000006, 0x80000019, 0x80000021). */
#include "base/verdict.h"
#include "harness.h"
#include "machine/cpuid.h"
#include "machine/tlb_levels.h"

#include <stdlib.h>
#include <string.h>

#define P4K UINT64_C(4096)
#define P2M (UINT64_C(2) << 20)
#define P4M (UINT64_C(4) << 20)
#define P1G (UINT64_C(1) << 30)

enum translation_type { TYPE_NULL, TYPE_DATA, TYPE_INSTRUCTION, TYPE_UNIFIED, TYPE_LOAD, TYPE_STORE };
enum page_bits { BIT_4K = 1, BIT_2M = 2, BIT_4M = 4, BIT_1G = 8 };

static void add(struct cpuid_dump *dump, uint32_t leaf, uint32_t subleaf, uint32_t eax, uint32_t ebx, uint32_t ecx,
                uint32_t edx)
{
    if (cpuid_add(dump, leaf, subleaf, (struct cpuid_registers){eax, ebx, ecx, edx}) != 0)
        abort();
}

static uint32_t four(const char *text)
{
    return (uint32_t)(unsigned char)text[0] | (uint32_t)(unsigned char)text[1] << 8 |
           (uint32_t)(unsigned char)text[2] << 16 | (uint32_t)(unsigned char)text[3] << 24;
}

/* Leaves 0 and 1: the vendor and the signature; `hypervisor` sets leaf 1 ECX[31]. */
static void add_identity(struct cpuid_dump *dump, const char *vendor, uint32_t signature, bool hypervisor)
{
    add(dump, 0, 0, 0x20, four(vendor), four(vendor + 8), four(vendor + 4));
    add(dump, 1, 0, signature, 0, hypervisor ? UINT32_C(1) << 31 : 0, 0);
}

/* One sub-leaf of leaf 0x18: EBX = ways and page sizes, ECX = sets, EDX = type, level and full associativity. */
static void add_translation(struct cpuid_dump *dump, uint32_t subleaf, uint32_t last, enum translation_type type,
                            uint32_t level, uint32_t pages, uint32_t ways, uint32_t sets, bool full)
{
    add(dump, 0x18, subleaf, last, ways << 16 | pages, sets, (uint32_t)type | level << 5 | (full ? 1U << 8 : 0));
}

static void decode(struct cpuid_dump *dump, struct cpuid_tlb *tlb, struct cpuid_identity *identity)
{
    cpuid_identify(dump, identity);
    cpuid_tlb_decode(dump, identity, tlb);
}

/* Entries of the structure, 0 when there is none; the ways in *ways. */
static unsigned entries(const struct cpuid_tlb *tlb, unsigned level, enum tlb_kind kind, uint64_t page_bytes, int *ways)
{
    for (size_t i = 0; i < tlb->structure_count; i++) {
        const struct tlb_structure *s = &tlb->structures[i];

        for (size_t p = 0; s->level == level && s->kind == kind && p < s->page_count; p++) {
            if (s->page_bytes[p] == page_bytes) {
                *ways = s->ways;
                return s->entries;
            }
        }
    }
    *ways = 0;
    return 0;
}

#define CHECK_TLB(level, kind, page, want_entries, want_ways)                                                          \
    do {                                                                                                               \
        int ways_found = 0;                                                                                            \
        CHECK_U64(entries(&tlb, level, kind, page, &ways_found), want_entries);                                        \
        CHECK_I64(ways_found, want_ways);                                                                              \
    } while (0)

static void signatures(struct harness *h)
{
    static const struct {
        const char *vendor;
        uint32_t signature;
        unsigned family, model, stepping;
    } known[] = {
        {"GenuineIntel", 0x000c06f2, 6, 207, 2}, {"GenuineIntel", 0x00050657, 6, 85, 7},
        {"AuthenticAMD", 0x00b00f21, 26, 2, 1},  {"AuthenticAMD", 0x00a10f11, 25, 17, 1},
        {"AuthenticAMD", 0x00020f32, 15, 35, 2},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct cpuid_dump dump = {0};
        struct cpuid_identity identity;

        add_identity(&dump, known[i].vendor, known[i].signature, false);
        cpuid_identify(&dump, &identity);
        CHECK(identity.known);
        CHECK_TEXT(identity.vendor, known[i].vendor);
        CHECK_U64(identity.family, known[i].family);
        CHECK_U64(identity.model, known[i].model);
        CHECK_U64(identity.stepping, known[i].stepping);
        cpuid_free(&dump);
    }
}

static void leaf_18_with_null_first_subleaf(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "GenuineIntel", 0x000606a6, false);
    add(&dump, 2, 0, 0x00feff01, 0xf0, 0, 0);
    add_translation(&dump, 0, 4, TYPE_NULL, 0, 0, 0, 0, false);
    add_translation(&dump, 1, 0, TYPE_LOAD, 1, BIT_4K, 4, 16, false);
    add_translation(&dump, 2, 0, TYPE_STORE, 1, BIT_4K | BIT_2M | BIT_4M | BIT_1G, 16, 1, true);
    add_translation(&dump, 3, 0, TYPE_NULL, 0, 0, 0, 0, false); /* a hole in the middle */
    add_translation(&dump, 4, 0, TYPE_UNIFIED, 2, BIT_4K | BIT_2M, 8, 128, false);
    decode(&dump, &tlb, &identity);
    CHECK(tlb.verdict.status == STATUS_OK);
    CHECK_U64(tlb.structure_count, 3);
    CHECK_TLB(1, TLB_LOAD, P4K, 64, 4);
    CHECK_TLB(1, TLB_STORE, P1G, 16, TLB_WAYS_FULL); /* ways x sets holds for full associativity too */
    CHECK_TLB(2, TLB_UNIFIED, P2M, 1024, 8);
    cpuid_free(&dump);
}

static void leaf_18_hidden(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "GenuineIntel", 0x000c06f2, true);
    add(&dump, 2, 0, 0x00feff01, 0xf0, 0, 0);
    add_translation(&dump, 0, 0, TYPE_NULL, 0, 0, 0, 0, false);
    decode(&dump, &tlb, &identity);
    CHECK(tlb.verdict.status == STATUS_CPUID_HIDDEN);
    CHECK_U64(tlb.structure_count, 0);
    CHECK(strstr(tlb.verdict.reason, "0x18") != NULL);
    CHECK(identity.hypervisor);
    cpuid_free(&dump);
}

static void leaf_18_claims_are_bounded(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "GenuineIntel", 0x000606a6, false);
    add_translation(&dump, 0, UINT32_MAX, TYPE_DATA, 1, BIT_4K, 0xFFFF, UINT32_MAX, false); /* overflows */
    add_translation(&dump, 1, 0, (enum translation_type)31, 1, BIT_4K, 4, 16, false);       /* no such type */
    add_translation(&dump, 2, 0, TYPE_DATA, 1, 0, 4, 16, false);                            /* holds no page */
    decode(&dump, &tlb, &identity);
    CHECK_U64(tlb.structure_count, 0);
    cpuid_free(&dump);
}

static void descriptors_in_any_order(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "GenuineIntel", 0x000306f2, false);
    /* AL = 01 is a count. ECX has bit 31 set: what it holds (0xB2) is no descriptor. */
    add(&dump, 2, 0, 0x03630001 | 0x76 << 8, 0x00f0b5ff, 0x800000b2, 0x00c30000);
    decode(&dump, &tlb, &identity);
    CHECK_TLB(1, TLB_DATA, P2M, 32, 4); /* 0x63 is two structures */
    CHECK_TLB(1, TLB_DATA, P1G, 4, 4);
    CHECK_TLB(1, TLB_DATA, P4K, 64, 4);
    CHECK_TLB(1, TLB_INSTRUCTION, P2M, 8, TLB_WAYS_FULL);
    CHECK_TLB(1, TLB_INSTRUCTION, P4K, 64, 8); /* 0xB5, not 0xB2's 4 ways */
    CHECK_TLB(2, TLB_UNIFIED, P4K, 1536, 6);   /* 0xC3 is two structures */
    CHECK_TLB(2, TLB_UNIFIED, P1G, 16, 4);
    CHECK_U64(tlb.structure_count, 7);
    cpuid_free(&dump);
}

static void descriptor_table_is_whole(struct harness *h)
{
    unsigned structures = 0;

    for (unsigned code = 0; code <= 0xFF; code++) {
        struct tlb_structure found[2];
        size_t count = cpuid_descriptor((unsigned char)code, found);

        structures += (unsigned)count;
        for (size_t i = 0; i < count; i++) {
            CHECK(found[i].page_count > 0 && found[i].entries > 0);
            CHECK(found[i].level == 1 || found[i].level == 2);
        }
        CHECK(count < 2 || code == 0x63 || code == 0xC3);
    }
    CHECK_U64(structures, 43); /* 41 descriptors of TLBs, two of them double */
}

/* Zen 4 as the manual's fields: L1 72 and 64, L2 data 3072, L2 instructions 512, 1G 72, 64 and 64. */
static void add_zen(struct cpuid_dump *dump, uint32_t l2_2m, uint32_t l2_4k, uint32_t l1_1g, uint32_t l2_1g)
{
    add(dump, 0x80000001, 0, 0, 0, 0, UINT32_C(1) << 26); /* 1G pages */
    add(dump, 0x80000005, 0, 0xff48ff40, 0xff48ff40, 0, 0);
    add(dump, 0x80000006, 0, l2_2m, l2_4k, 0, 0);
    add(dump, 0x80000019, 0, l1_1g, l2_1g, 0, 0);
}

static void amd_codes_are_ranges(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "AuthenticAMD", 0x00a10f11, false);
    add_zen(&dump, 0x5c002200, 0x6c004200, 0xf048f040, 0xf0400000);
    decode(&dump, &tlb, &identity);
    CHECK(!tlb.l2_size_x32 && !tlb.l2_size_doubtful && !tlb.huge_1g_silent);
    CHECK_TLB(1, TLB_DATA, P4K, 72, TLB_WAYS_FULL);
    CHECK_TLB(1, TLB_INSTRUCTION, P2M, 64, TLB_WAYS_FULL);
    CHECK_TLB(2, TLB_DATA, P2M, 3072, 6); /* code 5: 6 to 7 */
    CHECK_TLB(2, TLB_DATA, P4K, 3072, 8); /* code 6: 8 to 15 */
    CHECK_TLB(2, TLB_INSTRUCTION, P4K, 512, 4);
    CHECK_TLB(2, TLB_INSTRUCTION, P2M, 512, 2);
    CHECK_TLB(1, TLB_DATA, P1G, 72, TLB_WAYS_FULL);
    CHECK_TLB(2, TLB_DATA, P1G, 64, TLB_WAYS_FULL);
    for (size_t i = 0; i < tlb.structure_count; i++)
        if (tlb.structures[i].level == 2 && tlb.structures[i].kind == TLB_DATA &&
            tlb.structures[i].page_bytes[0] == P4K)
            CHECK_I64(tlb.structures[i].ways_max, 15);
    cpuid_free(&dump);
}

static void zen5_counts_in_units_of_32(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "AuthenticAMD", 0x00b00f21, false);
    add_zen(&dump, 0x40802040, 0x60804040, 0xf060f040, 0x40200000);
    add(&dump, 0x80000021, 0, UINT32_C(1) << 14, 0, 0, 0);
    decode(&dump, &tlb, &identity);
    CHECK(tlb.l2_size_x32 && !tlb.l2_size_doubtful);
    CHECK_TLB(2, TLB_DATA, P4K, 4096, 8);
    CHECK_TLB(2, TLB_DATA, P2M, 4096, 4);
    CHECK_TLB(2, TLB_DATA, P1G, 1024, 4);
    CHECK_TLB(2, TLB_INSTRUCTION, P4K, 2048, 4);
    CHECK_TLB(1, TLB_DATA, P1G, 96, TLB_WAYS_FULL); /* the first level is not multiplied */
    cpuid_free(&dump);
}

static void zen5_guest_without_the_bit_is_doubted(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;
    struct tlb_level_list levels = {0};

    add_identity(&dump, "AuthenticAMD", 0x00b00f21, true);
    add_zen(&dump, 0x40802040, 0x60804040, 0, 0);
    decode(&dump, &tlb, &identity);
    CHECK(tlb.l2_size_doubtful && tlb.huge_1g_silent);
    CHECK_TLB(2, TLB_DATA, P4K, 128, 8); /* as the guest sees it */
    cpuid_tlb_levels(&tlb, &identity, &levels);
    unsigned silent = 0;
    for (size_t i = 0; i < levels.count; i++) {
        CHECK(levels.items[i].confidence == CONFIDENCE_LOW);
        if (levels.items[i].level == 2)
            CHECK(levels.items[i].note[0] != '\0');
        silent += levels.items[i].page_bytes == P1G && levels.items[i].entries == TLB_ENTRIES_UNKNOWN;
    }
    CHECK_U64(silent, 2); /* zero means unknown, so both levels say null for 1G */
    cpuid_free(&dump);
}

static void amd_zero_is_no_structure(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "AuthenticAMD", 0x00020f32, false);
    add(&dump, 0x80000005, 0, 0xff08ff08, 0xff20ff20, 0, 0);
    add(&dump, 0x80000006, 0, 0, 0x42004200, 0, 0); /* K8: no second level for 2M */
    decode(&dump, &tlb, &identity);
    CHECK_TLB(1, TLB_DATA, P2M, 8, TLB_WAYS_FULL);
    CHECK_TLB(2, TLB_DATA, P4K, 512, 4);
    CHECK_TLB(2, TLB_DATA, P2M, 0, 0);
    CHECK(!tlb.huge_1g_silent); /* no 1G pages, nothing to be silent about */
    cpuid_free(&dump);
}

static void amd_zero_upper_half_is_unified(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "AuthenticAMD", 0x00000f00, false);
    add(&dump, 0x80000006, 0, 0, 0x00004100, 0, 0);
    decode(&dump, &tlb, &identity);
    CHECK_TLB(2, TLB_UNIFIED, P4K, 256, 4);
    cpuid_free(&dump);
}

static void other_vendors_are_unsupported(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_tlb tlb;
    struct cpuid_identity identity;

    add_identity(&dump, "  Shanghai  ", 0x000307b0, false);
    decode(&dump, &tlb, &identity);
    CHECK(tlb.verdict.status == STATUS_UNSUPPORTED);
    CHECK(strstr(tlb.verdict.reason, "Shanghai") != NULL);
    cpuid_free(&dump);
    memset(&dump, 0, sizeof(dump));
    decode(&dump, &tlb, &identity);
    CHECK(tlb.verdict.status == STATUS_UNSUPPORTED);
}

static void dumps_survive_writing_and_reading(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_dump again = {0};
    char error[CPUID_ERROR_BYTES] = "";
    FILE *file = tmpfile();

    if (file == NULL) {
        harness_skip(h, "no temporary file can be made");
        return;
    }
    add_identity(&dump, "GenuineIntel", 0x000c06f2, true);
    add(&dump, 0x80000008, 3, 0xffffffff, 0x80000000, 0, 1);
    cpuid_write(&dump, file);
    rewind(file);
    CHECK_I64(cpuid_read(&again, file, error), 0);
    CHECK_TEXT(error, "");
    CHECK_U64(again.count, dump.count);
    for (size_t i = 0; i < again.count && i < dump.count; i++)
        CHECK(memcmp(&again.leaves[i], &dump.leaves[i], sizeof(again.leaves[i])) == 0);
    (void)fclose(file);
    cpuid_free(&dump);
    cpuid_free(&again);
}

static void unprintable_vendors_are_cleaned(struct harness *h)
{
    struct cpuid_dump dump = {0};
    struct cpuid_identity identity;

    add_identity(&dump, "\x1b[31mEvil\n\x80X", 0, false);
    cpuid_identify(&dump, &identity);
    CHECK_TEXT(identity.vendor, "[31mEvil  X");
    cpuid_free(&dump);
}

static const struct harness_case cases[] = {
    {"family, model and stepping", signatures},
    {"leaf 0x18 with a null sub-leaf 0 and split loads and stores", leaf_18_with_null_first_subleaf},
    {"leaf 0x18 hidden by a hypervisor", leaf_18_hidden},
    {"leaf 0x18 with absurd claims", leaf_18_claims_are_bounded},
    {"leaf 2 descriptors in any order, two of them double", descriptors_in_any_order},
    {"the descriptor table is whole", descriptor_table_is_whole},
    {"AMD associativity codes are ranges", amd_codes_are_ranges},
    {"Zen 5 counts in units of 32", zen5_counts_in_units_of_32},
    {"a Zen 5 guest without the bit is doubted", zen5_guest_without_the_bit_is_doubted},
    {"an AMD zero is no structure", amd_zero_is_no_structure},
    {"an AMD zero upper half is a unified TLB", amd_zero_upper_half_is_unified},
    {"other vendors are unsupported", other_vendors_are_unsupported},
    {"dumps survive writing and reading", dumps_survive_writing_and_reading},
    {"unprintable vendors are cleaned", unprintable_vendors_are_cleaned},
};

HARNESS_MAIN("cpuid", cases)
