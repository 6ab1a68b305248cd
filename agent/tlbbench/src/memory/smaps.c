/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says that a range of memory is made of. */
#include "memory/smaps.h"

#include <stdio.h>
#include <string.h>

void smaps_parse_line(struct smaps_parser *parser, const char *line)
{
    struct smaps_proof *proof = &parser->proof;
    unsigned long long first, last;
    char field[32];

    if (sscanf(line, "%llx-%llx ", &first, &last) == 2) {
        parser->inside = first >= parser->start && last <= parser->end;
        return;
    }
    if (!parser->inside || sscanf(line, "%31[A-Za-z_]: %llu", field, &first) != 2)
        return;
    uint64_t bytes = (uint64_t)first * 1024;

    if (strcmp(field, "Rss") == 0)
        proof->rss_bytes += bytes;
    else if (strcmp(field, "AnonHugePages") == 0)
        proof->anon_huge_bytes += bytes;
    else if (strcmp(field, "ShmemPmdMapped") == 0)
        proof->shmem_huge_bytes += bytes;
    else if (strcmp(field, "Private_Hugetlb") == 0 || strcmp(field, "Shared_Hugetlb") == 0)
        proof->hugetlb_bytes += bytes;
    else if (strcmp(field, "KernelPageSize") == 0)
        proof->kernel_page_bytes = bytes;
}

int smaps_read(const char *start, size_t bytes, struct smaps_proof *proof)
{
    struct smaps_parser parser = {.start = (uint64_t)(uintptr_t)start, .end = (uint64_t)(uintptr_t)start + bytes};
    char line[512];
    FILE *file = fopen("/proc/self/smaps", "re");

    if (file == NULL)
        return -1;
    while (fgets(line, sizeof(line), file) != NULL)
        smaps_parse_line(&parser, line);
    (void)fclose(file);
    *proof = parser.proof;
    return 0;
}
