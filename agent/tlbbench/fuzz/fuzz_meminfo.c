/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "machine/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct memory_state memory = {.mem_total_bytes = UNKNOWN, .hugetlb_bytes = UNKNOWN};
    struct numa_node node = {.id = 1};

    meminfo_parse(text, &memory);
    node_meminfo_parse(text, &node);
    PROMISE(memory.mem_total_bytes >= UNKNOWN && memory.hugetlb_bytes >= UNKNOWN);
    PROMISE(node.mem_total_bytes >= UNKNOWN && node.mem_free_bytes >= UNKNOWN);
    free(text);
    return 0;
}
