/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/cpus.h"

#include "base/clock.h"

#include <ctype.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

static bool read_cpu(const char **text, int *cpu)
{
    char *end;

    *cpu = -1;
    if (**text == ' ')
        return true;
    if (!isdigit((unsigned char)**text))
        return false;
    unsigned long number = strtoul(*text, &end, 10);

    *text = end;
    *cpu = number <= INT_MAX ? (int)number : INT_MAX;
    return true;
}

bool proc_stat_next(FILE *file, struct proc_stat_cpu *found)
{
    char line[512];

    while (fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0) {
        const char *text = line + 3;

        if (!read_cpu(&text, &found->cpu))
            continue;
        for (unsigned column = 0; column < PROC_STAT_COLUMNS; column++) {
            char *end;
            unsigned long long ticks = strtoull(text, &end, 10);

            found->ticks[column] = end != text && ticks <= INT64_MAX ? (int64_t)ticks : -1;
            text = end;
        }
        return true;
    }
    return false;
}

void cpus_parse_idle(FILE *file, struct idle_sample *sample)
{
    struct proc_stat_cpu found;

    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        sample->ticks[cpu] = -1;
    while (proc_stat_next(file, &found))
        if (found.cpu >= 0 && found.cpu < CPU_LIST_MAX)
            sample->ticks[found.cpu] = found.ticks[PROC_STAT_IDLE];
}

void cpus_sample_idle(struct idle_sample *sample)
{
    FILE *file = fopen("/proc/stat", "re");

    memset(sample, 0, sizeof(*sample));
    sample->wall_ns = clock_now_ns();
    if (file != NULL) {
        cpus_parse_idle(file, sample);
        (void)fclose(file);
    }
}

int cpus_idlest_between(const struct idle_sample *since, const struct idle_sample *now, const struct cpu_list *allowed,
                        double *idle_share)
{
    int64_t most = -1;
    int best = -1;

    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        int64_t idled = now->ticks[cpu] - since->ticks[cpu];

        if (cpu_list_has(allowed, cpu) && since->ticks[cpu] >= 0 && now->ticks[cpu] >= 0 && idled > most) {
            best = cpu;
            most = idled;
        }
    }
    *idle_share =
        best < 0 ? 0 : (double)most * 1e9 / (double)sysconf(_SC_CLK_TCK) / (double)(now->wall_ns - since->wall_ns + 1);
    return best;
}

int cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share)
{
    static struct idle_sample now;

    cpus_sample_idle(&now);
    return cpus_idlest_between(since, &now, allowed, idle_share);
}

/* Four ticks at the usual 100 Hz of /proc/stat. */
#define CPU_SAMPLE_NS 40000000

/* The bits are the kernel's: unsigned long words of 64 bits. glibc's cpu_set_t ends at 1,024 CPUs. */
int cpus_get_affinity(struct cpu_list *cpus)
{
    memset(cpus, 0, sizeof(*cpus));
    if (syscall(SYS_sched_getaffinity, 0, sizeof(cpus->bits), cpus->bits) < 0)
        return -1;
    cpus_keep(cpus, cpus); /* counts them */
    return 0;
}

int cpus_set_affinity(const struct cpu_list *cpus)
{
    return syscall(SYS_sched_setaffinity, 0, sizeof(cpus->bits), cpus->bits) < 0 ? -1 : 0;
}

void cpus_keep(struct cpu_list *cpus, const struct cpu_list *wanted)
{
    cpus->count = 0;
    for (size_t word = 0; word < CPU_LIST_MAX / 64; word++) {
        cpus->bits[word] &= wanted->bits[word];
        cpus->count += __builtin_popcountll(cpus->bits[word]);
    }
}

int cpus_choose(const struct cpu_list *allowed)
{
    static const struct timespec pause = {.tv_sec = 0, .tv_nsec = CPU_SAMPLE_NS};
    static struct idle_sample before;
    double idle_share;

    cpus_sample_idle(&before);
    (void)nanosleep(&pause, NULL);
    int best = cpus_idlest(&before, allowed, &idle_share);

    return best >= 0 ? best : sched_getcpu();
}

int cpus_pin(int cpu)
{
    struct cpu_list only = {.count = 1};

    if (cpu < 0 || cpu >= CPU_LIST_MAX) {
        errno = EINVAL;
        return -1;
    }
    only.bits[cpu / 64] = 1ull << (cpu % 64);
    return cpus_set_affinity(&only);
}
