/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/std.h"
#include "base/verdict.h"
#include "harness.h"
#include "memory/backing.h"
#include "output/report.h"
#include "pressure/probe.h"
#include "pressure/result.h"
#include "pressure/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define P2M (UINT64_C(2) << 20)
#define P1G (UINT64_C(1) << 30)

/* An address generator with a short cycle, or low bits with a pattern, keeps a part of the lines in the caches. */
static void every_line_is_visited_evenly(struct harness *h)
{
    enum { LINES = 1 << 14, DRAWS = 32 * LINES, LINES_OF_PAGE = 64 };
    unsigned *visits = calloc(LINES, sizeof(*visits));
    unsigned by_line[LINES_OF_PAGE] = {0};
    struct rng rng = rng_new(7, 0);
    unsigned missed = 0;

    if (visits == NULL)
        abort();
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        uint64_t line = rng_below(&rng, LINES);

        visits[line]++;
        by_line[line % LINES_OF_PAGE]++;
    }
    for (unsigned line = 0; line < LINES; line++)
        missed += visits[line] == 0 ? 1 : 0;
    CHECK_U64(missed, 0); /* e^-32 of the lines are expected */
    for (unsigned line = 0; line < LINES_OF_PAGE; line++)
        CHECK(fabs(by_line[line] - (double)DRAWS / LINES_OF_PAGE) < 6 * sqrt((double)DRAWS / LINES_OF_PAGE));
    free(visits);
}

/* Every line holds a one, so the sum is the number of lines that were really read. */
static void all_lines_between_are_read(struct harness *h)
{
    static const unsigned counts[] = {0, 1, 15, 16, 17, 64, 256, 1024};
    uint64_t pieces = 64;
    char *base = aligned_alloc(PROBE_PIECE_BYTES, pieces * PROBE_PIECE_BYTES);
    struct probe_region region = {base, pieces};
    struct rng rng = rng_new(1, 2);

    if (base == NULL)
        abort();
    memset(base, 0, pieces * PROBE_PIECE_BYTES);
    for (uint64_t at = 0; at < pieces * PROBE_PIECE_BYTES; at += CACHE_LINE_BYTES)
        base[at] = 1;
    for (size_t index = 0; index < sizeof(counts) / sizeof(counts[0]); index++)
        CHECK_U64(probe_read_lines(&region, &rng, counts[index]) & 0xffff, counts[index]);
    free(base);
}

/* One page, read whole in four draws of 16: a line that comes twice within a draw would show in the sum of its bits. */
static void lines_of_a_page_differ(struct harness *h)
{
    uint64_t *page = aligned_alloc(PROBE_PIECE_BYTES, PROBE_PIECE_BYTES);
    struct probe_region region = {(const char *)page, 1};
    struct rng rng = rng_new(3, 4);

    if (page == NULL)
        abort();
    memset(page, 0, PROBE_PIECE_BYTES);
    for (unsigned line = 0; line < PROBE_PIECE_BYTES / CACHE_LINE_BYTES; line++)
        page[line * CACHE_LINE_BYTES / sizeof(*page)] = UINT64_C(1) << line;
    for (unsigned draw = 0; draw < 100; draw++) {
        uint64_t sum = probe_read_lines(&region, &rng, PROBE_LINES_PER_PAGE);

        CHECK_I64(__builtin_popcountll(sum), PROBE_LINES_PER_PAGE);
    }
    free(page);
}

static void the_counter_keeps_time(struct harness *h)
{
    struct counter_scale scale;
    struct timespec start;
    struct timespec end;

    if (!counter_calibrate(&scale)) {
        CHECK(!COUNTER_IS_KNOWN);
        harness_skip(h, "this processor has no counter that can be read in order");
        return;
    }
    CHECK(scale.empty_ticks >= 0);
    /* The fastest of some tries: another task may have the core between two readings. */
    double best = INFINITY;

    for (unsigned try = 0; try < 20; try++) {
        (void)clock_gettime(CLOCK_MONOTONIC_RAW, &start);
        uint64_t ticks = counter_read();
        uint64_t end_ticks = ticks;

        while ((double)(end_ticks - ticks) / scale.ticks_per_ns < 1e6)
            end_ticks = counter_read();
        (void)clock_gettime(CLOCK_MONOTONIC_RAW, &end);
        double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);

        best = ns < best ? ns : best;
    }
    if (!harness_is_emulated() && !(best > 0.95e6 && best < 1.1e6))
        harness_fail(h, __FILE__, __LINE__, "a millisecond by the counter took %.0f ns", best);
}

