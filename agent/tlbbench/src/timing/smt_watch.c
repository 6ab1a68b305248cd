/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/smt_watch.h"

#include "base/clock.h"
#include "timing/core_probe.h"

/* Narrower than this share of the width alone: something else uses the core's ports. */
#define SIBLING_IDLE_SHARE 0.90
/* Probes that went wrong look wide, one in thousands: so many must be as wide. */
#define ODD_SHARE 0.001
#define WIDTHS_MIN 8

/* Bins of one percent, from a quarter of an addition a cycle up. */
#define BIN_RATIO 1.01
#define LEAST_BIN 0.25

/* Where even the best is narrower, the sibling never paused: every x86 server core since Sandy Bridge has three ports
 * or more for additions (Intel's and AMD's optimization manuals). Other architectures have cores of one or two, and
 * hardly any with hidden siblings. */
#if defined(__x86_64__)
#define LEAST_WIDTH 3.0
#else
#define LEAST_WIDTH 0.0
#endif

static void count_width(struct smt_watch *watch, double width)
{
    double place = log(width / LEAST_BIN) / log(BIN_RATIO);
    int bin = place < 0 ? 0 : place >= SMT_WATCH_BINS ? SMT_WATCH_BINS - 1 : (int)place;

    watch->widths[bin]++;
    watch->counted++;
}

/* The width that enough probes reached; 0 while there are too few. */
static double full_throughput(const struct smt_watch *watch)
{
    double enough = WIDTHS_MIN + ODD_SHARE * (double)watch->counted;
    uint64_t reached = 0;

    for (int bin = SMT_WATCH_BINS - 1; bin >= 0; bin--) {
        reached += watch->widths[bin];
        if ((double)reached >= enough)
            return LEAST_BIN * pow(BIN_RATIO, bin + 0.5);
    }
    return 0;
}

bool smt_watch_sample(struct smt_watch *watch)
{
    double width = issue_throughput_probe();

    if (width > 0 && isfinite(width))
        count_width(watch, width);
    watch->samples++;
    double best = full_throughput(watch);
    bool alone = best == 0 || (!isnan(width) && width >= SIBLING_IDLE_SHARE * fmax(best, LEAST_WIDTH));

    watch->idle += alone ? 1 : 0;
    return alone;
}

void smt_watch_learn(struct smt_watch *watch, double seconds)
{
    struct deadline end = deadline_after(seconds);

    while (!deadline_passed(end))
        (void)smt_watch_sample(watch);
    watch->samples = 0;
    watch->idle = 0;
}

double smt_watch_idle_share(const struct smt_watch *watch)
{
    return watch->samples > 0 ? (double)watch->idle / (double)watch->samples : NAN;
}
