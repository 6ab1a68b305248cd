/* SPDX-License-Identifier: Apache-2.0 */
/* Why a number is there or not. Every result that can be missing carries a verdict. */
#pragma once

#include "base/std.h"

/* STATUS_TEXTS says what each means. */
enum status {
    STATUS_OK,
    STATUS_SKIPPED,
    STATUS_NOISY,
    STATUS_NO_FREE_HUGEPAGES,
    STATUS_THP_NOT_GRANTED,
    STATUS_FRACTURED,
    STATUS_CPUID_HIDDEN,
    STATUS_STOPPED,
    STATUS_NO_MEMORY,
    STATUS_MEMORY_LIMIT,
    STATUS_CGROUP_LIMIT,
    STATUS_ADDRESS_SPACE_LIMIT,
    STATUS_SIGBUS,
    STATUS_NOT_PERMITTED,
    STATUS_UNSUPPORTED,
    STATUS_NOT_REACHED,
    STATUS_CANNOT_TELL,
    STATUS_FAILED
};

/* By status: its name in the document, and the words of the report. */
struct status_text {
    const char *name, *words;
};
extern const struct status_text STATUS_TEXTS[];

#define REASON_BYTES 200

struct verdict {
    enum status status;
    char reason[REASON_BYTES]; /* empty = no reason; printed as null */
};

/* Sets both; the format is that of printf. */
void verdict_set(struct verdict *verdict, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a function returns that failed, or refuses: -1, and false, with the reason set. */
#define FAILED(...) (verdict_set(__VA_ARGS__), -1)
#define REFUSED(...) (verdict_set(__VA_ARGS__), false)

/* The reason, or what the status means where no reason was given. */
const char *verdict_words(const struct verdict *verdict);
