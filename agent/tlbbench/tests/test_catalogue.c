/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "machine/catalogue.h"
#include "machine/tlb_levels.h"

#include <stdlib.h>
#include <string.h>

static const char *id_of(const struct catalogue_entry *entry)
{
    return entry == NULL ? "none" : entry->id;
}

static void x86_by_family_model_and_stepping(struct harness *h)
{
    CHECK_TEXT(id_of(catalogue_find_x86("GenuineIntel", 6, 207, 2)), "intel-emerald-rapids");
    CHECK_TEXT(id_of(catalogue_find_x86("GenuineIntel", 6, 85, 4)), "intel-skylake-sp");
    CHECK_TEXT(id_of(catalogue_find_x86("GenuineIntel", 6, 85, 7)), "intel-cascade-lake-sp");
    CHECK_TEXT(id_of(catalogue_find_x86("AuthenticAMD", 26, 2, 1)), "amd-zen5-turin");
    CHECK_TEXT(id_of(catalogue_find_x86("AuthenticAMD", 21, 2, 0)), "amd-piledriver");
    CHECK_TEXT(id_of(catalogue_find_x86("AuthenticAMD", 6, 207, 2)), "none"); /* the vendor counts */
    CHECK_TEXT(id_of(catalogue_find_x86("GenuineIntel", 6, 0, 0)), "none");
    CHECK_TEXT(id_of(catalogue_find_x86("", 0, 0, 0)), "none");
}

static void arm_by_midr(struct harness *h)
{
    CHECK_TEXT(id_of(catalogue_find_midr(0x413fd0c1)), "arm-neoverse-n1"); /* variant and revision do not matter */
    CHECK_TEXT(id_of(catalogue_find_midr(0x410fd493)), "arm-neoverse-n2");
    CHECK_TEXT(id_of(catalogue_find_midr(0x410fd4f0)), "arm-neoverse-v2");
    CHECK_TEXT(id_of(catalogue_find_midr(0x410fd8e0)), "arm-neoverse-n3");
    CHECK_TEXT(id_of(catalogue_find_midr(0xc00fac30)), "ampere-one");
    CHECK_TEXT(id_of(catalogue_find_midr(0)), "none");
}

static void power_by_pvr(struct harness *h)
{
    CHECK_TEXT(id_of(catalogue_find_pvr(0x004e1203)), "ibm-power9");
    CHECK_TEXT(id_of(catalogue_find_pvr(0x00800100)), "ibm-power10");
    CHECK_TEXT(id_of(catalogue_find_pvr(0)), "none");
}

static void levels_have_a_source(struct harness *h)
{
    struct tlb_level_list list = {0};
    const struct catalogue_entry *entry = catalogue_find_x86("AuthenticAMD", 26, 2, 1);
    bool found = false;

    CHECK(entry != NULL);
    if (entry != NULL)
        catalogue_levels(entry, &list);
    for (size_t i = 0; i < list.count; i++) {
        CHECK(list.items[i].source == SOURCE_CATALOGUE);
        if (list.items[i].level == 2 && list.items[i].kind == TLB_DATA && list.items[i].page_bytes == 4096) {
            CHECK_U64(list.items[i].entries, 4096);
            found = true;
        }
    }
    CHECK(found);
}

static void nothing_published_is_no_level(struct harness *h)
{
    struct tlb_level_list list = {0};

    catalogue_levels(catalogue_find_midr(0xc00fac30), &list);
    CHECK_U64(list.count, 0);
}

static const struct harness_case cases[] = {
    {"x86 by family, model and stepping", x86_by_family_model_and_stepping},
    {"Arm by MIDR", arm_by_midr},
    {"POWER by PVR", power_by_pvr},
    {"levels have a source", levels_have_a_source},
    {"nothing published is no level", nothing_published_is_no_level},
};

HARNESS_MAIN("catalogue", cases)
