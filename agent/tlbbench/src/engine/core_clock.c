/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core_clock.h"

#include "base/statistics.h"
#include "engine/guard.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The adder is a register that the compiler cannot know: cores from Golden Cove on execute the addition of a constant
 * at rename, in no cycle at all. */
#define ADD_ONCE                                                                                                       \
    do {                                                                                                               \
        value += step;                                                                                                 \
        __asm__("" : "+r"(value));                                                                                     \
    } while (0)
#define ADD_EIGHT                                                                                                      \
    do {                                                                                                               \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
        ADD_ONCE;                                                                                                      \
    } while (0)

enum { CORE_CLOCK_ADDITIONS = 1 << 20, CORE_CLOCK_TRIES = 9 };

static double core_clock_batch(bool *quiet)
{
    uint64_t value = 1;
    uint64_t step = 3;
    double wall_ns;
    struct noise_guard guard;

    __asm__ volatile("" : "+r"(value), "+r"(step));
    guard_begin(&guard);
    for (unsigned done = 0; done < CORE_CLOCK_ADDITIONS; done += 16) {
        ADD_EIGHT;
        ADD_EIGHT;
    }
    __asm__ volatile("" : : "r"(value));
    *quiet = guard_end(&guard, &wall_ns);
    return CORE_CLOCK_ADDITIONS / wall_ns * 1e9;
}

double core_clock_hz(void)
{
    double rates[CORE_CLOCK_TRIES];
    size_t kept = 0;

    for (unsigned try = 0; try < CORE_CLOCK_TRIES; try++) {
        bool quiet;
        double rate = core_clock_batch(&quiet);

        if (quiet)
            rates[kept++] = rate;
    }
    /* Interference can only slow the chain. */
    statistics_sort(rates, kept);
    return statistics_quantile(rates, kept, 1.0);
}
