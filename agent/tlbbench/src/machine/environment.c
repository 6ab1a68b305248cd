/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/environment.h"

void environment_free(struct environment *environment)
{
    cpuid_free(&environment->cpuid);
}

const struct pool *environment_pool(const struct environment *environment, uint64_t page_bytes)
{
    for (size_t i = 0; i < environment->pool_count; i++)
        if (environment->pools[i].page_bytes == page_bytes)
            return &environment->pools[i];
    return NULL;
}
