/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verdict.h"
#include "geometry/result.h"
#include "harness.h"
#include "latency/result.h"
#include "machine/environment.h"
#include "machine/tlb_levels.h"
#include "memory/backing.h"
#include "output/report.h"
#include "output/report_text.h"
#include "output/run_result.h"
#include "pressure/result.h"
#include "rows/result.h"
#include "timing/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define P4K UINT64_C(4096)
#define P2M (UINT64_C(2) << 20)
#define P1G (UINT64_C(1) << 30)

static struct environment *guest(enum hypervisor_state state)
{
    struct environment *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    e->hypervisor.state = state;
    return e;
}

static struct paired_delta delta(const char *backing, uint64_t x, double low, double middle, double high)
{
    struct paired_delta made = {
        .layout = "random_64b", .x = x, .delta_ns = middle, .ci95_low_ns = low, .ci95_high_ns = high, .pairs = 5};

    (void)snprintf(made.backing, sizeof(made.backing), "%s", backing);
    return made;
}

/* Plots into memory; the caller frees the text. */
static void plot(const struct curve *const *curves, size_t count, char **text)
{
    size_t length = 0;
    FILE *out = open_memstream(text, &length);

    if (out == NULL)
        abort();
    report_plot(out, curves, count);
    (void)fclose(out);
}

static struct curve curve(const char *backing, struct curve_point *points, size_t count)
{
    struct curve made = {.x_name = "pages", .layout = "aliased", .points = points, .point_count = count};

    (void)snprintf(made.backing.name, sizeof(made.backing.name), "%s", backing);
    return made;
}

static void differences_are_a_table(struct harness *h)
{
    struct paired_delta deltas[] = {
        delta("THP", P2M, -5, -4, -3), delta("THP", P1G, -5, -4, 3), delta("2M", P1G, 3, 4, 5),
        delta("2M", 2 * P1G, -1, -1, -1), /* no THP there */
    };
    struct latency_result latency = {.deltas = deltas, .delta_count = 4};
    struct pressure_result pressure = {0};
    struct walks_result walks = {0};
    struct run_result run = {.latency = &latency, .pressure = &pressure, .walks = &walks};
    struct environment *e = guest(HYPERVISOR_ABSENT);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    report_run(out, e, &run);
    (void)fclose(out);
    CHECK(strstr(text, "\n footprint         THP             2M\n"
                       "     2 MiB  -4.0 +-1.0*             ?\n"
                       "     1 GiB      -4 +-4     +4.0 +-1.0*\n"
                       "     2 GiB           ?   -1.00 +-0.00*\n") != NULL);
    free(text);
    free(e);
}

static struct row_measurement row(const char *backing, enum backing_kind kind, uint64_t page_bytes, unsigned workers,
                                  double rows_per_second, enum status status)
{
    struct row_measurement made = {.spec = {.row_bytes = 128, .workers = workers, .mode = MODE_PROCESSES},
                                   .backing = {.kind = kind, .page_bytes = page_bytes},
                                   .median = {rows_per_second, 100, 200, 300, 1},
                                   .pairs = kind == BACKING_HUGETLB ? 3 : 0,
                                   .ratio_low = workers == 8 ? 1.9 : 0.9,
                                   .ratio_high = 3.1,
                                   .vm_pte_bytes_per_process = UINT64_C(32) << 10,
                                   .vm_pte_bytes_total = workers * (UINT64_C(32) << 10),
                                   .verdict = {status, ""}};

    (void)snprintf(made.backing.name, sizeof(made.backing.name), "%s", backing);
    return made;
}

static void rows_are_a_table(struct harness *h)
{
    struct row_measurement measurements[] = {
        row("1G", BACKING_HUGETLB, P1G, 8, 3e6, STATUS_OK),         row("2M", BACKING_HUGETLB, P2M, 8, 2e6, STATUS_OK),
        row("THP", BACKING_THP, P2M, 8, 0, STATUS_THP_NOT_GRANTED), row("4K", BACKING_BASE, P4K, 8, 1e6, STATUS_OK),
        row("2M", BACKING_HUGETLB, P2M, 64, 4e6, STATUS_OK), /* no other backing with 64 workers */
    };
    struct rows_result rows = {.measurements = measurements, .measurement_count = 5};
    struct run_result run = {.rows = &rows};
    struct environment *e = guest(HYPERVISOR_ABSENT);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    report_run(out, e, &run);
    (void)fclose(out);
    CHECK(strstr(text, "by      4K  THP     2M     1G  ns p50  p99\n") != NULL);
    CHECK(strstr(text, " 8 proc  1.00    -  2.00*  3.00*     100  300\n") != NULL);
    CHECK(strstr(text, "64 proc     -    -  4.00       -       -    -\n") != NULL);
    CHECK(strstr(text, "\n  processes               4K               2M               1G\n"
                       "          8  32 KiB, 256 KiB  32 KiB, 256 KiB  32 KiB, 256 KiB\n"
                       "         64                -    32 KiB, 2 MiB                -\n") != NULL);
    free(text);
    free(e);
}

