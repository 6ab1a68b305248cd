/* SPDX-License-Identifier: Apache-2.0 */
/* Published TLB geometry of known server cores: what to expect where CPUID is silent, never a measurement. */
#pragma once

#include "machine/tlb_levels.h"

enum { CATALOGUE_MAX_IDS = 8 };

struct catalogue_entry {
    const char *id; /* as in tlb_catalogue.json */
    const char *uarch;
    const char *products; /* NULL = unknown */
    const char *vendor;   /* CPUID vendor of x86; NULL elsewhere */
    unsigned family;
    unsigned ids[CATALOGUE_MAX_IDS]; /* x86 models, Arm part numbers or POWER PVR versions */
    size_t id_count;
    unsigned stepping_min, stepping_max;
    unsigned midr_implementer; /* 0 = not Arm */
    bool is_power;
    const struct tlb_structure *structures;
    size_t structure_count; /* 0 = nothing published: measure */
    enum confidence confidence;
};

/* Each returns NULL when the processor is not in the catalogue. */
const struct catalogue_entry *catalogue_find_x86(const char *vendor, unsigned family, unsigned model,
                                                 unsigned stepping);
const struct catalogue_entry *catalogue_find_midr(uint64_t midr);
const struct catalogue_entry *catalogue_find_pvr(uint64_t pvr);

/* Appends the entry's levels, one per level, kind and page size; structures that hold the same size are summed. */
void catalogue_levels(const struct catalogue_entry *entry, struct tlb_level_list *levels);
