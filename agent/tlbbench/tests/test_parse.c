/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "harness.h"

#include <string.h>

static void sizes(struct harness *h)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"4K", 4096},
                {"2M", UINT64_C(2) << 20},
                {"2MiB", UINT64_C(2) << 20},
                {"1g", UINT64_C(1) << 30},
                {"64kB", 65536},
                {"16777215T", UINT64_C(16777215) << 40},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {
        "", "K", "-1", "4 K", "4KK", "4Kb", "0x10", "1.5G", " 4K", "16777216T", "18446744073709551616"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t bytes = 1;

        CHECK(parse_size(good[i].text, &bytes));
        CHECK_U64(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t bytes = 0;

        if (parse_size(bad[i], &bytes))
            harness_fail(h, __FILE__, __LINE__, "'%s' was taken for a size", bad[i]);
    }
}

static void numbers(struct harness *h)
{
    uint64_t value = 0;

    CHECK(parse_u64("0x413fd0c1", &value));
    CHECK_U64(value, 0x413fd0c1);
    CHECK(parse_u64("18446744073709551615", &value));
    CHECK(!parse_u64("0x", &value));
    CHECK(!parse_u64("12a", &value));
    CHECK(!parse_u64("", &value));
    CHECK(!parse_u64("0x10000000000000000", &value));
}

static void seconds(struct harness *h)
{
    double value = 0;

    CHECK(parse_seconds("2", &value) && value == 2.0);
    CHECK(parse_seconds("0.5", &value) && value > 0.499 && value < 0.501);
    CHECK(!parse_seconds("nan", &value));
    CHECK(!parse_seconds("1e3", &value));
    CHECK(!parse_seconds("-1", &value));
    CHECK(!parse_seconds("1.2.3", &value));
}

static void cpu_lists(struct harness *h)
{
    static const char *const bad[] = {"3-1", "a", "1,", ",1", "1--2", "0-4096", "1 2", "-1"};
    struct cpu_list list;

    CHECK(parse_cpu_list("0-3,8\n", &list));
    CHECK_I64(list.count, 5);
    CHECK(cpu_list_has(&list, 3) && cpu_list_has(&list, 8) && !cpu_list_has(&list, 4));
    CHECK(parse_cpu_list("2,2,1-2", &list)); /* counted once */
    CHECK_I64(list.count, 2);
    CHECK(parse_cpu_list("", &list));
    CHECK_I64(list.count, 0);
    CHECK(!cpu_list_has(&list, -1) && !cpu_list_has(&list, CPU_LIST_MAX));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (parse_cpu_list(bad[i], &list))
            harness_fail(h, __FILE__, __LINE__, "'%s' was taken for a list", bad[i]);
}

static void trimming(struct harness *h)
{
    char text[4];

    CHECK_U64(parse_trimmed("  \t\n", text, sizeof(text)), 0);
    CHECK_TEXT(text, "");
    CHECK_U64(parse_trimmed(" abcdef ", text, sizeof(text)), 3);
    CHECK_TEXT(text, "abc");
}

static const struct harness_case cases[] = {
    {"sizes", sizes}, {"numbers", numbers}, {"seconds", seconds}, {"CPU lists", cpu_lists}, {"trimming", trimming},
};

HARNESS_MAIN("parse", cases)