/* The same loop over lines that the first cache holds, and over 64 MiB with 64 other lines read between. */
static void far_accesses_take_longer(struct harness *h)
{
    enum { NEAR_LINES = 64, ACCESSES = 2000, WAIT_NS = 3000 };
    char *base = aligned_alloc(PROBE_PIECE_BYTES, 64 * MIB);
    struct probe_region region = {base, 64 * MIB / PROBE_PIECE_BYTES};
    struct probe near = {.base = base, .lines = NEAR_LINES, .region = &region, .access = rng_new(1, 1)};
    struct probe far = {.base = base,
                        .lines = 64 * MIB / CACHE_LINE_BYTES,
                        .region = &region,
                        .lines_between = 64,
                        .access = rng_new(1, 2),
                        .between = rng_new(1, 3)};
    struct probe slow = far;
    struct counter_scale scale;
    struct probe_time near_time;
    struct probe_time far_time;
    struct probe_time slow_time;

    if (base == NULL)
        abort();
    memset(base, 1, 64 * MIB);
    if (!counter_calibrate(&scale)) {
        harness_skip(h, "this processor has no counter that can be read in order");
        free(base);
        return;
    }
    slow.wait_ticks = (uint64_t)(WAIT_NS * scale.ticks_per_ns);
    if (!probe_measure(&near, &scale, ACCESSES, 1, &near_time) ||
        !probe_measure(&far, &scale, ACCESSES, 1, &far_time) ||
        !probe_measure(&slow, &scale, ACCESSES, 1, &slow_time)) {
        harness_skip(h, "the machine is too busy: too few accesses were left alone");
    } else if (!harness_is_emulated()) {
        CHECK(near_time.ns > -20 && near_time.ns < 50);
        CHECK(far_time.ns > near_time.ns + 10 && far_time.ns < 2000);
        CHECK(far_time.period_ns > far_time.ns && near_time.period_ns > near_time.ns);
        CHECK(slow_time.period_ns > WAIT_NS + slow_time.ns && slow_time.period_ns < WAIT_NS + 50 * far_time.period_ns);
    }
    free(base);
}

static void the_plan_keeps_the_memory_limit(struct harness *h)
{
    static const uint64_t caches[] = {8 * MIB, 32 * MIB, 320 * MIB, 1152 * MIB};
    static const uint64_t pages[] = {64 << 10, P2M, 32 * MIB, 512 * MIB, P1G};

    for (unsigned profile = 0; profile < 2; profile++)
        for (size_t cache = 0; cache < sizeof(caches) / sizeof(caches[0]); cache++)
            for (uint64_t memory = 16 * MIB; memory <= 16384 * MIB; memory += memory / 5) {
                struct pressure_plan plan = pressure_make_plan(profile == 1, memory, caches[cache]);

                if (plan.base_bytes == 0)
                    continue;
                CHECK(plan.region_bytes >= caches[cache] || plan.region_bytes == P1G);
                CHECK(2 * plan.base_bytes + plan.region_bytes <= memory);
                CHECK(plan.mappings * plan.passes >= PRESSURE_PAIRS_FULL);
                CHECK(plan.mappings * plan.passes <= PRESSURE_PAIRS_MAX);
                for (size_t page = 0; page < sizeof(pages) / sizeof(pages[0]); page++) {
                    uint64_t pool = 3 * pages[page];
                    uint64_t footprint = pressure_largest_footprint(&plan, memory, pages[page], pool);
                    uint64_t mapped = (footprint + pages[page] - 1) / pages[page] * pages[page];

                    CHECK(mapped <= pool);
                    CHECK(footprint == 0 || mapped + plan.base_bytes + plan.region_bytes <= memory);
                    CHECK(footprint <= plan.base_bytes);
                }
            }
    CHECK_U64(pressure_make_plan(false, 64 * MIB, 32 * MIB).base_bytes, 0);
    CHECK_U64(pressure_make_plan(false, 5500 * MIB, 32 * MIB).base_bytes, 2048 * MIB);
    CHECK_U64(pressure_make_plan(false, 5500 * MIB, 32 * MIB).region_bytes, 512 * MIB);
    CHECK_U64(pressure_make_plan(true, 16384 * MIB, 320 * MIB).region_bytes, 1024 * MIB);
}

static struct pressure_series *two_megabytes(void)
{
    struct pressure_series *series = calloc(1, sizeof(*series));

