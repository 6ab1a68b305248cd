/* SPDX-License-Identifier: Apache-2.0 */
/* What repeated rounds of rows say together. */
#include "harness.h"
#include "rows/parts.h"

#include <math.h>
#include <string.h>

#define NONE                                                                                                           \
    {                                                                                                                  \
        NAN, NAN, NAN, NAN, NAN                                                                                        \
    }
#define ROUND(rate, share)                                                                                             \
    {                                                                                                                  \
        rate, 1e9 / (rate), 2e9 / (rate), 3e9 / (rate), share                                                          \
    }

static void conclude(struct row_measurement *measured, size_t count)
{
    struct rows_result result = {.measurements = measured, .measurement_count = count};

    rows_conclude_rounds(&result);
}

static void pairs_cancel_what_drifts(struct harness *h)
{
    /* The machine slows down from round to round; the ratio of each pair is 1.2. */
    struct row_measurement measured[] = {
        {.backing.kind = BACKING_BASE, .rounds = {ROUND(100, 1), ROUND(80, 1), ROUND(50, 1), NONE}},
        {.backing.kind = BACKING_HUGETLB, .rounds = {ROUND(120.1, 1), ROUND(96, 1), ROUND(60, 1), NONE}}};

    conclude(measured, 2);
    CHECK(measured[1].pairs == 3 && measured[1].median.rows_per_second == 96);
    CHECK(measured[1].ratio > 1.199 && measured[1].ratio < 1.201);
    CHECK(measured[1].ratio_low > 1.19 && measured[1].ratio_low < measured[1].ratio);
    CHECK(measured[1].ratio_high < 1.21 && measured[1].ratio_high > measured[1].ratio);
    CHECK(measured[0].pairs == 0 && isnan(measured[0].ratio) && measured[0].median.rows_per_second == 80);
    CHECK(measured[1].verdict.reason[0] == '\0');
}

static void contended_rounds_are_in_no_pair(struct harness *h)
{
    /* Other work halved one round of each; a third round of the pool's pages has no figures. */
    struct row_measurement measured[] = {
        {.backing.kind = BACKING_BASE, .rounds = {ROUND(100, 1), ROUND(50, 0.5), ROUND(101, 1), ROUND(99, 0.95)}},
        {.backing.kind = BACKING_THP, .rounds = {ROUND(55, 0.5), ROUND(110, 1), ROUND(111, 1), ROUND(109, 1)}},
        {.backing.kind = BACKING_HUGETLB, .rounds = {ROUND(120, 1), NONE, NONE, NONE}}};

    conclude(measured, 3);
    CHECK(measured[0].median.rows_per_second == 100 && measured[1].median.rows_per_second == 110);
    CHECK(measured[1].pairs == 2 && fabs(measured[1].ratio - 1.1) < 0.01);
    CHECK(measured[2].pairs == 1 && isnan(measured[2].ratio) && isnan(measured[2].ratio_low));
    CHECK(measured[2].median.rows_per_second == 120);
}

static void contention_in_every_round_is_said(struct harness *h)
{
    struct row_measurement measured[] = {
        {.backing.kind = BACKING_BASE, .rounds = {ROUND(50, 0.4), ROUND(60, 0.6), NONE, NONE}},
        {.backing.kind = BACKING_HUGETLB, .rounds = {NONE, NONE, NONE, NONE}, .verdict = {STATUS_NOISY, "taken"}}};

    conclude(measured, 2);
    CHECK(measured[0].median.rows_per_second == 55 && measured[0].median.cpu_share == 0.5);
    CHECK(strstr(measured[0].verdict.reason, "50 % of the CPUs in every round") != NULL);
    CHECK(isnan(measured[1].median.rows_per_second) && strcmp(measured[1].verdict.reason, "taken") == 0);
    CHECK(measured[1].pairs == 0 && isnan(measured[1].ratio));
}

