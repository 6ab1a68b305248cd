/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/environment.h"

#include "machine/cpuid.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

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

int64_t environment_headroom_bytes(const struct environment *environment)
{
    const struct cgroup *cgroup = &environment->cgroup;
    int64_t available = environment->memory.mem_available_bytes;

    if (cgroup->memory_limit_bytes == UNKNOWN)
        return available;
    int64_t used = cgroup->memory_current_bytes == UNKNOWN ? 0 : cgroup->memory_current_bytes;
    int64_t headroom = cgroup->memory_limit_bytes > used ? cgroup->memory_limit_bytes - used : 0;

    return available == UNKNOWN || headroom < available ? headroom : available;
}
