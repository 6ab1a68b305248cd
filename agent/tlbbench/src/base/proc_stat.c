/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc_stat.h"

#include <ctype.h>
#include <limits.h>

/* The CPU's number behind "cpu"; false where there is none. */
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
