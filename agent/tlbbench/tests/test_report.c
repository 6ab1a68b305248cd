/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "report.h"
#include "report_verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define P4K UINT64_C(4096)
#define P2M (UINT64_C(2) << 20)
#define P1G (UINT64_C(1) << 30)

static struct environment *guest(enum hypervisor_state state)
{
    struct environment *e = calloc(1, sizeof *e);

    if (e == NULL)
        abort();
    e->hypervisor.state = state;
    return e;
}

static struct granule granule(const char *backing, enum backing_kind kind, uint64_t page_bytes, uint64_t granule_bytes,
                              enum status status)
{
    struct granule made = {
        .kind = kind, .page_bytes = page_bytes, .granule_bytes = granule_bytes, .verdict = {status, ""}};

    (void)snprintf(made.backing, sizeof made.backing, "%s", backing);
    return made;
}

static struct paired_delta delta(const char *backing, uint64_t x, double low, double middle, double high)
{
    struct paired_delta made = {
        .layout = "random_64b", .x = x, .delta_ns = middle, .ci95_low_ns = low, .ci95_high_ns = high, .pairs = 5};

    (void)snprintf(made.backing, sizeof made.backing, "%s", backing);
    return made;
}

static void fractured_pages_are_told_by_their_effect(struct harness *h)
{
    static const struct {
        double low, middle, high;
        const char *start;
    } tries[] = {
        {-40, -35, -30,
         "2M pages here shorten walks but give no TLB reach: the hypervisor backs the guest with 4K pages"},
        {-4, 1, 5,
         "2M pages here give no TLB reach and no measured gain: the hypervisor backs the guest with 4K pages"},
        {2, 3, 4, "2M pages here give no TLB reach and were slower than base pages: the hypervisor backs"},
    };
    struct environment *e = guest(HYPERVISOR_PRESENT);
    struct geometry_result geometry = {0};
    const struct granule g = granule("2M", BACKING_HUGETLB, P2M, P4K, STATUS_FRACTURED);

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct paired_delta deltas[] = {
            delta("2M", P2M, 100, 100, 100), /* a smaller footprint does not count */
            delta("2M", P1G, tries[i].low, tries[i].middle, tries[i].high),
            delta("1G", 4 * P1G, 100, 100, 100), /* nor does another page size */
        };
        const struct latency_result latency = {.deltas = deltas, .delta_count = 3};
        char text[VERDICT_TEXT_BYTES];

        (void)verdict_sentence(e, &geometry, &latency, &g, text);
        if (strncmp(text, tries[i].start, strlen(tries[i].start)) != 0)
            harness_fail(h, __FILE__, __LINE__, "'%s' does not start with '%s'", text, tries[i].start);
    }
    char text[VERDICT_TEXT_BYTES];

    (void)verdict_sentence(e, &geometry, NULL, &g, text);
    CHECK(strstr(text, "was not measured") != NULL);
    free(e);
}

static void bare_metal_does_not_blame_a_hypervisor(struct harness *h)
{
    struct environment *e = guest(HYPERVISOR_ABSENT);
    struct geometry_result geometry = {0};
    const struct granule g = granule("1G", BACKING_HUGETLB, P1G, P2M, STATUS_FRACTURED);
    char text[VERDICT_TEXT_BYTES];

    (void)verdict_sentence(e, &geometry, NULL, &g, text);
    CHECK(strstr(text, "the TLB holds them in pieces of 2M") != NULL);
    CHECK(strstr(text, "hypervisor") == NULL);
    free(e);
}

static void whole_pages_tell_their_reach(struct harness *h)
{
    struct tlb_level levels[] = {
        {.level = 1, .kind = TLB_DATA, .page_bytes = P2M, .entries = 32, .source = SOURCE_MEASURED},
        {.level = 2, .kind = TLB_UNIFIED, .page_bytes = P2M, .entries = 1536, .source = SOURCE_CATALOGUE},
        {.level = 2, .kind = TLB_DATA, .page_bytes = P2M, .entries = 1024, .source = SOURCE_MEASURED},
        {.level = 2, .kind = TLB_INSTRUCTION, .page_bytes = P2M, .entries = 9999, .source = SOURCE_MEASURED},
        {.level = 2, .kind = TLB_DATA, .page_bytes = P4K, .entries = 2048, .source = SOURCE_MEASURED},
    };
    struct geometry_result geometry = {.levels = {levels, 5}};
    struct paired_delta deltas[] = {delta("2M", P1G, -40, -35, -30)};
    const struct latency_result latency = {.deltas = deltas, .delta_count = 1};
    struct environment *e = guest(HYPERVISOR_PRESENT);
    const struct granule g = granule("2M", BACKING_HUGETLB, P2M, P2M, STATUS_OK);
    char text[VERDICT_TEXT_BYTES];

    (void)verdict_sentence(e, &geometry, &latency, &g, text);
    CHECK_TEXT(text, "2M pages: one TLB entry covers a whole page; L2 reaches 2 GiB (1024 entries, measured); faster "
                     "than base pages (-35.0 ns per access at 1 GiB, 95 % interval -40.0 to -30.0)");
    free(e);
}

