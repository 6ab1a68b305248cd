/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/counter.h"

#include "base/clock.h"
#include "base/statistics.h"

enum {
    CALIBRATE_TRIES = 5,
    CALIBRATE_NS = 2000000,
    EMPTY_PAIRS = 4096,
    EMPTY_TICKS_MAX = 1 << 14, /* more is an interrupt */
};

static double rate(void)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t start_ticks = counter_read();
    uint64_t now_ns = clock_now_ns();

    while (now_ns - start_ns < CALIBRATE_NS)
        now_ns = clock_now_ns();
    return (double)(counter_read() - start_ticks) / (double)(now_ns - start_ns);
}

/* The mean, not the least: a coarse counter shows whole ticks, and the mean shows the parts. */
static double empty_pair(void)
{
    uint64_t sum = 0;
    unsigned count = 0;

    for (unsigned pair = 0; pair < EMPTY_PAIRS; pair++) {
        uint64_t start = counter_read();
        uint64_t ticks = counter_read() - start;

        if (ticks < EMPTY_TICKS_MAX) {
            sum += ticks;
            count++;
        }
    }
    return count > 0 ? (double)sum / count : EMPTY_TICKS_MAX;
}

bool counter_calibrate(struct counter_scale *scale)
{
    double rates[CALIBRATE_TRIES];
    double empty[CALIBRATE_TRIES];

    if (!COUNTER_IS_KNOWN)
        return false;
    for (unsigned try = 0; try < CALIBRATE_TRIES; try++) {
        rates[try] = rate();
        empty[try] = empty_pair();
    }
    scale->ticks_per_ns = statistics_median(rates, CALIBRATE_TRIES);
    scale->empty_ticks = statistics_median(empty, CALIBRATE_TRIES);
    return scale->ticks_per_ns > 0;
}
