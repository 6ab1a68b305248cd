/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"
#include "machine/environment.h"

enum {
    /* The first CPU's block is enough; the file grows by more than 1 KiB per CPU. POWER names the machine in the last
     * lines, after all CPUs. */
    CPUINFO_BYTES = 1 << 20,
    CELL_BYTES = 16,            /* more than a device tree's cell has */
    DEVICE_TREE_MOST_WAYS = 64, /* more than any second-level TLB has */
};

static void copy(char *out, size_t size, const char *text)
{
    if (out[0] == '\0')
        (void)parse_trimmed(text, out, size);
}

static void take_number(const char *text, const char *key, int *out)
{
    char value[64];
    uint64_t number = 0;

    if (*out != UNKNOWN || !colon_value(text, key, value, sizeof(value)))
        return;
    if (parse_u64(value, &number) && number <= 0xFFFF)
        *out = (int)number;
}

static void parse_x86(const char *text, struct processor *processor, struct hypervisor *hypervisor)
{
    char value[ENV_TEXT_BYTES];
    const char *flags = strstr(text, "\nflags");

    if (colon_value(text, "vendor_id", value, sizeof(value)))
        copy(processor->vendor, sizeof(processor->vendor), value);
    if (colon_value(text, "model name", value, sizeof(value)))
        copy(processor->brand, sizeof(processor->brand), value);
    take_number(text, "cpu family", &processor->family);
    take_number(text, "model", &processor->model);
    take_number(text, "stepping", &processor->stepping);
    if (hypervisor->state != HYPERVISOR_UNKNOWN || flags == NULL)
        return;
    bool is_guest = text_has_word(flags + 1, strcspn(flags + 1, "\n"), " \t", "hypervisor", strlen("hypervisor"));

    hypervisor->state = is_guest ? HYPERVISOR_PRESENT : HYPERVISOR_ABSENT;
}

static bool take_hex(const char *text, const char *key, uint64_t *number)
{
    char value[64];

    return colon_value(text, key, value, sizeof(value)) && parse_u64(value, number);
}

/* MIDR_EL1 put together from the fields that arm64's /proc/cpuinfo prints. */
static void parse_arm(const char *text, struct processor *processor)
{
    uint64_t implementer = 0;
    uint64_t variant = 0;
    uint64_t part = 0;
    uint64_t revision = 0;

    if (processor->midr != UNKNOWN || !take_hex(text, "CPU implementer", &implementer) ||
        !take_hex(text, "CPU part", &part))
        return;
    (void)take_hex(text, "CPU variant", &variant);
    (void)take_hex(text, "CPU revision", &revision);
    /* Architecture 0xF: the features are in the ID registers, as on every Armv8 core. */
    processor->midr = (int64_t)((implementer & 0xFF) << 24 | (variant & 0xF) << 20 | UINT64_C(0xF) << 16 |
                                (part & 0xFFF) << 4 | (revision & 0xF));
}

/* "revision : 2.2 (pvr 004e 1202)" */
static void parse_power(const char *text, struct processor *processor, struct hypervisor *hypervisor)
{
    char value[ENV_TEXT_BYTES];
    unsigned version = 0;
    unsigned revision = 0;

    if (!colon_value(text, "revision", value, sizeof(value)))
        return;
    const char *pvr = strstr(value, "(pvr ");
    char *end = NULL;

    if (pvr == NULL)
        return;
    version = (unsigned)strtoul(pvr + 5, &end, 16);
    revision = (unsigned)strtoul(end, NULL, 16);
    if (version > 0xFFFF || revision > 0xFFFF)
        return;
    processor->pvr = (int64_t)version << 16 | revision;
    if (colon_value(text, "cpu", value, sizeof(value)))
        copy(processor->brand, sizeof(processor->brand), value);
    copy(processor->vendor, sizeof(processor->vendor), "IBM");
    if (hypervisor->state != HYPERVISOR_UNKNOWN || !colon_value(text, "platform", value, sizeof(value)))
        return;
    /* PowerNV is the bare machine; pSeries runs under PowerVM or KVM. */
    hypervisor->state = strncmp(value, "PowerNV", 7) == 0 ? HYPERVISOR_ABSENT : HYPERVISOR_PRESENT;
    if (hypervisor->state == HYPERVISOR_PRESENT && colon_value(text, "machine", value, sizeof(value)))
        copy(hypervisor->name, sizeof(hypervisor->name), strstr(value, "qemu") != NULL ? "KVM" : "PowerVM");
}

