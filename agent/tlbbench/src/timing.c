/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include "statistics.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define NS_PER_SECOND 1000000000u

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;

    if (clock_gettime(id, &now) != 0) {
        return 0;
    }
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t timing_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC_RAW);
}

uint64_t timing_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static long involuntary_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

long timing_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw + usage.ru_nvcsw : 0;
}

/* Reading the processor time makes the kernel account the slice, so a task whose slice is used up is switched away
 * right there. Such a switch lies outside the batch only if this clock is read first and last: it costs no batch then,
 * and the batch behind it starts with a fresh slice. */
void timing_guard_begin(struct timing_guard *guard)
{
    guard->cpu_ns = timing_thread_cpu_ns();
    guard->switches = involuntary_switches();
    guard->wall_ns = timing_now_ns();
}

bool timing_guard_end(const struct timing_guard *guard, double *wall_ns)
{
    const uint64_t wall = timing_now_ns() - guard->wall_ns;
    const long switches = involuntary_switches();
    const uint64_t cpu = timing_thread_cpu_ns() - guard->cpu_ns;

    *wall_ns = (double)wall;
    return (double)cpu >= TIMING_CPU_SHARE_MIN * (double)wall && switches == guard->switches;
}

/* One "cpu" line of /proc/stat: user nice system idle iowait irq softirq steal. */
enum { STAT_STEAL = 7, STAT_FIELDS = 8 };

static bool find_stat_line(FILE *file, int cpu, unsigned long long fields[STAT_FIELDS])
{
    char line[512];
    char name[16];
    bool found = false;

    if (cpu < 0) {
        (void)snprintf(name, sizeof(name), "cpu ");
    } else {
        (void)snprintf(name, sizeof(name), "cpu%d ", cpu);
    }
    while (!found && fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0) {
        if (strncmp(line, name, strlen(name)) == 0) {
            found = sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &fields[0], &fields[1],
                           &fields[2], &fields[3], &fields[4], &fields[5], &fields[6], &fields[7]) == STAT_FIELDS;
        }
    }
    return found;
}

uint64_t timing_parse_steal(FILE *file, int cpu)
{
    unsigned long long fields[STAT_FIELDS];

    return find_stat_line(file, cpu, fields) ? fields[STAT_STEAL] : 0;
}

uint64_t timing_steal_ticks(int cpu)
{
    FILE *const file = fopen("/proc/stat", "re");
    const uint64_t ticks = file != NULL ? timing_parse_steal(file, cpu) : 0;

    if (file != NULL) {
        (void)fclose(file);
    }
    return ticks;
}

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
    struct timing_guard guard;

    __asm__ volatile("" : "+r"(value), "+r"(step));
    timing_guard_begin(&guard);
    for (unsigned done = 0; done < CORE_CLOCK_ADDITIONS; done += 16) {
        ADD_EIGHT;
        ADD_EIGHT;
    }
    __asm__ volatile("" : : "r"(value));
    *quiet = timing_guard_end(&guard, &wall_ns);
    return CORE_CLOCK_ADDITIONS / wall_ns * NS_PER_SECOND;
}

double timing_core_hz(void)
{
    double rates[CORE_CLOCK_TRIES];
    size_t kept = 0;

    for (unsigned try = 0; try < CORE_CLOCK_TRIES; try++) {
        bool quiet;
        const double rate = core_clock_batch(&quiet);

        if (quiet) {
            rates[kept++] = rate;
        }
    }
    /* Disturbances only slow the chain. */
    statistics_sort(rates, kept);
    return statistics_quantile(rates, kept, 1.0);
}

#define TICK_NS 1e7 /* USER_HZ is 100 on every architecture here */

void timing_parse_idle(FILE *file, struct idle_look *look)
{
    char line[512];

    while (fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0) {
        unsigned long long ticks;
        int cpu;

        if (sscanf(line, "cpu%d %*u %*u %*u %llu", &cpu, &ticks) == 2 && cpu >= 0 && cpu < CPU_LIST_MAX) {
            look->ticks[cpu] = ticks;
        }
    }
}

/* A core that is not listed keeps 0. */
void timing_look_idle(struct idle_look *look)
{
    FILE *const file = fopen("/proc/stat", "re");

    memset(look, 0, sizeof(*look));
    look->wall_ns = timing_now_ns();
    if (file != NULL) {
        timing_parse_idle(file, look);
        (void)fclose(file);
    }
}

int timing_idlest_cpu(const struct idle_look *since, const struct cpu_list *allowed, double *idle_share)
{
    static struct idle_look now;
    unsigned long long most = 0;
    int best = -1;

    timing_look_idle(&now);
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        const unsigned long long idled = now.ticks[cpu] - since->ticks[cpu];

        if (cpu_list_has(allowed, cpu) && (best < 0 || idled > most)) {
            best = cpu;
            most = idled;
        }
    }
    *idle_share = (double)most * TICK_NS / (double)(now.wall_ns - since->wall_ns + 1);
    return best;
}

/* Four ticks at the usual 100 Hz of /proc/stat. */
#define CPU_LOOK_NS 40000000

void timing_list_cpus(const struct cpu_list *wanted, struct cpu_list *allowed)
{
    cpu_set_t mask;

    memset(allowed, 0, sizeof(*allowed));
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) {
        return;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < CPU_LIST_MAX; cpu++) {
        if (CPU_ISSET((size_t)cpu, &mask) && (wanted->count == 0 || cpu_list_has(wanted, cpu))) {
            allowed->bits[cpu / 64] |= 1ull << (cpu % 64);
            allowed->count++;
        }
    }
}

int timing_choose_cpu(const struct cpu_list *allowed)
{
    static const struct timespec pause = {.tv_sec = 0, .tv_nsec = CPU_LOOK_NS};
    static struct idle_look before;
    double idle_share;

    timing_look_idle(&before);
    (void)nanosleep(&pause, NULL);
    const int best = timing_idlest_cpu(&before, allowed, &idle_share);

    return best >= 0 ? best : sched_getcpu();
}

int timing_pin_cpu(int cpu)
{
    cpu_set_t mask;

    CPU_ZERO(&mask);
    CPU_SET((size_t)cpu, &mask);
    return sched_setaffinity(0, sizeof(mask), &mask);
}

struct deadline deadline_after(double seconds)
{
    return (struct deadline){.end_ns = timing_now_ns() + (uint64_t)(seconds * NS_PER_SECOND)};
}

struct deadline deadline_earlier(struct deadline left, struct deadline right)
{
    return left.end_ns < right.end_ns ? left : right;
}

double deadline_remaining_seconds(struct deadline deadline)
{
    const uint64_t now = timing_now_ns();

    return now >= deadline.end_ns ? 0 : (double)(deadline.end_ns - now) / NS_PER_SECOND;
}

bool deadline_passed(struct deadline deadline)
{
    return timing_now_ns() >= deadline.end_ns;
}
