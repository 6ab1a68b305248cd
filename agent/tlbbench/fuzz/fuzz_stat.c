/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/stat, read before and during every measurement. */
#include "base/text.h"
#include "fuzz.h"
#include "timing/cpus.h"
#include "timing/guard.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct idle_sample look;
    char *text = fuzz_text(data, size);

    if (size == 0) {
        free(text);
        return 0;
    }
    FILE *in = fmemopen(text, size, "r");

    PROMISE(in != NULL);
    look = (struct idle_sample){.wall_ns = 1};
    cpus_parse_idle(in, &look);
    PROMISE(look.wall_ns == 1);
    rewind(in);
    PROMISE(steal_parse(in, -1) >= -1);
    rewind(in);
    (void)steal_parse(in, CPU_LIST_MAX - 1);
    (void)fclose(in);
    free(text);
    return 0;
}
