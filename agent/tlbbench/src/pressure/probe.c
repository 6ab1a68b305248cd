/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure/probe.h"

#include "base/clock.h"
#include "base/signals.h"
#include "base/statistics.h"
#include "timing/guard.h"

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

enum {
    LINES_IN_PIECE = PROBE_PIECE_BYTES / CACHE_LINE_BYTES,
    PART_LINES = 1 << 13, /* read in the first part, before its pace is known */
    WARM_CHECK_LINES = 1 << 14,
    ACCESSES_MIN = 300, /* of a batch that counts */
    PART_ACCESSES_MIN = 16,
    PARTS_MAX = 512,
    INTERRUPTED_SHARE = 50, /* one access in so many at most may have been interrupted */
};

/* One part stands under the noise guard. The median over the parts does not see a neighbour that comes and goes. */
#define PART_NS 5e5
/* Longer than any access with its walk: an interrupt, or the hypervisor had the core. */
#define INTERRUPTED_NS 2e4
/* A batch that takes so many times its share is given up: the machine is too busy. */
#define PATIENCE 3

uint64_t probe_read_lines(const struct probe_region *region, struct rng *rng, unsigned count)
{
    uint64_t sum = 0;

    for (unsigned done = 0; done < count; done += PROBE_LINES_PER_PAGE) {
        uint64_t draw = rng_next(rng);
        uint64_t piece = (uint64_t)(((rng_product)draw * region->pieces) >> 64);
        unsigned first = (unsigned)draw % LINES_IN_PIECE; /* any line, so that all cache sets take part */
        const char *page = region->base + piece * PROBE_PIECE_BYTES;
        unsigned left = count - done;
        unsigned lines = left < PROBE_LINES_PER_PAGE ? left : PROBE_LINES_PER_PAGE;

        for (unsigned line = 0; line < lines; line++) {
            size_t at = (first + line * CACHE_LINE_STEP) % LINES_IN_PIECE;

            sum += *(const volatile uint64_t *)(page + at * CACHE_LINE_BYTES);
        }
    }
    return sum;
}

/* Spins without touching memory. Where the counter is not known there is no wait either. */
static void wait_ticks(uint64_t ticks)
{
    uint64_t start = ticks > 0 ? counter_read() : 0;

    while (ticks > 0 && counter_read() - start < ticks) {
    }
}

void probe_warm_up(struct probe *probe, uint64_t lines, double seconds)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t each = probe->lines_between + 1;
    uint64_t unchecked = 0;

    for (uint64_t done = 0; done < lines; done += each) {
        uint64_t line = rng_below(&probe->access, probe->lines);

        (void)*(const volatile uint64_t *)(probe->base + line * CACHE_LINE_BYTES);
        (void)probe_read_lines(probe->region, &probe->between, probe->lines_between);
        wait_ticks(probe->wait_ticks);
        unchecked += each;
        if (unchecked >= WARM_CHECK_LINES || probe->wait_ticks > 0) {
            unchecked = 0;
            if (signals_stop_requested() || (double)(clock_now_ns() - start_ns) > seconds * 1e9)
                return;
        }
    }
}

struct part {
    uint64_t ticks;
    uint64_t accesses;    /* that ticks holds */
    uint64_t interrupted; /* left out */
    uint64_t whole_ticks; /* of the part, everything between the accesses included */
};

static struct part time_part(struct probe *probe, uint64_t accesses, uint64_t interrupted_ticks)
{
    uint64_t part_start = counter_read();
    struct part part = {0};
    uint64_t carried = 0;
    uint64_t zero = 0;

    /* The compiler cannot know that it is zero, so each address waits for the load before it. */
    __asm__ volatile("" : "+r"(zero));
    for (uint64_t done = 0; done < accesses; done++) {
        uint64_t line = rng_below(&probe->access, probe->lines);
        const char *address = probe->base + line * CACHE_LINE_BYTES + carried;
        uint64_t start = counter_read();
        uint64_t value = *(const volatile uint64_t *)address;

        __asm__ volatile("" : "+r"(value) : : "memory");
        uint64_t ticks = counter_read() - start;

        carried = value & zero;
        if (ticks < interrupted_ticks) {
            part.ticks += ticks;
            part.accesses++;
        } else {
            part.interrupted++;
        }
        /* The next reading of the counter waits for these, so that they do not delay the access after it. */
        (void)probe_read_lines(probe->region, &probe->between, probe->lines_between);
        wait_ticks(probe->wait_ticks);
    }
    part.whole_ticks = counter_read() - part_start;
    return part;
}

bool probe_measure(struct probe *probe, const struct counter_scale *scale, uint64_t accesses, double seconds,
                   struct probe_time *time)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t interrupted_ticks = (uint64_t)(INTERRUPTED_NS * scale->ticks_per_ns);
    uint64_t part_accesses = probe->wait_ticks > 0 ? PART_ACCESSES_MIN : PART_LINES / (probe->lines_between + 8) + 1;
    double means[PARTS_MAX];   /* ticks */
    double periods[PARTS_MAX]; /* ticks */
    size_t parts = 0;
    double elapsed_ns = 0;
    struct part sum = {0};

    while (sum.accesses < accesses && parts < PARTS_MAX && !signals_stop_requested() &&
           elapsed_ns < (sum.accesses < ACCESSES_MIN ? PATIENCE : 1) * seconds * 1e9) {
        struct noise_guard guard;
        double wall_ns;

        guard_begin(&guard);
        struct part part = time_part(probe, part_accesses, interrupted_ticks);

        if (guard_end(&guard, &wall_ns) && part.accesses > 0) {
            periods[parts] = (double)part.whole_ticks / (double)part_accesses;
            means[parts++] = (double)part.ticks / (double)part.accesses;
            sum.accesses += part.accesses;
            sum.interrupted += part.interrupted;
        }
        part_accesses = (uint64_t)(PART_NS / (wall_ns / (double)part_accesses));
        part_accesses = part_accesses < PART_ACCESSES_MIN ? PART_ACCESSES_MIN : part_accesses;
        elapsed_ns = (double)(clock_now_ns() - start_ns);
    }
    if (sum.accesses < ACCESSES_MIN || sum.interrupted * INTERRUPTED_SHARE > sum.accesses)
        return false;
    time->ns = (statistics_median(means, parts) - scale->empty_ticks) / scale->ticks_per_ns;
    time->period_ns = statistics_median(periods, parts) / scale->ticks_per_ns;
    return true;
}
