/* SPDX-License-Identifier: Apache-2.0 */
/* Forgetting what the TLBs hold, so that a measurement does not depend on the one before it. */
#pragma once

/* Drops this process's translations from the TLBs of the core, as far as the kernel can be made to: always on x86-64;
 * elsewhere where it gives up single pages for so large a range. */
void tlb_flush(void);

/* Reads so many pages that what other processes left in the TLBs of the core is gone: their entries carry another tag,
 * are not dropped with this process's, and stay. Leaves the pages' own entries behind. */
void tlb_evict_foreign(void);
