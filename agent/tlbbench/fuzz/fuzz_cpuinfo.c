/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "machine/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct processor processor = {
        .family = UNKNOWN, .model = UNKNOWN, .stepping = UNKNOWN, .midr = UNKNOWN, .pvr = UNKNOWN};
    struct hypervisor hypervisor = {.state = HYPERVISOR_UNKNOWN};

    cpuinfo_parse(text, &processor, &hypervisor);
    PROMISE(processor.family >= UNKNOWN && processor.family <= 0xFFFF);
    PROMISE(processor.midr >= UNKNOWN && processor.midr <= UINT32_MAX);
    PROMISE(processor.pvr >= UNKNOWN && processor.pvr <= UINT32_MAX);
    PROMISE(memchr(processor.brand, '\0', sizeof(processor.brand)) != NULL);
    PROMISE(memchr(hypervisor.name, '\0', sizeof(hypervisor.name)) != NULL);
    free(text);
    return 0;
}
