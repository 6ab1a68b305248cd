/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the machine, or what was captured of one. */
#pragma once

#include "base/verdict.h"
#include "machine/cpuid.h"
#include "machine/environment.h"
#include "machine/tlb_levels.h"

/* Reads the machine, or the captured tree below `root` ("" = the running system). What cannot be read stays unknown, so
 * this fails only when `root` is not a directory: returns 0 or -1. The struct is large: keep it off small stacks. */
int environment_read(struct environment *environment, const char *root);

/* The environment that a CPUID dump alone tells of; everything else is unknown. Takes the dump over. */
void environment_from_dump(struct environment *environment, const struct cpuid_dump *dump);

/* Appends what CPUID, the device tree and the catalogue say of the TLBs. `verdict` is STATUS_OK, or says why CPUID is
 * silent. */
void environment_tlb_levels(const struct environment *environment, struct tlb_level_list *levels,
                            struct verdict *verdict);