    if (series == NULL)
        abort();
    series->backing = (struct backing){.kind = BACKING_HUGETLB, .page_bytes = P2M, .name = "2M"};
    series->bytes = 512 * MIB;
    return series;
}

static const struct pressure_point *find(const struct pressure_result *result, uint64_t footprint, unsigned between)
{
    for (size_t index = 0; index < result->point_count; index++)
        if (result->points[index].footprint_bytes == footprint && result->points[index].lines_between == between)
            return &result->points[index];
    return NULL;
}

/* 64 MiB (index 2) without lines between (index 0), and 512 MiB (5) with 1024 (4); the rest was not come to. */
static void pairs_become_points(struct harness *h)
{
    struct pressure_plan plan = pressure_make_plan(false, 5500 * MIB, 32 * MIB);
    struct pressure_series *series = two_megabytes();
    struct pressure_result result = {.verdict = {.status = STATUS_STOPPED}};

    series->cells[2][0] = (struct pressure_cell){.base_ns = {100, 101, 102, 103, 184},
                                                 .ns = {90, 91, 92, 93, 174},
                                                 .period_ns = {7, 8, 9, 9, 99},
                                                 .mapping = {0, 0, 1, 1, 2},
                                                 .pairs = 5};
    series->cells[5][4] =
        (struct pressure_cell){.base_ns = {500, 510, 520}, .ns = {400, 400, 400}, .mapping = {0, 1, 2}, .pairs = 3};
    series->cells[5][0] = (struct pressure_cell){.base_ns = {1, 2}, .ns = {1, 2}, .pairs = 2};
    CHECK_I64(pressure_collect(&plan, series, 1, &result), 0);
    CHECK_U64(result.point_count, 2);
    CHECK_I64(result.verdict.status, STATUS_STOPPED);
    const struct pressure_point *small = find(&result, 64 * MIB, 0);
    const struct pressure_point *large = find(&result, 512 * MIB, 1024);

    CHECK(small != NULL && large != NULL);
    if (small != NULL && large != NULL) {
        CHECK(small->base_ns_p50 == 102 && small->ns_p50 == 92 && small->delta_ns == -10);
        CHECK(small->ci95_low_ns == -10 && small->ci95_high_ns == -10);
        CHECK_U64(small->pairs, 5);
        CHECK(small->period_ns == 9);
        CHECK_TEXT(small->backing.name, "2M");
        CHECK(large->delta_ns == -110);
        /* Three differences of standard deviation 10: 4.303 * 10 / sqrt(3) = 24.84. */
        CHECK(fabs(large->ci95_low_ns - -134.84) < 0.01 && fabs(large->ci95_high_ns - -85.16) < 0.01);
    }
    pressure_result_free(&result);
    free(series);
}

/* Pairs of a mapping share its frames: however well they agree, two mappings are two values, and one has no interval.
 */
static void mappings_are_what_repeats(struct harness *h)
{
    struct pressure_plan plan = pressure_make_plan(false, 5500 * MIB, 32 * MIB);
    struct pressure_series *series = two_megabytes();
    struct pressure_result result = {.verdict = {.status = STATUS_STOPPED}};

    series->cells[2][0] = (struct pressure_cell){
        .base_ns = {100, 100, 100, 100, 100}, .ns = {90, 90, 90, 80, 80}, .mapping = {0, 0, 0, 1, 1}, .pairs = 5};
    series->cells[5][4] =
        (struct pressure_cell){.base_ns = {500, 510, 520}, .ns = {400, 410, 420}, .mapping = {1, 1, 1}, .pairs = 3};
    CHECK_I64(pressure_collect(&plan, series, 1, &result), 0);
    const struct pressure_point *two = find(&result, 64 * MIB, 0);
    const struct pressure_point *one = find(&result, 512 * MIB, 1024);

    CHECK(two != NULL && one != NULL);
    if (two != NULL && one != NULL) {
        CHECK(two->delta_ns == -15);
        /* 12.706 * 7.071 / sqrt(2) = 63.53 */
        CHECK(fabs(two->ci95_low_ns - -78.53) < 0.01 && fabs(two->ci95_high_ns - 48.53) < 0.01);
        CHECK(one->delta_ns == -100);
        CHECK(isnan(one->ci95_low_ns) && isnan(one->ci95_high_ns));
    }
    CHECK(plan.mappings >= 3);
    pressure_result_free(&result);
    free(series);
}

