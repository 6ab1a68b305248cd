/* SPDX-License-Identifier: Apache-2.0 */
/* The order of events around a timed batch: the SMT sibling is sampled right before it and right after it. */
#include "base/clock.h"
#include "base/rng.h"
#include "base/verdict.h"
#include "harness.h"
#include "timing/chase.h"
#include "timing/session.h"
#include "timing/sweep.h"

#include <stdlib.h>
#include <string.h>

/* What happened, one letter each: p = the sibling was probed, w = the cycle was warmed up, b = a batch was timed. */
static char events[4096];
static long switches;

static void note(char event)
{
    size_t length = strlen(events);

    if (length + 1 < sizeof(events))
        events[length] = event;
}

double __wrap_issue_throughput_probe(void);
void __wrap_chase_walk(struct chase *chase, uint64_t accesses);
bool __wrap_chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access);
long __wrap_guard_switches(void);

double __wrap_issue_throughput_probe(void)
{
    note('p');
    return 4;
}

void __wrap_chase_walk(struct chase *chase, uint64_t accesses)
{
    (void)chase;
    (void)accesses;
    note('w');
}

/* Every second one is disturbed by a switch. */
bool __wrap_chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access)
{
    static unsigned count;

    (void)chase;
    (void)accesses;
    note('b');
    *ns_per_access = 1;
    switches += count % 2;
    return count++ % 2 == 0;
}

long __wrap_guard_switches(void)
{
    return switches;
}

static struct chase link_cycle(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order)
{
    (void)packed;
    (void)pages;
    (void)rng;
    (void)order;
    return (struct chase){.position = context};
}

static void the_sibling_is_sampled_around_each_batch(struct harness *h)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    void *cycle = &cycle;
    struct sweep_source source = {.link = link_cycle, .context = &cycle};
    struct session session = {.deadline = deadline_after(100)};
    struct sweep_effort effort = {.rounds = 4, .batches = 3, .batch_seconds = 1e-5};
    struct verdict verdict = {.status = STATUS_OK};
    unsigned batches = 0;

    sweep_add_point(sweep, 4);
    sweep_add_point(sweep, 8);
    (void)sweep_measure(sweep, &source, &effort, &session, &verdict);
    for (size_t at = 1; events[at] != '\0'; at++) {
        if (events[at] == 'b') {
            batches++;
            if (events[at - 1] != 'p')
                harness_fail(h, __FILE__, __LINE__, "batch %u comes after '%c' in %s", batches, events[at - 1], events);
        }
    }
    CHECK(batches >= 24);
    CHECK(strstr(events, "bwpb") != NULL); /* after a switch: warm up, then sample again */
    CHECK(strstr(events, "bp") != NULL);
    free(sweep);
}

static const struct harness_case CASES[] = {
    {"the sibling is sampled around each batch", the_sibling_is_sampled_around_each_batch},
};

HARNESS_MAIN("sweep", CASES)
