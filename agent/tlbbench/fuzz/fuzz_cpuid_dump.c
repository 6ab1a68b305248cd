/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way of `decode`: text, registers, identity, structures, levels, disagreements, JSON. */
#include "base/verdict.h"
#include "fuzz.h"
#include "machine/cpuid.h"
#include "machine/environment.h"
#include "machine/tlb_levels.h"

static void check_round_trip(const struct cpuid_dump *dump)
{
    char *text = NULL;
    size_t length = 0;
    char error[CPUID_ERROR_BYTES];
    struct cpuid_dump again;
    FILE *out = open_memstream(&text, &length);

    PROMISE(out != NULL);
    cpuid_write(dump, out);
    PROMISE(fclose(out) == 0);
    FILE *in = fmemopen(text, length, "r");

    PROMISE(in != NULL);
    PROMISE(cpuid_read(&again, in, error) == 0);
    PROMISE(again.count == dump->count);
    PROMISE(memcmp(again.leaves, dump->leaves, dump->count * sizeof(dump->leaves[0])) == 0);
    (void)fclose(in);
    free(text);
    cpuid_free(&again);
}

static void check_levels(const struct environment *environment)
{
    struct tlb_level_list levels = {0};
    struct verdict verdict;
    struct disagreement_list found;

    environment_tlb_levels(environment, &levels, &verdict);
    for (size_t i = 0; i < levels.count; i++) {
        PROMISE(levels.items[i].level >= 1 && levels.items[i].page_bytes >= 4096);
        PROMISE(memchr(levels.items[i].note, '\0', sizeof(levels.items[i].note)) != NULL);
    }
    PROMISE(levels.count < TLB_LEVELS_MAX); /* nothing was left out */
    tlb_disagreements_find(&levels, &found);
    PROMISE(found.count < TLB_DISAGREEMENTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct environment environment;
    struct cpuid_dump dump;
    char error[CPUID_ERROR_BYTES] = "";

    if (size == 0)
        return 0;
    char *text = fuzz_text(data, size);
    FILE *in = fmemopen(text, size, "r");

    PROMISE(in != NULL);
    if (cpuid_read(&dump, in, error) == 0) {
        PROMISE(dump.count > 0 && dump.count <= CPUID_MAX_LEAVES);
        check_round_trip(&dump);
        environment_from_dump(&environment, &dump);
        check_levels(&environment);
        environment_free(&environment);
    } else {
        PROMISE(error[0] != '\0' && dump.count == 0);
    }
    (void)fclose(in);
    free(text);
    return 0;
}