void cpuinfo_parse(const char *text, struct processor *processor, struct hypervisor *hypervisor)
{
    char value[ENV_TEXT_BYTES];

    if (colon_value(text, "vendor_id", value, sizeof(value))) {
        copy(processor->architecture, sizeof(processor->architecture), "x86_64");
        parse_x86(text, processor, hypervisor);
    } else if (colon_value(text, "CPU implementer", value, sizeof(value))) {
        copy(processor->architecture, sizeof(processor->architecture), "aarch64");
        parse_arm(text, processor);
    } else if (strstr(text, "(pvr ") != NULL) {
        copy(processor->architecture, sizeof(processor->architecture), "ppc64le");
        parse_power(text, processor, hypervisor);
    }
}

static const char *arm_implementer(int64_t midr)
{
    /* Implementer codes, Arm ARM: MIDR_EL1. */
    static const struct {
        unsigned code;
        const char *name;
    } implementers[] = {{0x41, "Arm"},       {0x42, "Broadcom"},  {0x43, "Cavium"}, {0x46, "Fujitsu"},
                        {0x48, "HiSilicon"}, {0x4E, "NVIDIA"},    {0x50, "APM"},    {0x51, "Qualcomm"},
                        {0x61, "Apple"},     {0x6D, "Microsoft"}, {0xC0, "Ampere"}};

    for (size_t i = 0; i < sizeof(implementers) / sizeof(implementers[0]); i++)
        if (implementers[i].code == (unsigned)(midr >> 24 & 0xFF))
            return implementers[i].name;
    return "";
}

static const char *hypervisor_name(const char *vendor)
{
    static const struct {
        const char *vendor;
        const char *name;
    } names[] = {{"KVMKVMKVM", "KVM"},       {"Linux KVM Hv", "KVM"}, {"Microsoft Hv", "Hyper-V"},
                 {"VMwareVMware", "VMware"}, {"XenVMMXenVMM", "Xen"}, {"TCGTCGTCGTCG", "QEMU TCG"},
                 {"bhyve bhyve", "bhyve"},   {"ACRNACRNACRN", "ACRN"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].vendor, vendor) == 0)
            return names[i].name;
    return vendor;
}

static void find_catalogue(struct processor *processor)
{
    if (processor->midr != UNKNOWN)
        processor->catalogue = catalogue_find_midr((uint64_t)processor->midr);
    else if (processor->pvr != UNKNOWN)
        processor->catalogue = catalogue_find_pvr((uint64_t)processor->pvr);
    else if (processor->family != UNKNOWN && processor->model != UNKNOWN && processor->stepping != UNKNOWN)
        processor->catalogue = catalogue_find_x86(processor->vendor, (unsigned)processor->family,
                                                  (unsigned)processor->model, (unsigned)processor->stepping);
}

void environment_identify(struct environment *environment)
{
    struct processor *processor = &environment->processor;
    struct cpuid_identity identity;

    processor->family = processor->model = processor->stepping = UNKNOWN;
    processor->midr = processor->pvr = UNKNOWN;
    processor->cpus_online = UNKNOWN;
    cpuid_identify(&environment->cpuid, &identity);
    if (!identity.known)
        return;
    copy(processor->architecture, sizeof(processor->architecture), "x86_64");
    copy(processor->vendor, sizeof(processor->vendor), identity.vendor);
    copy(processor->brand, sizeof(processor->brand), identity.brand);
    processor->family = (int)identity.family;
    processor->model = (int)identity.model;
    processor->stepping = (int)identity.stepping;
    environment->hypervisor.state = identity.hypervisor ? HYPERVISOR_PRESENT : HYPERVISOR_ABSENT;
    copy(environment->hypervisor.name, sizeof(environment->hypervisor.name),
         hypervisor_name(identity.hypervisor_vendor));
    find_catalogue(processor);
}

/* Hypervisors that name themselves outside CPUID: Xen in sysfs, KVM on arm64 and POWER in the device tree. */
static void read_hypervisor(struct environment *environment)
{
    struct hypervisor *hypervisor = &environment->hypervisor;
    char text[ENV_TEXT_BYTES];

    if (hypervisor->state == HYPERVISOR_ABSENT || hypervisor->name[0] != '\0')
        return;
    if (tree_read_line(environment->root, "/sys/hypervisor/type", text, sizeof(text)))
        copy(hypervisor->name, sizeof(hypervisor->name), strcmp(text, "xen") == 0 ? "Xen" : text);
    else if (tree_read_line(environment->root, "/proc/device-tree/hypervisor/compatible", text, sizeof(text)))
        copy(hypervisor->name, sizeof(hypervisor->name), strcmp(text, "linux,kvm") == 0 ? "KVM" : text);
    else if (tree_read_line(environment->root, "/sys/class/dmi/id/sys_vendor", text, sizeof(text)) &&
             strcmp(text, "QEMU") == 0)
        copy(hypervisor->name, sizeof(hypervisor->name), "QEMU");
    else
        return;
    hypervisor->state = HYPERVISOR_PRESENT;
}

