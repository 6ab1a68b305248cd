/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"

#include <stdarg.h>
#include <stdio.h>

const char *const STATUS_NAMES[] = {
    [STATUS_OK] = "ok",
    [STATUS_SKIPPED] = "skipped",
    [STATUS_NOISY] = "noisy",
    [STATUS_NO_FREE_HUGEPAGES] = "no_free_hugepages",
    [STATUS_THP_NOT_GRANTED] = "thp_not_granted",
    [STATUS_FRACTURED] = "fractured",
    [STATUS_CPUID_HIDDEN] = "cpuid_hidden",
    [STATUS_STOPPED] = "stopped",
    [STATUS_NO_MEMORY] = "no_memory",
    [STATUS_MEMORY_LIMIT] = "memory_limit",
    [STATUS_CGROUP_LIMIT] = "cgroup_limit",
    [STATUS_ADDRESS_SPACE_LIMIT] = "address_space_limit",
    [STATUS_SIGBUS] = "sigbus",
    [STATUS_NOT_PERMITTED] = "not_permitted",
    [STATUS_UNSUPPORTED] = "unsupported",
    [STATUS_NOT_REACHED] = "not_reached",
    [STATUS_FAILED] = "failed",
};

void verdict_set(struct verdict *verdict, enum status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    verdict->status = status;
    (void)vsnprintf(verdict->reason, sizeof(verdict->reason), format, arguments);
    va_end(arguments);
}
