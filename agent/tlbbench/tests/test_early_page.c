/* SPDX-License-Identifier: Apache-2.0 */
/* A huge page that another process clears. The cases with a page need one free page of 2M in the pool: test_limits.py
 * runs this program with some. */
#include "base/clock.h"
#include "base/parse.h"
#include "base/verdict.h"
#include "engine/cpus.h"
#include "harness.h"
#include "memory/arena.h"
#include "memory/backing.h"
#include "memory/early_page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PAGE_BYTES (2ull << 20)
#define PATIENCE_SECONDS 20.0

static const struct backing PAGE = {.kind = BACKING_HUGETLB, .page_bytes = PAGE_BYTES, .name = "2M"};

/* Starts a page on `cpus`, with the first of them measured on. */
static void start_on(struct early_page *page, const struct backing *backing, const struct cpu_list *cpus)
{
    int first = 0;

    while (first + 1 < CPU_LIST_MAX && !cpu_list_has(cpus, first))
        first++;
    early_page_start(page, backing, first, cpus, -1);
}

static struct cpu_list all_cpus(void)
{
    struct cpu_list all = {0};
    struct cpu_list allowed;

    cpus_list_allowed(&all, &allowed);
    return allowed;
}

/* Starts a page, or skips the case. */
static bool start(struct harness *h, struct early_page *page)
{
    struct cpu_list cpus = all_cpus();

    start_on(page, &PAGE, &cpus);
    if (page->state == EARLY_NONE)
        harness_skip(h, "no free page of 2M, or no second core");
    return page->state != EARLY_NONE;
}

static bool free_pages_become(int64_t wanted)
{
    struct deadline end = deadline_after(PATIENCE_SECONDS);

    while (backing_free_pages(PAGE_BYTES, -1) != wanted && !deadline_passed(end)) {
    }
    return backing_free_pages(PAGE_BYTES, -1) == wanted;
}

static void no_page_without_a_second_core(struct harness *h)
{
    struct cpu_list one = {.bits = {1}, .count = 1};
    struct early_page page;

    start_on(&page, &PAGE, &one);
    CHECK(page.state == EARLY_NONE);
    CHECK(early_page_wait(&page, 0) == EARLY_NONE);
    early_page_end(&page);
}

static void no_page_from_a_pool_that_is_not_there(struct harness *h)
{
    struct backing odd = {.kind = BACKING_HUGETLB, .page_bytes = 3u << 20, .name = "3M"};
    struct cpu_list cpus = all_cpus();
    struct early_page page;

    start_on(&page, &odd, &cpus);
    CHECK(page.state == EARLY_NONE);
    early_page_end(&page);
}

static void a_page_is_handed_over(struct harness *h)
{
    int64_t free_before = backing_free_pages(PAGE_BYTES, -1);
    struct early_page page;
    struct verdict verdict;
    struct arena arena;

    if (!start(h, &page))
        return;
    CHECK(early_page_wait(&page, PATIENCE_SECONDS) == EARLY_READY);
    CHECK(early_page_open(&page, &arena, -1, &verdict) == 0);
    CHECK_U64(arena.bytes, PAGE_BYTES);
    CHECK(arena.granted_fraction == 1.0);
    CHECK_U64((uint64_t)arena.base % PAGE_BYTES, 0);
    CHECK(page.state == EARLY_NONE);
    arena_close(&arena);
    early_page_end(&page);
    CHECK(free_pages_become(free_before));
}

static void a_page_is_given_up(struct harness *h)
{
    int64_t free_before = backing_free_pages(PAGE_BYTES, -1);
    struct early_page page;

    if (!start(h, &page))
        return;
    early_page_end(&page);
    CHECK(page.state == EARLY_NONE);
    CHECK(free_pages_become(free_before));
    /* The same after it was cleared. */
    if (start(h, &page)) {
        CHECK(early_page_wait(&page, PATIENCE_SECONDS) == EARLY_READY);
        early_page_end(&page);
        CHECK(free_pages_become(free_before));
    }
}

/* What ended without a page is opened as any other then. */
static void a_process_that_fails(struct harness *h)
{
    struct early_page page;

    if (!start(h, &page))
        return;
    (void)waitpid(page.process, NULL, 0); /* somebody else took its status */
    CHECK(early_page_wait(&page, PATIENCE_SECONDS) == EARLY_NONE);
    early_page_end(&page);
}

static const struct harness_case CASES[] = {
    {"no page without a second core", no_page_without_a_second_core},
    {"no page from a pool that is not there", no_page_from_a_pool_that_is_not_there},
    {"a page is handed over", a_page_is_handed_over},
    {"a page is given up", a_page_is_given_up},
    {"a process without a status counts as failed", a_process_that_fails},
};
HARNESS_MAIN("early_page", CASES)
