/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cpuid.h"

#include "base/text.h"

#include <ctype.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define HAVE_CPUID 1
#endif

enum {
    LINE_BYTES = 256,
    /* Only the first processor's lines are read, and none has so many: this ends the reading of /dev/zero. */
    MOST_LINES = 1 << 16,
    QUOTE_BYTES = 48,
};

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
    struct cpuid_leaf *leaves = realloc(dump->leaves, (dump->count + 1) * sizeof(*leaves));

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
    uint32_t hypervisor_bit = UINT32_C(1) << 31; /* leaf 1 ECX[31], Intel SDM and AMD APM */

    memset(dump, 0, sizeof(*dump));
    if (capture_range(dump, 0, BASIC_LEAVES) != 0)
        return -1;
    if ((execute(1, 0).ecx & hypervisor_bit) != 0 && capture_range(dump, 0x40000000, HYPERVISOR_LEAVES) != 0)
        return -1;
    return capture_range(dump, 0x80000000, EXTENDED_LEAVES);
}

#else

int cpuid_capture(struct cpuid_dump *dump)
{
    memset(dump, 0, sizeof(*dump));
    return -1;
}

#endif

/* Copies up to 63 bytes; what is not printable ASCII becomes a space, so that no dump can forge a line. */
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

/* Reads "0x" and hexadecimal digits, and moves *text behind them. `digits` is how many there must be, 0 = up to 8. A
 * register always has eight: a line that was cut off must not pass as a smaller number. */
static bool read_hex(const char **text, unsigned digits, uint32_t *value)
{
    const char *p = *text + 2;

    if ((*text)[0] != '0' || ((*text)[1] != 'x' && (*text)[1] != 'X'))
        return false;
    size_t count = strspn(p, "0123456789abcdefABCDEF");

    if (count == 0 || count > 8 || (digits != 0 && count != digits))
        return false;
    *value = (uint32_t)strtoul(p, NULL, 16);
    *text = p + count;
    return true;
}

static bool read_register(const char **text, const char *name, uint32_t *value)
{
    size_t length = strlen(name);

    while (**text == ' ')
        (*text)++;
    if (strncmp(*text, name, length) != 0)
        return false;
    *text += length;
    return read_hex(text, 8, value);
}

static bool read_registers(const char *text, struct cpuid_leaf *leaf)
{
    struct cpuid_registers *r = &leaf->registers;

    if (!read_hex(&text, 0, &leaf->leaf) || *text++ != ' ' || !read_hex(&text, 0, &leaf->subleaf) || *text++ != ':')
        return false;
    return read_register(&text, "eax=", &r->eax) && read_register(&text, "ebx=", &r->ebx) &&
           read_register(&text, "ecx=", &r->ecx) && read_register(&text, "edx=", &r->edx) && *text == '\0';
}

/* Where a dump is being read. */
struct reading {
    FILE *in;
    struct cpuid_dump *dump;
    char line[LINE_BYTES];
    unsigned number; /* of the line */
    unsigned pieces; /* of lines, as long as the buffer */
    char *error;
};

enum line_result { LINE_TAKEN, LINE_NEXT_PROCESSOR, LINE_BAD };

static enum line_result refuse(struct reading *reading, const char *text)
{
    char quote[QUOTE_BYTES];

    copy_text(quote, sizeof(quote), text, strnlen(text, sizeof(quote) - 8));
    (void)snprintf(
        reading->error, CPUID_ERROR_BYTES,
        "line %u: '%s' is not valid; valid: 0xLEAF 0xSUBLEAF: eax=0x.. ebx=0x.. ecx=0x.. edx=0x.. with eight "
        "digits a register",
        reading->number, quote);
    return LINE_BAD;
}

static enum line_result take_leaf(struct reading *reading, const struct cpuid_leaf *leaf)
{
    const struct cpuid_registers *earlier = cpuid_find(reading->dump, leaf->leaf, leaf->subleaf);

