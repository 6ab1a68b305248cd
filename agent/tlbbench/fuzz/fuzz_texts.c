/* SPDX-License-Identifier: Apache-2.0 */
/* The one-line files of /sys and the values of the command line. */
#include "base/text.h"
#include "fuzz.h"
#include "machine/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char choice[16];
    struct cpu_list list;
    uint64_t number = 0;
    double seconds = 0;

    (void)parse_u64(text, &number);
    (void)parse_size(text, &number);
    PROMISE(!parse_seconds(text, &seconds) || seconds >= 0);
    if (parse_cpu_list(text, &list)) {
        int counted = 0;

        for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++)
            counted += cpu_list_has(&list, cpu);
        PROMISE(counted == list.count);
    }
    bracketed_choice(text, choice, sizeof(choice));
    PROMISE(strlen(choice) < sizeof(choice));
    PROMISE(parse_trimmed(text, choice, sizeof(choice)) == strlen(choice));
    kernel_version_parse(text, choice, sizeof(choice));
    PROMISE(strlen(choice) < sizeof(choice));
    (void)pool_directory_bytes(text);
    (void)device_tree_cell(text, size);
    free(text);
    return 0;
}
