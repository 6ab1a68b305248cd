/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/guard.h"

#include "base/clock.h"
#include "timing/cpus.h"

#include <sys/resource.h>

static struct rusage thread_usage(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage;
}

long guard_switches(void)
{
    struct rusage usage = thread_usage();

    return usage.ru_nivcsw + usage.ru_nvcsw;
}

/* A page fault inside a batch is the kernel at work: a hinting fault of NUMA balancing, a page that was reclaimed. All
 * of them count as the thread's minor or major faults. */
static long disturbances(void)
{
    struct rusage usage = thread_usage();

    return usage.ru_nivcsw + usage.ru_minflt + usage.ru_majflt;
}

/* Reading the processor time makes the kernel account the slice, so a task whose slice is used up is switched away
 * right there. Such a switch lies outside the batch only if this clock is read first and last: it costs no batch then,
 * and the batch behind it starts with a fresh slice. */
void guard_begin(struct noise_guard *guard)
{
    guard->cpu_ns = clock_thread_cpu_ns();
    guard->disturbances = disturbances();
    guard->wall_ns = clock_now_ns();
}

bool guard_end(const struct noise_guard *guard, double *wall_ns)
{
    uint64_t wall = clock_now_ns() - guard->wall_ns;
    long now = disturbances();
    uint64_t cpu = clock_thread_cpu_ns() - guard->cpu_ns;

    *wall_ns = (double)wall;
    return (double)cpu >= GUARD_CPU_SHARE_MIN * (double)wall && now == guard->disturbances;
}

/* --- stolen time -------------------------------------------------------------------------------------------------- */

/* Steal above this share of a measurement spoils it: the guest's own clocks do not show it on every kernel. The
 * noise guard allows the same share of lost processor time (GUARD_CPU_SHARE_MIN). */
#define STEAL_SHARE_MAX 0.02

int64_t steal_parse(FILE *file, int cpu)
{
    struct proc_stat_cpu found;

    while (proc_stat_next(file, &found))
        if (found.cpu == (cpu >= 0 ? cpu : -1))
            return found.ticks[PROC_STAT_STEAL];
    return -1;
}

static int64_t steal_ticks(int cpu)
{
    FILE *file = fopen("/proc/stat", "re");
    int64_t ticks = file != NULL ? steal_parse(file, cpu) : -1;

    if (file != NULL)
        (void)fclose(file);
    return ticks;
}

double steal_between_ns(int64_t before_ticks, int64_t after_ticks)
{
    if (before_ticks < 0 || after_ticks <= before_ticks + 1)
        return 0;
    return (double)(after_ticks - before_ticks) * 1e9 / (double)sysconf(_SC_CLK_TCK);
}

struct steal_watch steal_begin(int cpu)
{
    return (struct steal_watch){.cpu = cpu, .ticks = steal_ticks(cpu), .start_ns = clock_now_ns()};
}

double steal_excess_ns(const struct steal_watch *watch, int cpus)
{
    double stolen_ns = steal_between_ns(watch->ticks, steal_ticks(watch->cpu));

    return stolen_ns > STEAL_SHARE_MAX * (double)(clock_now_ns() - watch->start_ns) * cpus ? stolen_ns : 0;
}