static void fill(struct pressure_series *series, const struct pressure_plan *plan, unsigned pairs, unsigned dropped)
{
    for (size_t footprint = 0; footprint < PRESSURE_FOOTPRINTS; footprint++)
        for (size_t depth = 0; depth < PRESSURE_DEPTHS; depth++)
            if (pressure_plan_has(plan, series, footprint, depth))
                series->cells[footprint][depth] = (struct pressure_cell){.pairs = pairs, .dropped = dropped};
}

/* How the measuring ended and what there is decide the status. */
static void the_status_says_what_is_missing(struct harness *h)
{
    static const struct {
        enum status ended;
        unsigned pairs, dropped;
        enum status status;
        size_t points;
    } tries[] = {
        {STATUS_OK, 6, 0, STATUS_OK, 14},           {STATUS_STOPPED, 6, 0, STATUS_OK, 14},
        {STATUS_STOPPED, 4, 0, STATUS_STOPPED, 14}, {STATUS_STOPPED, 2, 0, STATUS_STOPPED, 0},
        {STATUS_OK, 2, 4, STATUS_NOISY, 0},         {STATUS_NO_MEMORY, 0, 0, STATUS_NO_MEMORY, 0},
    };
    struct pressure_plan plan = pressure_make_plan(false, 5500 * MIB, 32 * MIB);
    struct pressure_series *series = two_megabytes();

    for (size_t index = 0; index < sizeof(tries) / sizeof(tries[0]); index++) {
        struct pressure_result result = {.verdict = {.status = tries[index].ended}};

        fill(series, &plan, tries[index].pairs, tries[index].dropped);
        CHECK_I64(pressure_collect(&plan, series, 1, &result), 0);
        CHECK_I64(result.verdict.status, tries[index].status);
        CHECK_U64(result.point_count, tries[index].points);
        pressure_result_free(&result);
    }
    struct pressure_result result = {.verdict = {.status = STATUS_OK}};

    series->bytes = 0;
    series->verdict = (struct verdict){STATUS_NO_FREE_HUGEPAGES, "empty"};
    CHECK_I64(pressure_collect(&plan, series, 1, &result), 0);
    CHECK_I64(result.verdict.status, STATUS_NO_FREE_HUGEPAGES);
    CHECK_TEXT(result.verdict.reason, "empty");
    pressure_result_free(&result);
    free(series);
}

static void the_table_shows_savings(struct harness *h)
{
    struct pressure_point points[] = {
        {{BACKING_HUGETLB, P2M, "2M"}, 64 * MIB, 0, 0, 190, 20, 18, -2, -5, 1, 6},
        {{BACKING_HUGETLB, P2M, "2M"}, 64 * MIB, 1024, 0, 9000, 300, 190, -110.25, -120, -100, 6},
        {{BACKING_HUGETLB, P2M, "2M"}, 512 * MIB, 1024, 0, 9000, 300, 310, 10, 5, 15, 6},
        {{BACKING_HUGETLB, P2M, "2M"}, 512 * MIB, 16, 20000, 20500, 300, 140, -160, -170, -150, 6},
    };
    struct pressure_result pressure = {
        .points = points, .point_count = 4, .region_bytes = 512 * MIB, .region_backing = "2M"};
    struct pressure_result none = {.verdict = {.status = STATUS_MEMORY_LIMIT}};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        abort();
    report_pressure(out, &none);
    (void)fflush(out);
    CHECK_U64(length, 0);
    report_pressure(out, &pressure);
    (void)fclose(out);
    CHECK(strstr(text, "from 512 MiB of 2M\npages") != NULL);
    CHECK(strstr(text, "  page     lines   0   1024   16+20us\n"
                       "  2M      64 MiB  +2   +110*        ?\n"
                       "  2M     512 MiB   ?    -10*     +160*\n") != NULL);
    CHECK(strstr(text, "A database is nearer the") != NULL);
    free(text);
}

static const struct harness_case CASES[] = {
    {"every line is visited evenly", every_line_is_visited_evenly},
    {"all lines between are read", all_lines_between_are_read},
    {"the lines read of a page differ", lines_of_a_page_differ},
    {"the counter keeps time", the_counter_keeps_time},
    {"far accesses take longer", far_accesses_take_longer},
    {"the plan keeps the memory limit", the_plan_keeps_the_memory_limit},
    {"pairs become points", pairs_become_points},
    {"mappings are what repeats", mappings_are_what_repeats},
    {"the status says what is missing", the_status_says_what_is_missing},
    {"the table shows savings", the_table_shows_savings},
};

HARNESS_MAIN("pressure", CASES)
