/* SPDX-License-Identifier: Apache-2.0 */
#include "cpuid.h"

#include "parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define HAVE_CPUID 1
#endif

enum { LINE_BYTES = 256 };

const struct cpuid_registers *cpuid_find(const struct cpuid_dump *dump, uint32_t leaf, uint32_t subleaf)
{
    for (size_t i = 0; i < dump->count; i++)
        if (dump->leaves[i].leaf == leaf && dump->leaves[i].subleaf == subleaf)
            return &dump->leaves[i].registers;
    return NULL;
}

int cpuid_add(struct cpuid_dump *dump, uint32_t leaf, uint32_t subleaf, struct cpuid_registers registers)
{
    if (dump->count == CPUID_MAX_LEAVES)
        return -1;
    struct cpuid_leaf *leaves = realloc(dump->leaves, (dump->count + 1) * sizeof *leaves);

    if (leaves == NULL)
        return -1;
    dump->leaves = leaves;
    dump->leaves[dump->count++] = (struct cpuid_leaf){leaf, subleaf, registers};
    return 0;
}

void cpuid_free(struct cpuid_dump *dump)
{
    free(dump->leaves);
    dump->leaves = NULL;
    dump->count = 0;
}

#ifdef HAVE_CPUID

static struct cpuid_registers execute(uint32_t leaf, uint32_t subleaf)
{
    struct cpuid_registers r;

    __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
    return r;
}

/* Number of sub-leaves to read of a leaf that has them; only those that matter here. */
static uint32_t subleaf_count(uint32_t leaf, struct cpuid_registers first)
{
    enum { CACHE_SUBLEAVES = 5, MOST_TLB_SUBLEAVES = 32 };

    if (leaf == 0x4 || leaf == 0x8000001D)
        return CACHE_SUBLEAVES;
    if (leaf == 0x18)
        return first.eax < MOST_TLB_SUBLEAVES ? first.eax + 1 : MOST_TLB_SUBLEAVES;
    return 1;
}

static int capture_range(struct cpuid_dump *dump, uint32_t base, uint32_t most)
{
    uint32_t last = execute(base, 0).eax;

    if (last < base || last > base + most)
        last = last < base ? base : base + most;
    for (uint32_t leaf = base; leaf <= last; leaf++) {
        struct cpuid_registers first = execute(leaf, 0);
        uint32_t subleaves = subleaf_count(leaf, first);

        if (cpuid_add(dump, leaf, 0, first) != 0)
            return -1;
        for (uint32_t subleaf = 1; subleaf < subleaves; subleaf++)
            if (cpuid_add(dump, leaf, subleaf, execute(leaf, subleaf)) != 0)
                return -1;
    }
    return 0;
}

int cpuid_capture(struct cpuid_dump *dump)
{
    enum { BASIC_LEAVES = 0x40, HYPERVISOR_LEAVES = 0x10, EXTENDED_LEAVES = 0x40 };
    const uint32_t hypervisor_bit = UINT32_C(1) << 31; /* leaf 1 ECX[31], Intel SDM and AMD APM */

    memset(dump, 0, sizeof *dump);
    if (capture_range(dump, 0, BASIC_LEAVES) != 0)
        return -1;
    if ((execute(1, 0).ecx & hypervisor_bit) != 0 && capture_range(dump, 0x40000000, HYPERVISOR_LEAVES) != 0)
        return -1;
    return capture_range(dump, 0x80000000, EXTENDED_LEAVES);
}

#else

int cpuid_capture(struct cpuid_dump *dump)
{
    memset(dump, 0, sizeof *dump);
    return -1;
}

#endif

/* Reads "0x" and hexadecimal digits that fit 32 bits, and moves *text behind them. */
static bool read_hex(const char **text, uint32_t *value)
{
    char *end = NULL;

    if (strncmp(*text, "0x", 2) != 0 || !isxdigit((unsigned char)(*text)[2]))
        return false;
    unsigned long long number = strtoull(*text, &end, 16);

    if (number > UINT32_MAX)
        return false;
    *value = (uint32_t)number;
    *text = end;
    return true;
}

static bool read_named(const char **text, const char *name, uint32_t *value)
{
    size_t length = strlen(name);

    while (**text == ' ')
        (*text)++;
    if (strncmp(*text, name, length) != 0)
        return false;
    *text += length;
    return read_hex(text, value);
}

static bool read_line(const char *text, struct cpuid_leaf *leaf)
{
    struct cpuid_registers *r = &leaf->registers;

    if (!read_hex(&text, &leaf->leaf) || *text++ != ' ' || !read_hex(&text, &leaf->subleaf) || *text++ != ':')
        return false;
    return read_named(&text, "eax=", &r->eax) && read_named(&text, "ebx=", &r->ebx) &&
           read_named(&text, "ecx=", &r->ecx) && read_named(&text, "edx=", &r->edx) && *text == '\0';
}

