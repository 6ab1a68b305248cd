/* SPDX-License-Identifier: Apache-2.0 */
/* A unit test is a program: TEST() cases in a table, each printed as PASS, FAIL or SKIP with its reason, then the
 * totals. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct harness {
    unsigned failures; /* of the running case */
    char skip_reason[200];
};

struct harness_case {
    const char *name;
    void (*run)(struct harness *h);
};

/* Runs the table and returns main()'s exit status: 0 when no case failed. The last line is
 * "SUITE: N passed, N failed, N skipped". */
int harness_run(const char *suite, const struct harness_case *cases, unsigned count);

/* True under qemu-user: run.sh names the emulator in TLBBENCH_RUNNER. */
bool harness_is_emulated(void);

void harness_fail(struct harness *h, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void harness_skip(struct harness *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
void harness_check_text(struct harness *h, const char *file, int line, const char *actual, const char *expected);
void harness_check_u64(struct harness *h, const char *file, int line, const char *what, uint64_t actual,
                       uint64_t expected);
void harness_check_i64(struct harness *h, const char *file, int line, const char *what, int64_t actual,
                       int64_t expected);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            harness_fail(h, __FILE__, __LINE__, "%s is false", #condition);                                            \
    } while (0)
#define CHECK_TEXT(actual, expected) harness_check_text(h, __FILE__, __LINE__, actual, expected)
#define CHECK_U64(actual, expected) harness_check_u64(h, __FILE__, __LINE__, #actual, actual, expected)
#define CHECK_I64(actual, expected) harness_check_i64(h, __FILE__, __LINE__, #actual, actual, expected)
#define HARNESS_MAIN(suite, cases)                                                                                     \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return harness_run(suite, cases, sizeof(cases) / sizeof((cases)[0]));                                          \
    }
