/* SPDX-License-Identifier: Apache-2.0 */
#include "core_width.h"

#include <math.h>

/* Narrower than this share of the best: something else uses the core's ports. */
#define ALONE_SHARE 0.88

/* Where even the best is narrower, the sibling never paused: every x86 server core since Sandy Bridge has three ports
 * or more for additions (Intel's and AMD's optimization manuals). Other architectures have cores of one or two, and
 * hardly any with hidden siblings. */
#if defined(__x86_64__)
#define LEAST_WIDTH 3.0
#else
#define LEAST_WIDTH 0.0
#endif

static void keep_best(struct core_watch *watch, double width)
{
    for (unsigned place = 0; place < CORE_WATCH_BESTS; place++) {
        if (width > watch->best[place]) {
            const double beaten = watch->best[place];

            watch->best[place] = width;
            width = beaten;
        }
    }
}

bool core_watch_look(struct core_watch *watch)
{
    const double width = core_width_probe();

    if (!isnan(width)) {
        keep_best(watch, width);
    }
    watch->looks++;
    const double best = watch->best[CORE_WATCH_BESTS - 1];
    const bool alone = best == 0 || (!isnan(width) && width >= ALONE_SHARE * fmax(best, LEAST_WIDTH));

    watch->alone += alone ? 1 : 0;
    return alone;
}

double core_watch_share(const struct core_watch *watch)
{
    return watch->looks > 0 ? (double)watch->alone / (double)watch->looks : NAN;
}
