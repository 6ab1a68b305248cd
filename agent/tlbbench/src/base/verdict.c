/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"

#include <stdarg.h>

const struct status_text STATUS_TEXTS[] = {
    [STATUS_OK] = {"ok", "it was measured"},
    [STATUS_SKIPPED] = {"skipped", "not requested, or nothing to measure here"},
    [STATUS_NOISY] = {"noisy", "the machine was too disturbed for a number"},
    [STATUS_NO_FREE_HUGEPAGES] = {"no_free_hugepages", "the pool has too few free pages"},
    [STATUS_THP_NOT_GRANTED] = {"thp_not_granted", "the kernel gave base pages where THP was requested"},
    [STATUS_FRACTURED] = {"fractured", "the TLB holds them in smaller pieces"},
    [STATUS_CPUID_HIDDEN] = {"cpuid_hidden", "CPUID says nothing"},
    [STATUS_STOPPED] = {"stopped", "stopped before it was done"},
    [STATUS_NO_MEMORY] = {"no_memory", "the kernel gave no memory"},
    [STATUS_MEMORY_LIMIT] = {"memory_limit", "it needs more memory than is allowed"},
    [STATUS_CGROUP_LIMIT] = {"cgroup_limit", "the memory cgroup leaves too little"},
    [STATUS_ADDRESS_SPACE_LIMIT] = {"address_space_limit", "RLIMIT_AS leaves too little"},
    [STATUS_SIGBUS] = {"sigbus", "a page that the kernel had reserved was not available"},
    [STATUS_NOT_PERMITTED] = {"not_permitted", "it is not permitted"},
    [STATUS_UNSUPPORTED] = {"unsupported", "the kernel or the processor does not support it"},
    [STATUS_NOT_REACHED] = {"not_reached", "not reached within the tested range"},
    [STATUS_CANNOT_TELL] = {"cannot_tell", "what could be measured cannot tell"},
    [STATUS_FAILED] = {"failed", "it failed"},
};

const char *verdict_words(const struct verdict *verdict)
{
    return verdict->reason[0] != '\0' ? verdict->reason : STATUS_TEXTS[verdict->status].words;
}

void verdict_set(struct verdict *verdict, enum status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    verdict->status = status;
    (void)vsnprintf(verdict->reason, sizeof(verdict->reason), format, arguments);
    va_end(arguments);
}
