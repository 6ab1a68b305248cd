/* SPDX-License-Identifier: Apache-2.0 */
/* The one sentence on each page size, in every case that a machine can bring about. */
#include "base/verdict.h"
#include "geometry/result.h"
#include "harness.h"
#include "latency/result.h"
#include "machine/environment.h"
#include "machine/tlb_levels.h"
#include "memory/backing.h"
#include "output/report.h"
#include "output/run_result.h"
#include "timing/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define P4K UINT64_C(4096)
#define P64K (UINT64_C(64) << 10)
#define P2M (UINT64_C(2) << 20)
#define P1G (UINT64_C(1) << 30)

static struct environment *machine(enum hypervisor_state state, uint64_t base_page_bytes)
{
    struct environment *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    e->hypervisor.state = state;
    e->base_page_bytes = base_page_bytes;
    return e;
}

static struct effective_page effective_page(const char *backing, enum backing_kind kind, uint64_t page_bytes,
                                            uint64_t entry_bytes, enum status status)
{
    struct effective_page made = {
        .backing = {.kind = kind, .page_bytes = page_bytes}, .entry_bytes = entry_bytes, .verdict = {status, ""}};

    (void)snprintf(made.backing.name, sizeof(made.backing.name), "%s", backing);
    return made;
}

static struct paired_delta delta(const char *backing, uint64_t x, double low, double middle, double high)
{
    struct paired_delta made = {
        .layout = "random_64b", .x = x, .delta_ns = middle, .ci95_low_ns = low, .ci95_high_ns = high, .pairs = 5};

    (void)snprintf(made.backing, sizeof(made.backing), "%s", backing);
    return made;
}

/* Base pages take 100 ns from 1 MiB to 4 GiB. */
struct base_curve {
    struct curve_point points[13];
    struct curve curve;
};

static void make_base(struct base_curve *base)
{
    memset(base, 0, sizeof(*base));
    for (size_t i = 0; i < 13; i++)
        base->points[i] = (struct curve_point){.x = (UINT64_C(1) << 20) << i, .stats = {.ns_p50 = 100}};
    base->curve = (struct curve){
        .backing = {BACKING_BASE, 4096, "4K"}, .layout = "random_64b", .points = base->points, .point_count = 13};
}

static void check_verdict(struct harness *h, int line, const char *want, const struct environment *environment,
                          struct geometry_result *geometry, struct paired_delta *deltas, size_t count,
                          const struct effective_page *page)
{
    struct base_curve base;
    char text[VERDICT_TEXT_BYTES];

    make_base(&base);
    struct latency_result latency = {.curves = {&base.curve, 1}, .deltas = deltas, .delta_count = count};
    struct run_result run = {.geometry = geometry, .latency = &latency};

    (void)verdict_sentence(environment, &run, page, text);
    if (strcmp(text, want) != 0)
        harness_fail(h, __FILE__, line, "got '%s', want '%s'", text, want);
}

#define CHECK_VERDICT(want, environment, geometry, deltas, count, page)                                                \
    check_verdict(h, __LINE__, want, environment, geometry, deltas, count, &(page))

#define FRACTURED_2M "2M pages: no more TLB reach than 4K pages: the hypervisor backs the guest with 4K pages; "

static void fractured_pages_are_told_by_their_effect(struct harness *h)
{
    static const struct {
        double low, middle, high;
        const char *text;
    } tries[] = {
        {-40, -35, -30, "faster than base pages (-35 ns per access at 1 GiB, 95 % interval -40 to -30)"},
        {-4, 0.5, 5, "no measured difference from base pages (0 ns per access at 1 GiB, 95 % interval -4 to +5)"},
        {-69, -28, 13,
         "the noise hides any difference from base pages (-28 ns per access at 1 GiB, 95 % interval -69 to +13)"},
        {2, 3, 4, "slower than base pages (+3.0 ns per access at 1 GiB, 95 % interval +2.0 to +4.0)"},
    };
    struct environment *e = machine(HYPERVISOR_PRESENT, P4K);
    struct geometry_result geometry = {0};
    struct effective_page g = effective_page("2M", BACKING_HUGETLB, P2M, P4K, STATUS_FRACTURED);

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct paired_delta deltas[] = {
            delta("2M", P2M, 100, 100, 100), /* a much smaller footprint does not count */
            delta("2M", P1G, tries[i].low, tries[i].middle, tries[i].high),
            delta("1G", 4 * P1G, 100, 100, 100), /* nor does another page size */
            delta("2M", 4 * P1G, 100, 100, 100), /* nor the control */
        };
        char want[VERDICT_TEXT_BYTES];

        deltas[3].layout = "packed";
        (void)snprintf(want, sizeof(want), FRACTURED_2M "%s", tries[i].text);
        CHECK_VERDICT(want, e, &geometry, deltas, 4, g);
    }
    CHECK_VERDICT(FRACTURED_2M "not compared with base pages", e, &geometry, NULL, 0, g);
    free(e);
}

