/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/steal.h"

#include <stdbool.h>
#include <string.h>

/* One "cpu" line of /proc/stat: user nice system idle iowait irq softirq steal. */
enum { STAT_STEAL = 7, STAT_FIELDS = 8 };

static bool find_stat_line(FILE *file, int cpu, unsigned long long fields[STAT_FIELDS])
{
    char line[512];
    char name[16];
    bool found = false;

    if (cpu < 0)
        (void)snprintf(name, sizeof(name), "cpu ");
    else
        (void)snprintf(name, sizeof(name), "cpu%d ", cpu);
    while (!found && fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0) {
        if (strncmp(line, name, strlen(name)) == 0) {
            found = sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &fields[0], &fields[1],
                           &fields[2], &fields[3], &fields[4], &fields[5], &fields[6], &fields[7]) == STAT_FIELDS;
        }
    }
    return found;
}

uint64_t steal_parse(FILE *file, int cpu)
{
    unsigned long long fields[STAT_FIELDS];

    return find_stat_line(file, cpu, fields) ? fields[STAT_STEAL] : 0;
}

uint64_t steal_ticks(int cpu)
{
    FILE *file = fopen("/proc/stat", "re");
    uint64_t ticks = file != NULL ? steal_parse(file, cpu) : 0;

    if (file != NULL)
        (void)fclose(file);
    return ticks;
}
