/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/guard.h"

#include "base/clock.h"

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

/* Reading the processor time makes the kernel account the slice, so a task whose slice is used up is switched away
 * right there. Such a switch lies outside the batch only if this clock is read first and last: it costs no batch then,
 * and the batch behind it starts with a fresh slice. */
void guard_begin(struct noise_guard *guard)
{
    guard->cpu_ns = clock_thread_cpu_ns();
    guard->switches = thread_usage().ru_nivcsw;
    guard->wall_ns = clock_now_ns();
}

bool guard_end(const struct noise_guard *guard, double *wall_ns)
{
    uint64_t wall = clock_now_ns() - guard->wall_ns;
    long switches = thread_usage().ru_nivcsw;
    uint64_t cpu = clock_thread_cpu_ns() - guard->cpu_ns;

    *wall_ns = (double)wall;
    return (double)cpu >= GUARD_CPU_SHARE_MIN * (double)wall && switches == guard->switches;
}
