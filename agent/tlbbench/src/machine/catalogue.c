/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/catalogue.h"

#include "machine/catalogue_data.inc"

enum { CATALOGUE_COUNT = sizeof(catalogue) / sizeof(catalogue[0]) };

static bool has_id(const struct catalogue_entry *entry, unsigned id)
{
    for (size_t i = 0; i < entry->id_count; i++)
        if (entry->ids[i] == id)
            return true;
    return false;
}

const struct catalogue_entry *catalogue_find_x86(const char *vendor, unsigned family, unsigned model, unsigned stepping)
{
    for (size_t i = 0; i < CATALOGUE_COUNT; i++) {
        const struct catalogue_entry *entry = &catalogue[i];

        if (entry->vendor != NULL && strcmp(entry->vendor, vendor) == 0 && entry->family == family &&
            has_id(entry, model) && stepping >= entry->stepping_min && stepping <= entry->stepping_max)
            return entry;
    }
    return NULL;
}

const struct catalogue_entry *catalogue_find_midr(uint64_t midr)
{
    /* MIDR_EL1: implementer in bits 31:24, part number in 15:4 (Arm ARM, D19.2). */
    unsigned implementer = (unsigned)(midr >> 24 & 0xFF);
    unsigned part = (unsigned)(midr >> 4 & 0xFFF);

    for (size_t i = 0; i < CATALOGUE_COUNT; i++)
        if (catalogue[i].midr_implementer == implementer && implementer != 0 && has_id(&catalogue[i], part))
            return &catalogue[i];
    return NULL;
}

const struct catalogue_entry *catalogue_find_pvr(uint64_t pvr)
{
    unsigned version = (unsigned)(pvr >> 16 & 0xFFFF); /* the low half is the revision */

    for (size_t i = 0; i < CATALOGUE_COUNT; i++)
        if (catalogue[i].is_power && has_id(&catalogue[i], version))
            return &catalogue[i];
    return NULL;
}

void catalogue_levels(const struct catalogue_entry *entry, struct tlb_level_list *levels)
{
    tlb_levels_from_structures(levels, entry->structures, entry->structure_count, SOURCE_CATALOGUE, entry->confidence);
}
