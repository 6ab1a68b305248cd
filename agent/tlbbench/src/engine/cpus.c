/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpus.h"

#include "base/clock.h"
#include "base/parse.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define TICK_NS 1e7 /* USER_HZ is 100 on every architecture here */

void cpus_parse_idle(FILE *file, struct idle_sample *look)
{
    char line[512];

    while (fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0) {
        unsigned long long ticks;
        int cpu;

        if (sscanf(line, "cpu%d %*u %*u %*u %llu", &cpu, &ticks) == 2 && cpu >= 0 && cpu < CPU_LIST_MAX)
            look->ticks[cpu] = ticks;
    }
}

/* A core that is not listed keeps 0. */
void cpus_sample_idle(struct idle_sample *look)
{
    FILE *file = fopen("/proc/stat", "re");

    memset(look, 0, sizeof(*look));
    look->wall_ns = clock_now_ns();
    if (file != NULL) {
        cpus_parse_idle(file, look);
        (void)fclose(file);
    }
}

int cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share)
{
    static struct idle_sample now;
    unsigned long long most = 0;
    int best = -1;

    cpus_sample_idle(&now);
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        unsigned long long idled = now.ticks[cpu] - since->ticks[cpu];

        if (cpu_list_has(allowed, cpu) && (best < 0 || idled > most)) {
            best = cpu;
            most = idled;
        }
    }
    *idle_share = (double)most * TICK_NS / (double)(now.wall_ns - since->wall_ns + 1);
    return best;
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