static void plots_show_low_and_high(struct harness *h)
{
    struct curve_point points[] = {{1, {.ns_p50 = 0}}, {64, {.ns_p50 = 5}}, {4096, {.ns_p50 = 10}}};
    struct curve one = curve("4K", points, 3);
    const struct curve *const curves[] = {&one};
    char *text = NULL;

    plot(curves, 1, &text);
    const char *first_row = strstr(text, "10.0 |");

    CHECK(first_row != NULL);
    if (first_row != NULL) /* the last point is in the last column of the first row */
        CHECK(strchr(first_row, '\n') - first_row == (long)strlen("10.0 |") + 64 && strchr(first_row, '\n')[-1] == '4');
    CHECK(strstr(text, "0.0 |4") != NULL);
    CHECK(strstr(text, "4 = 4K") != NULL);
    CHECK(strstr(text, " \n") == NULL); /* no blanks at the end of a line */
    free(text);
}

static void plots_survive_odd_points(struct harness *h)
{
    struct curve_point odd[] = {
        {0, {.ns_p50 = 1}}, {2, {.ns_p50 = (double)NAN}}, {4, {.ns_p50 = -3}}, {8, {.ns_p50 = 2}}};
    struct curve_point lonely[] = {{4, {.ns_p50 = 1}}};
    struct curve a = curve("2M", odd, 4);
    struct curve b = curve("256K", odd, 4);
    struct curve c = curve("", odd, 4);
    struct curve d = curve("4K", lonely, 1);
    const struct curve *const several[] = {&a, &b, &c};
    const struct curve *const single[] = {&d};
    char *text = NULL;

    plot(several, 3, &text);

    CHECK(strstr(text, "2 = 2M, a = 256K") != NULL); /* the second 2 gets another mark */
    free(text);
    plot(single, 1, &text);
    CHECK_TEXT(text, ""); /* one point is no curve */
    free(text);
}

static void text_of_wrapped(char **text, const char *label, size_t indent, const char *words)
{
    size_t length = 0;
    FILE *out = open_memstream(text, &length);

    if (out == NULL)
        abort();
    report_wrapped(out, label, indent, "%s", words);
    (void)fclose(out);
}

static void long_texts_are_wrapped(struct harness *h)
{
    char *text = NULL;

    text_of_wrapped(&text, "label", 10, "two  words ");
    CHECK_TEXT(text, "label     two words\n");
    free(text);
    /* Seventy columns fit behind ten; a word more does not. */
    text_of_wrapped(&text, "label", 10, "123456789 123456789 123456789 123456789 123456789 123456789 1234567890 12");
    CHECK_TEXT(text, "label     123456789 123456789 123456789 123456789 123456789 123456789 1234567890\n"
                     "          12\n");
    free(text);
    text_of_wrapped(&text, "", 0, "\x1b[31mred\x07 caf\xc3\xa9\n");
    CHECK_TEXT(text, "?[31mred? caf???\n");
    free(text);
    text_of_wrapped(&text, "empty", 10, "");
    CHECK_TEXT(text, "empty     \n");
    free(text);
}

static void numbers_are_no_finer_than_their_noise(struct harness *h)
{
    static const struct {
        double value, low, high;
        const char *text;
    } known[] = {
        {-4.456, -4.467, -4.445, "-4.46 +-0.01*"},
        {-4.456, -5.4, -3.6, "-4.5 +-0.9*"},
        {-27.8, -68.9, 13.3, "-28 +-41 "},
        {-0.001, -0.2, 0.2, "0.00 +-0.20 "},
        {0.4, -20, 21, "0 +-20 "},
        {3, (double)NAN, 4, "+3.0"},
        {(double)NAN, 1, 2, "?"},
    };
    static const struct {
        unsigned entries, min, max, about, about_min, about_max;
    } levels[] = {
        {96, 95, 97, 96, 95, 97},
        {2048, 2048, 2048, 2048, 2048, 2048},
        {3997, 3870, 4876, 4000, 3800, 4900},
        {2048, 1536, 2560, 2000, 1500, 2600},
        {1536, 1520, 1560, 1536, 1520, 1560},
    };
    char text[REPORT_NUMBER_BYTES];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        CHECK_TEXT(report_interval(known[i].value, known[i].low, known[i].high, text), known[i].text);
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct tlb_level level = {
            .entries = levels[i].entries, .entries_min = levels[i].min, .entries_max = levels[i].max};
        struct entries_interval about = report_entries(&level);

        CHECK_U64(about.entries, levels[i].about);
        CHECK_U64(about.min, levels[i].about_min);
        CHECK_U64(about.max, levels[i].about_max);
    }
}

