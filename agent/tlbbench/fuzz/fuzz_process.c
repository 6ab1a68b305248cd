/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "machine/environment.h"
#include "machine/processes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct process_pages process = {.pid = 1};

    process_status_parse(text, &process);
    process_smaps_rollup_parse(text, &process);
    PROMISE(memchr(process.name, '\0', sizeof(process.name)) != NULL);
    PROMISE(process.rss_bytes >= UNKNOWN && process.pss_bytes >= UNKNOWN && process.page_tables_bytes >= UNKNOWN);
    PROMISE(process.hugetlb_bytes >= UNKNOWN);
    free(text);
    return 0;
}
