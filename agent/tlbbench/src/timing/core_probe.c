/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/core_probe.h"

#include "base/clock.h"
#include "base/statistics.h"
#include "timing/guard.h"

enum { CLOCK_ADDITIONS = 1 << 20, CLOCK_TRIES = 9, CHAIN_ADDITIONS = 2048, CHAINS = 8, LAP_ADDITIONS = 16 };

/* Two chains in a row that differ by more were interrupted, or the clock changed. */
#define CHAIN_SPREAD 0.1

/* The adder is a register that the compiler cannot know: cores from Golden Cove on execute the addition of a constant
 * at rename, in no cycle at all. */
#define ADD(value)                                                                                                     \
    {                                                                                                                  \
        (value) += step;                                                                                               \
        __asm__("" : "+r"(value));                                                                                     \
    }
#define ADD_TO_ALL(a, b, c, d, e, f, g, h) ADD(a) ADD(b) ADD(c) ADD(d) ADD(e) ADD(f) ADD(g) ADD(h)

static void add_dependent(unsigned additions)
{
    uint64_t value = 1;
    uint64_t step = 3;

    __asm__ volatile("" : "+r"(value), "+r"(step));
    for (unsigned done = 0; done < additions; done += LAP_ADDITIONS) {
        ADD_TO_ALL(value, value, value, value, value, value, value, value)
        ADD_TO_ALL(value, value, value, value, value, value, value, value)
    }
    __asm__ volatile("" : : "r"(value));
}

static void add_independent(unsigned additions)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    uint64_t step = 3;

    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(step));
    for (unsigned done = 0; done < additions; done += LAP_ADDITIONS / CHAINS) {
        ADD_TO_ALL(a, b, c, d, e, f, g, h)
        ADD_TO_ALL(a, b, c, d, e, f, g, h)
    }
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h));
}

double core_clock_hz(void)
{
    double rates[CLOCK_TRIES];
    size_t kept = 0;

    for (unsigned try = 0; try < CLOCK_TRIES; try++) {
        struct noise_guard guard;
        double wall_ns;

        guard_begin(&guard);
        add_dependent(CLOCK_ADDITIONS);
        if (guard_end(&guard, &wall_ns))
            rates[kept++] = CLOCK_ADDITIONS / wall_ns * 1e9;
    }
    /* Interference can only slow the chain. */
    statistics_sort(rates, kept);
    return statistics_quantile(rates, kept, 1.0);
}

static double time_additions(void (*add)(unsigned additions))
{
    uint64_t start_ns = clock_now_ns();

    add(CHAIN_ADDITIONS);
    return (double)(clock_now_ns() - start_ns);
}

double issue_throughput_probe(void)
{
    double before_ns = time_additions(add_dependent);
    double all_ns = time_additions(add_independent);
    double after_ns = time_additions(add_dependent);
    bool steady = fabs(after_ns - before_ns) <= CHAIN_SPREAD * fmin(before_ns, after_ns);

    return steady && all_ns > 0 ? CHAINS * fmin(before_ns, after_ns) / all_ns : NAN;
}
