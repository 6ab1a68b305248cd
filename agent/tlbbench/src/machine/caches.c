/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/caches.h"

#include "base/parse.h"
#include "base/tree.h"

#include <stdio.h>
#include <string.h>

uint64_t cache_last_level_bytes(void)
{
    enum { CACHE_INDEXES = 8 };
    uint64_t bytes = 32u << 20;
    int64_t best = 0;

    for (int index = 0; index < CACHE_INDEXES; index++) {
        char directory[64];
        char path[96];
        char text[32];
        uint64_t size = 0;

        (void)snprintf(directory, sizeof(directory), "/sys/devices/system/cpu/cpu0/cache/index%d", index);
        (void)snprintf(path, sizeof(path), "%s/level", directory);
        int64_t level = tree_read_number("", path);

        (void)snprintf(path, sizeof(path), "%s/size", directory);
        if (!tree_read_line("", path, text, sizeof(text)) || !parse_size(text, &size))
            continue;
        (void)snprintf(path, sizeof(path), "%s/type", directory);
        (void)tree_read_line("", path, text, sizeof(text)); /* absent = not one of instructions */
        if (level > best && size > 0 && strcmp(text, "Instruction") != 0) {
            best = level;
            bytes = size;
        }
    }
    return bytes;
}