int cpuid_read(struct cpuid_dump *dump, FILE *in, char error[CPUID_ERROR_BYTES])
{
    char line[LINE_BYTES];
    char text[LINE_BYTES];
    unsigned number = 0;

    memset(dump, 0, sizeof *dump);
    while (fgets(line, sizeof line, in) != NULL) {
        struct cpuid_leaf leaf;

        number++;
        if (parse_trimmed(line, text, sizeof text) == 0)
            continue;
        if (strncmp(text, "CPU", 3) == 0) {
            if (dump->count > 0)
                break; /* the next logical CPU */
            continue;
        }
        if (!read_line(text, &leaf)) {
            (void)snprintf(
                error, CPUID_ERROR_BYTES,
                "line %u: '%.40s' is not valid; valid: 0xLEAF 0xSUBLEAF: eax=0x.. ebx=0x.. ecx=0x.. edx=0x..", number,
                text);
            cpuid_free(dump);
            return -1;
        }
        if (cpuid_add(dump, leaf.leaf, leaf.subleaf, leaf.registers) != 0) {
            (void)snprintf(error, CPUID_ERROR_BYTES, "line %u: too many leaves; valid: up to %d", number,
                           (int)CPUID_MAX_LEAVES);
            cpuid_free(dump);
            return -1;
        }
    }
    if (ferror(in) != 0 || dump->count == 0) {
        (void)snprintf(error, CPUID_ERROR_BYTES, "%s",
                       ferror(in) != 0 ? "it cannot be read" : "it holds no CPUID registers");
        cpuid_free(dump);
        return -1;
    }
    return 0;
}

void cpuid_write(const struct cpuid_dump *dump, FILE *out)
{
    (void)fputs("CPU 0:\n", out);
    for (size_t i = 0; i < dump->count; i++) {
        const struct cpuid_leaf *l = &dump->leaves[i];

        (void)fprintf(out, "   0x%08" PRIx32 " 0x%02" PRIx32, l->leaf, l->subleaf);
        (void)fprintf(out, ": eax=0x%08" PRIx32 " ebx=0x%08" PRIx32, l->registers.eax, l->registers.ebx);
        (void)fprintf(out, " ecx=0x%08" PRIx32 " edx=0x%08" PRIx32 "\n", l->registers.ecx, l->registers.edx);
    }
}

static void put_register(char *text, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        text[i] = (char)(value >> (8 * i) & 0xFF);
}

/* Copies text from registers; what is not printable ASCII becomes a space, so that no dump can forge a line. */
static void copy_text(char *out, size_t size, const char *raw, size_t length)
{
    char clean[64];

    memcpy(clean, raw, length);
    for (size_t i = 0; i < length; i++)
        if (clean[i] != '\0' && !isprint((unsigned char)clean[i]))
            clean[i] = ' ';
    clean[length] = '\0';
    (void)parse_trimmed(clean, out, size);
}

static void read_brand(const struct cpuid_dump *dump, struct cpuid_identity *identity)
{
    char raw[48];

    for (uint32_t i = 0; i < 3; i++) {
        const struct cpuid_registers *r = cpuid_find(dump, 0x80000002 + i, 0);

        if (r == NULL)
            return;
        size_t at = (size_t)i * 16;
        put_register(raw + at, r->eax);
        put_register(raw + at + 4, r->ebx);
        put_register(raw + at + 8, r->ecx);
        put_register(raw + at + 12, r->edx);
    }
    copy_text(identity->brand, sizeof identity->brand, raw, sizeof raw);
}

static void read_vendor(const struct cpuid_registers *r, bool leaf_zero, char vendor[13])
{
    char raw[12];

    /* Leaf 0 spells EBX, EDX, ECX; the hypervisor leaf EBX, ECX, EDX. */
    put_register(raw, r->ebx);
    put_register(raw + 4, leaf_zero ? r->edx : r->ecx);
    put_register(raw + 8, leaf_zero ? r->ecx : r->edx);
    copy_text(vendor, 13, raw, sizeof raw);
}

void cpuid_identify(const struct cpuid_dump *dump, struct cpuid_identity *identity)
{
    const struct cpuid_registers *zero = cpuid_find(dump, 0, 0);
    const struct cpuid_registers *one = cpuid_find(dump, 1, 0);
    const struct cpuid_registers *hypervisor = cpuid_find(dump, 0x40000000, 0);

    memset(identity, 0, sizeof *identity);
    if (zero == NULL || one == NULL)
        return;
    identity->known = true;
    read_vendor(zero, true, identity->vendor);
    identity->stepping = one->eax & 0xF;
    identity->model = one->eax >> 4 & 0xF;
    identity->family = one->eax >> 8 & 0xF;
    if (identity->family == 0x6 || identity->family == 0xF)
        identity->model |= one->eax >> 12 & 0xF0;
    if (identity->family == 0xF)
        identity->family += one->eax >> 20 & 0xFF;
    identity->hypervisor = (one->ecx >> 31 & 1) != 0;
    if (identity->hypervisor && hypervisor != NULL)
        read_vendor(hypervisor, false, identity->hypervisor_vendor);
    read_brand(dump, identity);
}
