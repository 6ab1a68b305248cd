/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "machine/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct cgroup_place place;

    cgroup_parse(text, "memory", &place);
    PROMISE(place.version == 1 || place.version == 2 || place.version == UNKNOWN);
    PROMISE(memchr(place.path, '\0', sizeof(place.path)) != NULL);
    PROMISE(place.version != UNKNOWN || place.path[0] == '\0');
    free(text);
    return 0;
}