uint32_t device_tree_cell(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;

    return length == 4 ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3] : 0;
}

static uint32_t read_cell(const char *root, const char *node, const char *property)
{
    char path[512];
    char bytes[CELL_BYTES];

    (void)snprintf(path, sizeof(path), "/proc/device-tree/cpus/%s/%s", node, property);
    ssize_t length = tree_read(root, path, bytes, sizeof(bytes));

    return length < 0 ? 0 : device_tree_cell(bytes, (size_t)length);
}

struct cpu_node_search {
    char name[128];
};

static void find_cpu_node(const char *name, void *context)
{
    struct cpu_node_search *search = context;

    /* "cpu@0", "PowerPC,POWER9@8": the first in name order, so that the answer does not depend on the directory. */
    if (strchr(name, '@') != NULL && strlen(name) < sizeof(search->name) &&
        (search->name[0] == '\0' || strcmp(name, search->name) < 0))
        (void)snprintf(search->name, sizeof(search->name), "%s", name);
}

/* ePAPR 1.1 section 3.7.2: tlb-size, tlb-sets and their d- and i- forms. Page sizes are not named; base pages are. */
static void read_device_tree(struct environment *environment)
{
    static const struct {
        const char *size, *sets;
        unsigned level;
        enum tlb_kind kind;
    } properties[] = {{"d-tlb-size", "d-tlb-sets", 1, TLB_DATA},
                      {"i-tlb-size", "i-tlb-sets", 1, TLB_INSTRUCTION},
                      {"tlb-size", "tlb-sets", 2, TLB_UNIFIED}};
    struct cpu_node_search search = {""};

    environment->device_tree_tlb_count = 0;
    if (!tree_list(environment->root, "/proc/device-tree/cpus", find_cpu_node, &search) || search.name[0] == '\0')
        return;
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
        uint32_t size = read_cell(environment->root, search.name, properties[i].size);
        uint32_t sets = read_cell(environment->root, search.name, properties[i].sets);
        struct tlb_structure *s = &environment->device_tree_tlbs[environment->device_tree_tlb_count];

        if (size == 0 || size > INT32_MAX || environment->base_page_bytes == 0)
            continue;
        memset(s, 0, sizeof(*s));
        s->level = properties[i].level;
        s->kind = properties[i].kind;
        s->page_bytes[0] = environment->base_page_bytes;
        s->page_count = 1;
        s->entries = size;
        /* A tree of POWER9 says 4 sets for 1024 entries, which would be 256 ways: what no TLB has stays unknown. */
        s->ways = sets == 1                                                              ? TLB_WAYS_FULL
                  : sets > 1 && size % sets == 0 && size / sets <= DEVICE_TREE_MOST_WAYS ? (int)(size / sets)
                                                                                         : TLB_WAYS_UNKNOWN;
        s->note = "the device tree does not name the page sizes";
        (void)snprintf(s->origin, sizeof(s->origin), "%s", properties[i].size);
        environment->device_tree_tlb_count++;
    }
}

static int64_t read_midr(const char *root)
{
    char text[64];
    uint64_t midr = 0;

    if (!tree_read_line(root, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", text, sizeof(text)) ||
        !parse_u64(text, &midr) || midr == 0 || midr > UINT32_MAX)
        return UNKNOWN; /* no implementer has the number 0 */
    return (int64_t)midr;
}

void environment_read_processor(struct environment *environment)
{
    struct processor *processor = &environment->processor;
    struct cpu_list online;
    char text[1024];

    environment_identify(environment);
    processor->midr = read_midr(environment->root);
    /* The kernel asks every core before it prints this file: on a large machine that alone takes the time of all else,
     * so it is read only when CPUID and sysfs did not tell who the processor is. */
    if (processor->architecture[0] == '\0' || (processor->family == UNKNOWN && processor->midr == UNKNOWN)) {
        char *cpuinfo = malloc(CPUINFO_BYTES);

        if (cpuinfo != NULL && tree_read(environment->root, "/proc/cpuinfo", cpuinfo, CPUINFO_BYTES) >= 0)
            cpuinfo_parse(cpuinfo, processor, &environment->hypervisor);
        free(cpuinfo);
    }
    if (processor->midr != UNKNOWN) {
        copy(processor->architecture, sizeof(processor->architecture), "aarch64");
        copy(processor->vendor, sizeof(processor->vendor), arm_implementer(processor->midr));
    }
    if (tree_read_line(environment->root, "/sys/devices/system/cpu/online", text, sizeof(text)) &&
        parse_cpu_list(text, &online) && online.count > 0)
        processor->cpus_online = online.count;
    read_hypervisor(environment);
    read_device_tree(environment);
    find_catalogue(processor);
}