    if (earlier != NULL && leaf->leaf == 0 && leaf->subleaf == 0 && reading->dump->count > 1)
        return LINE_NEXT_PROCESSOR; /* dumps that were put together without a header between them */
    if (earlier != NULL && memcmp(earlier, &leaf->registers, sizeof(*earlier)) == 0)
        return LINE_TAKEN;
    if (earlier != NULL)
        (void)snprintf(reading->error, CPUID_ERROR_BYTES,
                       "line %u: leaf 0x%08" PRIx32 " 0x%02" PRIx32
                       " comes a second time with other values; valid: each once for a processor",
                       reading->number, leaf->leaf, leaf->subleaf);
    else if (cpuid_add(reading->dump, leaf->leaf, leaf->subleaf, leaf->registers) == 0)
        return LINE_TAKEN;
    else
        (void)snprintf(reading->error, CPUID_ERROR_BYTES, "line %u: too many leaves; valid: up to %d", reading->number,
                       (int)CPUID_MAX_LEAVES);
    return LINE_BAD;
}

/* A line of blanks may be longer than the buffer and comes in pieces; anything else so long is no register line. */
static enum line_result take_line(struct reading *reading)
{
    char text[LINE_BYTES];
    const char *line = reading->line;
    struct cpuid_leaf leaf;

    if (reading->number == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0)
        line += 3; /* the mark that some editors put before UTF-8 text */
    if (parse_trimmed(line, text, sizeof(text)) == 0)
        return LINE_TAKEN;
    if (strncmp(text, "CPU", 3) == 0)
        return reading->dump->count > 0 ? LINE_NEXT_PROCESSOR : LINE_TAKEN;
    return read_registers(text, &leaf) ? take_leaf(reading, &leaf) : refuse(reading, text);
}

static enum line_result read_lines(struct reading *reading)
{
    enum line_result result = LINE_TAKEN;
    bool begins = true;

    while (result == LINE_TAKEN && fgets(reading->line, sizeof(reading->line), reading->in) != NULL) {
        size_t length = strlen(reading->line);

        reading->number += begins;
        begins = length > 0 && reading->line[length - 1] == '\n';
        result = take_line(reading);
        if (result == LINE_TAKEN && ++reading->pieces > MOST_LINES) {
            (void)snprintf(reading->error, CPUID_ERROR_BYTES, "it is too large for a register dump");
            result = LINE_BAD;
        }
    }
    return result;
}

int cpuid_read(struct cpuid_dump *dump, FILE *in, char error[CPUID_ERROR_BYTES])
{
    struct reading reading = {.in = in, .dump = dump, .error = error};

    memset(dump, 0, sizeof(*dump));
    enum line_result result = read_lines(&reading);

    if (result != LINE_BAD && ferror(in) == 0 && dump->count > 0)
        return 0;
    if (result != LINE_BAD)
        (void)snprintf(error, CPUID_ERROR_BYTES, "%s",
                       ferror(in) != 0 ? "it cannot be read" : "it holds no CPUID registers");
    cpuid_free(dump);
    return -1;
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

static void put_registers(char *text, const uint32_t *values, size_t count)
{
    for (size_t i = 0; i < 4 * count; i++)
        text[i] = (char)(values[i / 4] >> (8 * (i % 4)) & 0xFF);
}

static void read_brand(const struct cpuid_dump *dump, struct cpuid_identity *identity)
{
    char raw[48];

    for (uint32_t i = 0; i < 3; i++) {
        const struct cpuid_registers *r = cpuid_find(dump, 0x80000002 + i, 0);

        if (r == NULL)
            return;
        put_registers(raw + (size_t)i * 16, (const uint32_t[]){r->eax, r->ebx, r->ecx, r->edx}, 4);
    }
    copy_text(identity->brand, sizeof(identity->brand), raw, sizeof(raw));
}

static void read_vendor(const struct cpuid_registers *r, bool leaf_zero, char vendor[13])
{
    char raw[12];

    /* Leaf 0 spells EBX, EDX, ECX; the hypervisor leaf EBX, ECX, EDX. */
    put_registers(raw, (const uint32_t[]){r->ebx, leaf_zero ? r->edx : r->ecx, leaf_zero ? r->ecx : r->edx}, 3);
    copy_text(vendor, 13, raw, sizeof(raw));
}

void cpuid_identify(const struct cpuid_dump *dump, struct cpuid_identity *identity)
{
    const struct cpuid_registers *zero = cpuid_find(dump, 0, 0);
    const struct cpuid_registers *one = cpuid_find(dump, 1, 0);
    const struct cpuid_registers *hypervisor = cpuid_find(dump, 0x40000000, 0);

    memset(identity, 0, sizeof(*identity));
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
