/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

#define NS_PER_SECOND 1000000000u

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;

    if (clock_gettime(id, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC_RAW);
}

uint64_t clock_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

struct deadline deadline_after(double seconds)
{
    return (struct deadline){.end_ns = clock_now_ns() + (uint64_t)(seconds * NS_PER_SECOND)};
}

struct deadline deadline_earlier(struct deadline left, struct deadline right)
{
    return left.end_ns < right.end_ns ? left : right;
}

double deadline_remaining_seconds(struct deadline deadline)
{
    uint64_t now = clock_now_ns();

    return now >= deadline.end_ns ? 0 : (double)(deadline.end_ns - now) / NS_PER_SECOND;
}

bool deadline_passed(struct deadline deadline)
{
    return clock_now_ns() >= deadline.end_ns;
}