static void what_was_not_measured_says_why(struct harness *h)
{
    struct geometry_result geometry = {0};
    struct environment *e = guest(HYPERVISOR_UNKNOWN);
    struct granule g = granule("1G", BACKING_HUGETLB, P1G, 0, STATUS_NO_FREE_HUGEPAGES);
    char text[VERDICT_TEXT_BYTES];

    CHECK(strstr(verdict_sentence(e, &geometry, NULL, &g, text), "the pool has no free page") != NULL);
    g = granule("THP", BACKING_THP, P2M, 0, STATUS_THP_NOT_GRANTED);
    CHECK(strstr(verdict_sentence(e, &geometry, NULL, &g, text), "2M pages (transparent) were not measured") != NULL);
    g = granule("2M", BACKING_HUGETLB, P2M, 0, STATUS_STOPPED);
    CHECK(strstr(verdict_sentence(e, &geometry, NULL, &g, text), "stopped") != NULL);
    free(e);
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

    (void)snprintf(made.backing, sizeof made.backing, "%s", backing);
    return made;
}

static void differences_are_a_table(struct harness *h)
{
    struct paired_delta deltas[] = {
        delta("THP", P2M, -5, -4, -3), delta("THP", P1G, -5, -4, 3), delta("2M", P1G, 3, 4, 5),
        delta("2M", 2 * P1G, -1, -1, -1), /* no THP there */
    };
    struct latency_result latency = {.deltas = deltas, .delta_count = 4};
    const struct run_result run = {.latency = &latency};
    struct environment *e = guest(HYPERVISOR_ABSENT);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    report_run(out, e, &run);
    (void)fclose(out);
    CHECK(strstr(text, "       2 MiB      -4.00*          ? \n       1 GiB      -4.00       +4.00*\n       2 GiB       "
                       "   ?       -1.00*\n") != NULL);
    CHECK(strstr(text, "  2M pages: faster than base pages (-1.0 ns per access at 2 GiB") != NULL);
    free(text);
    free(e);
}

static struct row_measurement row(const char *backing, enum backing_kind kind, uint64_t page_bytes, unsigned workers,
                                  double rows_per_second, enum status status)
{
    struct row_measurement made = {.row_bytes = 128,
                                   .workers = workers,
                                   .mode = MODE_PROCESSES,
                                   .kind = kind,
                                   .page_bytes = page_bytes,
                                   .rows_per_second = rows_per_second,
                                   .ns_p50 = 100,
                                   .ns_p99 = 300,
                                   .vm_pte_bytes_per_process = UINT64_C(32) << 10,
                                   .verdict = {status, ""}};

    (void)snprintf(made.backing, sizeof made.backing, "%s", backing);
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
    const struct run_result run = {.rows = &rows};
    struct environment *e = guest(HYPERVISOR_ABSENT);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    report_run(out, e, &run);
    (void)fclose(out);
    CHECK(strstr(text, "       4K      THP       2M       1G  ns p50") != NULL);
    CHECK(strstr(text, "processes       8      1.00        -     2.00     3.00     100    300     32 KiB\n") != NULL);
    CHECK(strstr(text, "processes      64         -        -     4.00        -\n") != NULL);
    free(text);
    free(e);
}

static void plots_show_low_and_high(struct harness *h)
{
    struct curve_point points[] = {{1, {.ns_p50 = 0}}, {64, {.ns_p50 = 5}}, {4096, {.ns_p50 = 10}}};
    const struct curve one = curve("4K", points, 3);
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
    const struct curve a = curve("2M", odd, 4);
    const struct curve b = curve("256K", odd, 4);
    const struct curve c = curve("", odd, 4);
    const struct curve d = curve("4K", lonely, 1);
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

static void sizes_in_words(struct harness *h)
{
    char text[SIZE_TEXT_BYTES];

    CHECK_TEXT(size_text(-1, text), "?");
    CHECK_TEXT(size_text(0, text), "0 B");
    CHECK_TEXT(size_text(1023, text), "1023 B");
    CHECK_TEXT(size_text(1536, text), "1.5 KiB");
    CHECK_TEXT(size_text((int64_t)P1G, text), "1 GiB");
    CHECK_TEXT(size_text(INT64_MAX, text), "8 EiB");
}

static void missing_things_are_said_once(struct harness *h)
{
    struct curve items[] = {curve("1G", NULL, 0), curve("1G", NULL, 0), curve("1G", NULL, 0), curve("2M", NULL, 0)};
    struct latency_result latency = {.curves = {items, 4}};
    const struct run_result run = {.latency = &latency};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    for (int i = 0; i < 3; i++) {
        (void)snprintf(items[i].name, sizeof items[i].name, i < 2 ? "latency 1G" : "random 1G");
        items[i].verdict = (struct verdict){STATUS_NO_FREE_HUGEPAGES, "the pool is empty"};
    }
    report_missing(out, &run);
    (void)fclose(out);
    CHECK_TEXT(text, "\nskipped or cut short\n  latency 1G, random 1G: no_free_hugepages, the pool is empty\n");
    free(text);
}

static const struct harness_case cases[] = {
    {"fractured pages are told by their effect", fractured_pages_are_told_by_their_effect},
    {"bare metal does not blame a hypervisor", bare_metal_does_not_blame_a_hypervisor},
    {"whole pages tell their reach", whole_pages_tell_their_reach},
    {"what was not measured says why", what_was_not_measured_says_why},
    {"differences are a table", differences_are_a_table},
    {"rows are a table", rows_are_a_table},
    {"plots show low and high", plots_show_low_and_high},
    {"plots survive odd points", plots_survive_odd_points},
    {"sizes in words", sizes_in_words},
    {"missing things are said once", missing_things_are_said_once},
};

HARNESS_MAIN("report", cases)
