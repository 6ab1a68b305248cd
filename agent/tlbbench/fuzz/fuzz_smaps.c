/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "memory/arena.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct smaps_parser parser = {.start = 0x1000, .end = UINT64_MAX};
    char line[512];

    if (size == 0)
        return 0;
    char *text = fuzz_text(data, size);
    FILE *in = fmemopen(text, size, "r");

    PROMISE(in != NULL);
    while (fgets(line, sizeof(line), in) != NULL)
        smaps_parse_line(&parser, line);
    PROMISE(parser.proof.kernel_page_bytes % 1024 == 0);
    (void)fclose(in);
    free(text);
    return 0;
}