static void pairs_are_of_the_same_rows(struct harness *h)
{
    struct row_measurement measured[] = {
        {.backing.kind = BACKING_BASE, .spec.workers = 1, .rounds = {ROUND(100, 1), ROUND(100, 1), NONE, NONE}},
        {.backing.kind = BACKING_THP, .spec.workers = 8, .rounds = {ROUND(300, 1), ROUND(300, 1), NONE, NONE}},
        {.backing.kind = BACKING_THP, .spec.workers = 1, .rounds = {ROUND(100, 1), ROUND(100, 1), NONE, NONE}}};

    conclude(measured, 3);
    CHECK(measured[1].pairs == 0 && isnan(measured[1].ratio));
    CHECK(measured[2].pairs == 2 && measured[2].ratio == 1);
}

static struct session session_with(struct environment *environment, double seconds)
{
    return (struct session){.environment = environment,
                            .base_page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                            .numa_node = -1,
                            .memory_bytes = UINT64_MAX,
                            .deadline = deadline_after(seconds)};
}

/* Touching a segment takes longest of all where the CPU is taken or the host has yet to give the memory. */
static void touching_ends_with_the_time(struct harness *h)
{
    enum { BYTES = 256 << 20 }; /* several parts between two looks at the clock */
    static struct environment environment;
    struct session session = session_with(&environment, 0);
    struct backing base = {.kind = BACKING_BASE, .page_bytes = session.base_page_bytes, .name = "base"};
    struct rows_segment segment;

    CHECK(rows_segment_open(&segment, &base, BYTES, 0, &session) == -1);
    CHECK_I64(segment.verdict.status, STATUS_STOPPED);
    rows_segment_close(&segment);
    session.deadline = deadline_after(600);
    CHECK(rows_segment_open(&segment, &base, 1 << 20, 0, &session) == 0);
    CHECK(segment.verdict.status == STATUS_OK);
    rows_segment_close(&segment);
}

/* So many workers that each gets its turn take seconds; the time that is left decides whether they start. */
static void workers_keep_the_deadline(struct harness *h)
{
    static struct environment environment;
    struct session session = session_with(&environment, 0.5);
    struct backing base = {.kind = BACKING_BASE, .page_bytes = session.base_page_bytes, .name = "base"};
    struct rows_request request = {.row_bytes = {{64}, 1},
                                   .workers = {{1024}, 1},
                                   .modes = SET_BIT(MODE_THREADS),
                                   .keys = SET_BIT(KEYS_UNIFORM),
                                   .reads = SET_BIT(READ_HEADER),
                                   .segment_bytes = 1 << 20};
    struct rows_result result;

    session.backings[0] = base;
    session.backing_count = 1;
    CHECK_I64(rows_measure(&session, &request, &result), 0);
    CHECK_I64(result.measurements[0].verdict.status, STATUS_STOPPED);
    CHECK(strstr(result.measurements[0].verdict.reason, "too short for 1024 workers") != NULL);
    free(result.measurements);
    free(result.break_evens);

    struct row_measurement measured = {.spec = {.row_bytes = 64, .workers = 2, .mode = MODE_THREADS}};
    struct rows_segment segment;
    struct rows_round round;

    session.deadline = deadline_after(1);
    if (rows_segment_open(&segment, &base, 1 << 20, 0, &session) != 0)
        harness_fail(h, __FILE__, __LINE__, "%s", segment.verdict.reason);
    uint64_t start_ns = clock_now_ns();

    CHECK_I64(workers_run(&segment, 40, &session, &measured, &round), 0);
    CHECK((double)(clock_now_ns() - start_ns) / 1e9 < 20);
    CHECK_I64(measured.verdict.status, STATUS_NOISY);
    rows_segment_close(&segment);
}

static const struct harness_case CASES[] = {
    {"workers keep the deadline", workers_keep_the_deadline},
    {"touching a segment ends with the time", touching_ends_with_the_time},
    {"pairs cancel what drifts", pairs_cancel_what_drifts},
    {"contended rounds are in no pair", contended_rounds_are_in_no_pair},
    {"contention in every round is said", contention_in_every_round_is_said},
    {"pairs are of the same rows", pairs_are_of_the_same_rows},
};

HARNESS_MAIN("rows", CASES)
