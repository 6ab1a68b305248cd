/* SPDX-License-Identifier: Apache-2.0 */
/* Why a number is there or not. Every result that can be missing carries a verdict. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a number is there or not. The names in the document are those of STATUS_NAMES. */
enum status {
    STATUS_OK,
    STATUS_SKIPPED,           /* not requested, or nothing to measure here */
    STATUS_NOISY,             /* measured, but the machine was too disturbed to say a number */
    STATUS_NO_FREE_HUGEPAGES, /* the pool of this size has no free page */
    STATUS_THP_NOT_GRANTED,   /* the kernel gave base pages where THP was requested */
    STATUS_FRACTURED,         /* the TLB holds smaller pages than the kernel mapped */
    STATUS_CPUID_HIDDEN,
    STATUS_STOPPED,             /* by a signal or by --time-limit */
    STATUS_NO_MEMORY,           /* ENOMEM from the kernel */
    STATUS_MEMORY_LIMIT,        /* --max-memory or MemAvailable leave too little */
    STATUS_CGROUP_LIMIT,        /* the memory cgroup leaves too little */
    STATUS_ADDRESS_SPACE_LIMIT, /* RLIMIT_AS */
    STATUS_SIGBUS,              /* a page that the kernel had reserved was not available */
    STATUS_NOT_PERMITTED,
    STATUS_UNSUPPORTED, /* the kernel or the processor lacks what is needed */
    STATUS_NOT_REACHED, /* scatter: no crossing inside the tested range */
    STATUS_FAILED
};

extern const char *const STATUS_NAMES[];

#define REASON_BYTES 200

struct verdict {
    enum status status;
    char reason[REASON_BYTES]; /* empty = no reason; printed as null */
};

/* Sets both; the format is that of printf. */
void verdict_set(struct verdict *verdict, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
