/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpus.h"

#include "base/clock.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void cpus_parse_idle(FILE *file, struct idle_sample *sample)
{
    char line[512];

    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        sample->ticks[cpu] = -1;
    while (fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0) {
        unsigned long long ticks;
        int cpu;

        if (sscanf(line, "cpu%d %*u %*u %*u %llu", &cpu, &ticks) == 2 && cpu >= 0 && cpu < CPU_LIST_MAX &&
            ticks <= INT64_MAX)
            sample->ticks[cpu] = (int64_t)ticks;
    }
}

void cpus_sample_idle(struct idle_sample *sample)
{
    FILE *file = fopen("/proc/stat", "re");

    memset(sample, 0, sizeof(*sample));
    sample->wall_ns = clock_now_ns();
    if (file != NULL) {
        cpus_parse_idle(file, sample);
        (void)fclose(file);
    }
}

int cpus_idlest_between(const struct idle_sample *since, const struct idle_sample *now, const struct cpu_list *allowed,
                        double *idle_share)
{
    int64_t most = -1;
    int best = -1;

    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        int64_t idled = now->ticks[cpu] - since->ticks[cpu];

        if (cpu_list_has(allowed, cpu) && since->ticks[cpu] >= 0 && now->ticks[cpu] >= 0 && idled > most) {
            best = cpu;
            most = idled;
        }
    }
    *idle_share =
        best < 0 ? 0 : (double)most * 1e9 / (double)sysconf(_SC_CLK_TCK) / (double)(now->wall_ns - since->wall_ns + 1);
    return best;
}

int cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share)
{
    static struct idle_sample now;

    cpus_sample_idle(&now);
    return cpus_idlest_between(since, &now, allowed, idle_share);
}

/* Four ticks at the usual 100 Hz of /proc/stat. */
#define CPU_SAMPLE_NS 40000000

void cpus_list_allowed(const struct cpu_list *wanted, struct cpu_list *allowed)
{
    cpu_set_t mask;

    memset(allowed, 0, sizeof(*allowed));
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < CPU_LIST_MAX; cpu++) {
        if (CPU_ISSET((size_t)cpu, &mask) && (wanted->count == 0 || cpu_list_has(wanted, cpu))) {
            allowed->bits[cpu / 64] |= 1ull << (cpu % 64);
            allowed->count++;
        }
    }
}

int cpus_choose(const struct cpu_list *allowed)
{
    static const struct timespec pause = {.tv_sec = 0, .tv_nsec = CPU_SAMPLE_NS};
    static struct idle_sample before;
    double idle_share;

    cpus_sample_idle(&before);
    (void)nanosleep(&pause, NULL);
    int best = cpus_idlest(&before, allowed, &idle_share);

    return best >= 0 ? best : sched_getcpu();
}

int cpus_pin(int cpu)
{
    cpu_set_t mask;

    CPU_ZERO(&mask);
    CPU_SET((size_t)cpu, &mask);
    return sched_setaffinity(0, sizeof(mask), &mask);
}
