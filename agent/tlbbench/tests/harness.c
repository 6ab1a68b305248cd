/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool harness_is_emulated(void)
{
    const char *runner = getenv("TLBBENCH_RUNNER");

    return runner != NULL && runner[0] != '\0';
}

void harness_fail(struct harness *h, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    h->failures++;
    printf("  %s:%d: ", file, line);
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)putchar('\n');
}

void harness_skip(struct harness *h, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(h->skip_reason, sizeof(h->skip_reason), format, arguments);
    va_end(arguments);
}

void harness_check_text(struct harness *h, const char *file, int line, const char *actual, const char *expected)
{
    if (strcmp(actual, expected) != 0)
        harness_fail(h, file, line, "got \"%s\", want \"%s\"", actual, expected);
}

void harness_check_u64(struct harness *h, const char *file, int line, const char *what, uint64_t actual,
                       uint64_t expected)
{
    if (actual != expected)
        harness_fail(h, file, line, "%s is %" PRIu64 ", want %" PRIu64, what, actual, expected);
}

void harness_check_i64(struct harness *h, const char *file, int line, const char *what, int64_t actual,
                       int64_t expected)
{
    if (actual != expected)
        harness_fail(h, file, line, "%s is %" PRId64 ", want %" PRId64, what, actual, expected);
}

int harness_run(const char *suite, const struct harness_case *cases, unsigned count)
{
    unsigned passed = 0;
    unsigned failed = 0;
    unsigned skipped = 0;

    for (unsigned i = 0; i < count; i++) {
        struct harness h = {0};

        cases[i].run(&h);
        if (h.failures > 0) {
            failed++;
            printf("FAIL %s %s\n", suite, cases[i].name);
        } else if (h.skip_reason[0] != '\0') {
            skipped++;
            printf("SKIP %s %s: %s\n", suite, cases[i].name, h.skip_reason);
        } else {
            passed++;
            printf("PASS %s %s\n", suite, cases[i].name);
        }
    }
    printf("%s: %u passed, %u failed, %u skipped\n", suite, passed, failed, skipped);
    return failed > 0 ? 1 : 0;
}