static void sizes_in_words(struct harness *h)
{
    char text[SIZE_TEXT_BYTES];

    CHECK_TEXT(size_text(-1, text), "?");
    CHECK_TEXT(size_text(0, text), "0 B");
    CHECK_TEXT(size_text(1023, text), "1023 B");
    CHECK_TEXT(size_text(1536, text), "1.5 KiB");
    CHECK_TEXT(size_text((int64_t)P1G, text), "1 GiB");
    CHECK_TEXT(size_text(INT64_MAX, text), "8 EiB");
    CHECK_TEXT(size_about(4000 * 4096.0, text), "16 MiB");
    CHECK_TEXT(size_about(1536, text), "1.5 KiB");
    CHECK_TEXT(size_about((double)P1G, text), "1 GiB");
    CHECK_TEXT(size_about(763.0 * 1024, text), "760 KiB");
}

static void missing_things_are_said_once(struct harness *h)
{
    struct curve items[] = {curve("1G", NULL, 0), curve("1G", NULL, 0), curve("1G", NULL, 0), curve("2M", NULL, 0)};
    struct latency_result latency = {.curves = {items, 4}};
    struct pressure_result pressure = {0};
    struct walks_result walks = {0};
    struct run_result run = {.latency = &latency, .pressure = &pressure, .walks = &walks};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    for (int i = 0; i < 3; i++) {
        (void)snprintf(items[i].name, sizeof(items[i].name), i < 2 ? "latency 1G" : "random 1G");
        items[i].verdict = (struct verdict){STATUS_NO_FREE_HUGEPAGES, "the pool is empty"};
    }
    report_missing(out, &run);
    (void)fclose(out);
    CHECK_TEXT(text, "\nskipped or cut short\n  - latency of 1G pages: the pool is empty (no_free_hugepages)\n");
    free(text);
}

static bool tells_of_sharing(double alone_fraction)
{
    static struct environment environment;
    struct geometry_result geometry = {.core_alone_fraction = alone_fraction};
    struct run_result run = {.geometry = &geometry};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    report_run(out, &environment, &run);
    (void)fclose(out);
    bool told = strstr(text, "the SMT sibling was busy in 93 % of the") != NULL;

    free(text);
    return told;
}

static void a_shared_core_is_told(struct harness *h)
{
    CHECK(tells_of_sharing(0.07));
    CHECK(!tells_of_sharing(0.95));
    CHECK(!tells_of_sharing(NAN));
}

static void walks_are_rows_by_what_was_varied(struct harness *h)
{
    struct environment *e = guest(HYPERVISOR_ABSENT);
    struct curve_point tables[] = {{.x = 1024, .stats = {.ns_p50 = 2.7}},
                                   {.x = 1u << 19, .stats = {.ns_p50 = 8.5}},
                                   {.x = 8u << 20, .stats = {.ns_p50 = 25.5}},
                                   {.x = 128u << 20, .stats = {.ns_p50 = 88.8}}};
    struct curve_point nodes[] = {{.x = 0, .stats = {.ns_p50 = 100}}, {.x = 1, .stats = {.ns_p50 = 171}}};
    struct curve curves[] = {curve("4K", tables, 4), curve("2M", nodes, 2)};
    struct walks_result walks = {.curves = {curves, 2}, .cpu_node = 1};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    e->conditions.second_level_cache_bytes = 2u << 20;
    e->conditions.last_level_cache_bytes = 32u << 20;
    curves[0].x_name = "table_bytes";
    curves[1].x_name = "numa_node";
    report_walks(out, e, &walks);
    (void)fclose(out);
    CHECK_TEXT(text, "\nNUMA node that holds the memory, ns per access\n"
                     " NUMA node           2M\n"
                     "         0        100.0\n"
                     "         1 local  171.0\n"
                     "\npage tables that the walks read, ns per access to a page (held = no walks)\n"
                     "    tables          4K\n"
                     "     1 KiB held    2.7\n"
                     "   512 KiB L2      8.5\n"
                     "     8 MiB LLC    25.5\n"
                     "   128 MiB DRAM   88.8\n");
    free(text);
    free(e);
}

static const struct harness_case cases[] = {
    {"walks are rows by what was varied", walks_are_rows_by_what_was_varied},
    {"differences are a table", differences_are_a_table},
    {"rows are a table", rows_are_a_table},
    {"plots show low and high", plots_show_low_and_high},
    {"plots survive odd points", plots_survive_odd_points},
    {"long texts are wrapped", long_texts_are_wrapped},
    {"numbers are no finer than their noise", numbers_are_no_finer_than_their_noise},
    {"sizes in words", sizes_in_words},
    {"a shared core is told", a_shared_core_is_told},
    {"missing things are said once", missing_things_are_said_once},
};

HARNESS_MAIN("report", cases)