static void noise_at_the_largest_footprint_is_said(struct harness *h)
{
    struct environment *e = machine(HYPERVISOR_PRESENT, P4K);
    struct geometry_result geometry = {0};
    struct effective_page g = effective_page("THP", BACKING_THP, P2M, P4K, STATUS_FRACTURED);
    struct paired_delta deltas[] = {
        delta("THP", P1G / 4, -9, -6, -3), delta("THP", P1G, -69, -28, 13),
        delta("THP", 2 * P1G, (double)NAN, (double)NAN, (double)NAN), /* not measured there */
    };

    CHECK_VERDICT(
        "2M pages (transparent): no more TLB reach than 4K pages: the hypervisor backs the guest with 4K pages; "
        "faster than base pages (-6 ns per access at 256 MiB, 95 % interval -9 to -3; noise hides the larger "
        "footprints)",
        e, &geometry, deltas, 3, g);
    deltas[0].x = P1G / 16; /* too small to speak for a gibibyte */
    CHECK_VERDICT(
        "2M pages (transparent): no more TLB reach than 4K pages: the hypervisor backs the guest with 4K pages; "
        "the noise hides any difference from base pages (-28 ns per access at 1 GiB, 95 % interval -69 to +13)",
        e, &geometry, deltas, 3, g);
    free(e);
}

static void what_the_tlb_holds_in_base_pages_says_nothing(struct harness *h)
{
    struct geometry_result geometry = {
        .levels = {{{.level = 2, .kind = TLB_DATA, .page_bytes = P4K, .entries = 2048, .source = SOURCE_MEASURED}}, 1}};
    struct environment *e = machine(HYPERVISOR_PRESENT, P4K);
    struct effective_page g = effective_page("2M", BACKING_HUGETLB, P2M, P4K, STATUS_FRACTURED);
    struct paired_delta deltas[] = {delta("2M", 4 * P2M, -0.25, 0, 0.25)}; /* just the reach */

    CHECK_VERDICT(FRACTURED_2M "not compared with base pages", e, &geometry, deltas, 1, g);
    deltas[0].x = 8 * P2M;
    CHECK_VERDICT(FRACTURED_2M "no measured difference from base pages "
                               "(0.00 ns per access at 16 MiB, 95 % interval -0.25 to +0.25)",
                  e, &geometry, deltas, 1, g);
    free(e);
}

static void larger_pieces_still_reach(struct harness *h)
{
    struct environment *e = machine(HYPERVISOR_PRESENT, P4K);
    struct geometry_result geometry = {0};
    struct effective_page g = effective_page("1G", BACKING_HUGETLB, P1G, P2M, STATUS_FRACTURED);

    CHECK_VERDICT("1G pages: no more TLB reach than 2M pages: the hypervisor backs the guest with 2M pages; "
                  "not compared with base pages",
                  e, &geometry, NULL, 0, g);
    e->hypervisor.state = HYPERVISOR_ABSENT; /* bare metal blames no hypervisor */
    CHECK_VERDICT(
        "1G pages: no more TLB reach than 2M pages: the TLB holds them in pieces of 2M; not compared with base pages",
        e, &geometry, NULL, 0, g);
    free(e);
}

static void base_pages_may_be_fractured_too(struct harness *h)
{
    struct environment *e = machine(HYPERVISOR_PRESENT, P64K);
    struct geometry_result geometry = {0};
    struct effective_page g = effective_page("64K", BACKING_BASE, P64K, P4K, STATUS_FRACTURED);

    CHECK_VERDICT("64K pages: each takes several TLB entries: the hypervisor backs the guest with 4K pages", e,
                  &geometry, NULL, 0, g);
    free(e);
}

