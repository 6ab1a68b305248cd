/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/issue_throughput.h"

#include "base/clock.h"

#include <math.h>

enum { CHAIN_ADDITIONS = 2048, CHAINS = 8, LAP_ADDITIONS = 16 };

/* Two chains in a row that differ by more were interrupted, or the clock changed. */
#define CHAIN_SPREAD 0.1

/* A register that the compiler cannot know is added, as in core_clock_hz(). */
#define ADD(value)                                                                                                     \
    do {                                                                                                               \
        (value) += step;                                                                                               \
        __asm__("" : "+r"(value));                                                                                     \
    } while (0)
#define ADD_TWICE(value)                                                                                               \
    do {                                                                                                               \
        ADD(value);                                                                                                    \
        ADD(value);                                                                                                    \
    } while (0)
#define ADD_TO_ALL                                                                                                     \
    do {                                                                                                               \
        ADD(a);                                                                                                        \
        ADD(b);                                                                                                        \
        ADD(c);                                                                                                        \
        ADD(d);                                                                                                        \
        ADD(e);                                                                                                        \
        ADD(f);                                                                                                        \
        ADD(g);                                                                                                        \
        ADD(h);                                                                                                        \
    } while (0)

static uint64_t time_dependent(uint64_t step)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t value = 1;

    __asm__ volatile("" : "+r"(value), "+r"(step));
    for (unsigned done = 0; done < CHAIN_ADDITIONS; done += LAP_ADDITIONS) {
        ADD_TWICE(value);
        ADD_TWICE(value);
        ADD_TWICE(value);
        ADD_TWICE(value);
        ADD_TWICE(value);
        ADD_TWICE(value);
        ADD_TWICE(value);
        ADD_TWICE(value);
    }
    __asm__ volatile("" : : "r"(value));
    return clock_now_ns() - start_ns;
}

static uint64_t time_independent(uint64_t step)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;

    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(step));
    for (unsigned done = 0; done < CHAIN_ADDITIONS; done += LAP_ADDITIONS / CHAINS) {
        ADD_TO_ALL;
        ADD_TO_ALL;
    }
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h));
    return clock_now_ns() - start_ns;
}

double issue_throughput_probe(void)
{
    double before_ns = (double)time_dependent(3);
    double all_ns = (double)time_independent(3);
    double after_ns = (double)time_dependent(3);
    bool steady = fabs(after_ns - before_ns) <= CHAIN_SPREAD * fmin(before_ns, after_ns);

    return steady && all_ns > 0 ? CHAINS * fmin(before_ns, after_ns) / all_ns : NAN;
}
