/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/stat says of idle and stolen time, also while CPUs go offline. */
#include "base/text.h"
#include "harness.h"
#include "timing/cpus.h"
#include "timing/guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char TWO_CPUS[] = "cpu  10 0 10 300 0 0 0 50\n"
                               "cpu0 5 0 5 100 0 0 0 20\n"
                               "cpu1 5 0 5 200 0 0 0 30\n"
                               "intr 1\n";
static const char CPU1_OFFLINE[] = "cpu  10 0 10 110 0 0 0 21\n"
                                   "cpu0 5 0 5 110 0 0 0 21\n"
                                   "intr 1\n";
/* A kernel from before Linux 2.6.11. */
static const char NO_STEAL[] = "cpu  10 0 10 300 0 0 0\ncpu0 5 0 5 100 0 0 0\n";

static const struct cpu_list BOTH = {.bits = {3}, .count = 2};

static int64_t steal_in(const char *text, int cpu)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    int64_t ticks = steal_parse(file, cpu);

    (void)fclose(file);
    return ticks;
}

static void read_idle(const char *text, uint64_t wall_ns, struct idle_sample *sample)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    cpus_parse_idle(file, sample);
    sample->wall_ns = wall_ns;
    (void)fclose(file);
}

static void steal_is_read(struct harness *h)
{
    CHECK(steal_in(TWO_CPUS, -1) == 50 && steal_in(TWO_CPUS, 0) == 20 && steal_in(TWO_CPUS, 1) == 30);
    CHECK(steal_in(CPU1_OFFLINE, 1) == -1);
    CHECK(steal_in(NO_STEAL, 0) == -1 && steal_in("", -1) == -1);
}

static void unknown_steal_is_no_steal(struct harness *h)
{
    double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK);

    CHECK(steal_between_ns(20, 25) == 5 * tick_ns);
    CHECK(steal_between_ns(20, 20) == 0);
    CHECK(steal_between_ns(20, 21) == 0); /* one tick rounds up */
    CHECK(steal_between_ns(30, steal_in(CPU1_OFFLINE, 1)) == 0);
    CHECK(steal_between_ns(steal_in(CPU1_OFFLINE, 1), 30) == 0);
    CHECK(steal_between_ns(50, 21) == 0); /* the sum over all CPUs drops when one goes offline */
}

static void the_idlest_cpu_is_chosen(struct harness *h)
{
    struct idle_sample *samples = calloc(2, sizeof(*samples));
    double share = -1;

    read_idle("cpu0 0 0 0 90 0 0 0 0\ncpu1 0 0 0 195 0 0 0 0\n", 0, &samples[0]);
    read_idle(TWO_CPUS, (uint64_t)(10e9 / (double)sysconf(_SC_CLK_TCK)), &samples[1]);
    CHECK(cpus_idlest_between(&samples[0], &samples[1], &BOTH, &share) == 0);
    CHECK(share > 0.99 && share <= 1);
    free(samples);
}

static void an_offline_cpu_is_not_chosen(struct harness *h)
{
    struct idle_sample *samples = calloc(2, sizeof(*samples));
    double share = -1;

    read_idle(TWO_CPUS, 0, &samples[0]);
    read_idle(CPU1_OFFLINE, (uint64_t)1e9, &samples[1]);
    CHECK(cpus_idlest_between(&samples[0], &samples[1], &BOTH, &share) == 0);
    CHECK(share <= 1);
    CHECK(cpus_idlest_between(&samples[1], &samples[0], &BOTH, &share) == -1); /* CPU 0 went back, CPU 1 came */
    CHECK(share == 0);
    free(samples);
}

static const struct harness_case CASES[] = {
    {"steal is read", steal_is_read},
    {"unknown steal is no steal", unknown_steal_is_no_steal},
    {"the idlest CPU is chosen", the_idlest_cpu_is_chosen},
    {"an offline CPU is not chosen", an_offline_cpu_is_not_chosen},
};

HARNESS_MAIN("cpus", CASES)