static void whole_pages_tell_their_reach(struct harness *h)
{
    struct geometry_result geometry = {
        .levels =
            {
                {
                    {.level = 1, .kind = TLB_DATA, .page_bytes = P2M, .entries = 32, .source = SOURCE_MEASURED},
                    {.level = 2, .kind = TLB_UNIFIED, .page_bytes = P2M, .entries = 1536, .source = SOURCE_CATALOGUE},
                    {.level = 2, .kind = TLB_DATA, .page_bytes = P2M, .entries = 1024, .source = SOURCE_MEASURED},
                    {.level = 2,
                     .kind = TLB_INSTRUCTION,
                     .page_bytes = P2M,
                     .entries = 9999,
                     .source = SOURCE_MEASURED},
                    {.level = 2,
                     .kind = TLB_DATA,
                     .page_bytes = P4K,
                     .entries = 2048,
                     .entries_min = 1536,
                     .entries_max = 2560,
                     .source = SOURCE_MEASURED},
                },
                5,
            },
    };
    struct geometry_result nothing = {0};
    static const struct {
        double low, middle, high;
        const char *text;
    } tries[] = {
        {-40, -35, -30, "faster than base pages (-35 ns per access at 1 GiB, 95 % interval -40 to -30)"},
        {30, 35, 40, "slower than base pages (+35 ns per access at 1 GiB, 95 % interval +30 to +40)"},
        {-2, 0.25, 2,
         "no measured difference from base pages (+0.2 ns per access at 1 GiB, 95 % interval -2.0 to +2.0)"},
        {-20, 0.25, 20,
         "the noise hides any difference from base pages (0 ns per access at 1 GiB, 95 % interval -20 to "
         "+20)"},
    };
    struct environment *e = machine(HYPERVISOR_PRESENT, P4K);
    struct effective_page base = effective_page("4K", BACKING_BASE, P4K, P4K, STATUS_OK);
    struct effective_page huge = effective_page("2M", BACKING_HUGETLB, P2M, P2M, STATUS_OK);

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct paired_delta deltas[] = {delta("2M", P1G, tries[i].low, tries[i].middle, tries[i].high)};
        char want[VERDICT_TEXT_BYTES];

        (void)snprintf(
            want, sizeof(want),
            "2M pages: one TLB entry covers a whole page; the L2 TLB reaches 2 GiB (1024 entries, measured); "
            "%s",
            tries[i].text);
        CHECK_VERDICT(want, e, &geometry, deltas, 1, huge);
    }
    CHECK_VERDICT("4K pages: the L2 TLB reaches about 7.8 MiB (1500 to 2600 entries, measured)", e, &geometry, NULL, 0,
                  base);
    CHECK_VERDICT("4K pages: how far the TLB reaches is not known", e, &nothing, NULL, 0, base);
    free(e);
}

static void what_was_not_measured_says_why(struct harness *h)
{
    static const struct {
        const char *backing;
        enum backing_kind kind;
        uint64_t page_bytes;
        enum status status;
        const char *text;
    } tries[] = {
        {"1G", BACKING_HUGETLB, P1G, STATUS_NO_FREE_HUGEPAGES,
         "1G pages: what one TLB entry covers was not measured: the pool has too few free pages (--reserve, as root, "
         "allocates them for the "
         "measurement)"},
        {"THP", BACKING_THP, P2M, STATUS_THP_NOT_GRANTED,
         "2M pages (transparent): what one TLB entry covers was not measured: the kernel gave base pages where THP "
         "was requested"},
        {"2M", BACKING_HUGETLB, P2M, STATUS_NOISY,
         "2M pages: what one TLB entry covers was not measured: the machine was too disturbed for a number"},
        {"2M", BACKING_HUGETLB, P2M, STATUS_STOPPED,
         "2M pages: what one TLB entry covers was not measured: stopped before it was done"},
    };
    struct geometry_result geometry = {0};
    struct environment *e = machine(HYPERVISOR_UNKNOWN, P4K);

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct effective_page g =
            effective_page(tries[i].backing, tries[i].kind, tries[i].page_bytes, 0, tries[i].status);

        CHECK_VERDICT(tries[i].text, e, &geometry, NULL, 0, g);
    }
    struct effective_page g = effective_page("2M", BACKING_HUGETLB, P2M, 0, STATUS_MEMORY_LIMIT);

    (void)snprintf(g.verdict.reason, sizeof(g.verdict.reason), "4 MiB needed, 1 MiB allowed");
    CHECK_VERDICT("2M pages: what one TLB entry covers was not measured: 4 MiB needed, 1 MiB allowed", e, &geometry,
                  NULL, 0, g);
    free(e);
}

/* Their time may be known although their place in the TLB is not. */
static void a_time_without_a_granule_is_told(struct harness *h)
{
    struct geometry_result geometry = {0};
    struct environment *e = machine(HYPERVISOR_PRESENT, P4K);
    struct effective_page g = effective_page("2M", BACKING_HUGETLB, P2M, 0, STATUS_NOISY);
    struct paired_delta deltas[] = {delta("2M", P1G, -40, -35, -30)};

    CHECK_VERDICT("2M pages: what one TLB entry covers was not measured: the machine was too disturbed for a number; "
                  "faster than base pages (-35 ns per access at 1 GiB, 95 % interval -40 to -30)",
                  e, &geometry, deltas, 1, g);
    free(e);
}

static const struct harness_case cases[] = {
    {"fractured pages are told by their effect", fractured_pages_are_told_by_their_effect},
    {"noise at the largest footprint is said", noise_at_the_largest_footprint_is_said},
    {"what the TLB holds in base pages says nothing", what_the_tlb_holds_in_base_pages_says_nothing},
    {"larger pieces still reach", larger_pieces_still_reach},
    {"base pages may be fractured too", base_pages_may_be_fractured_too},
    {"whole pages tell their reach", whole_pages_tell_their_reach},
    {"what was not measured says why", what_was_not_measured_says_why},
    {"a time without a granule is told", a_time_without_a_granule_is_told},
};

HARNESS_MAIN("verdict", cases)
