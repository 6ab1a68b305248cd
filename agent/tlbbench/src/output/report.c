/* SPDX-License-Identifier: Apache-2.0 */
#include "output/report.h"

#include "output/report_text.h"

enum { REPORT_MOST_PROCESSES = 15 };

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : "?";
}

static void identity_text(const struct processor *p, char text[ENV_TEXT_BYTES])
{
    text[0] = '\0';
    if (p->family != UNKNOWN)
        (void)snprintf(text, ENV_TEXT_BYTES, " (%s family %d model %d stepping %d)", known(p->vendor), p->family,
                       p->model, p->stepping);
    else if (p->midr != UNKNOWN)
        (void)snprintf(text, ENV_TEXT_BYTES, " (MIDR 0x%08" PRIx64 ")", (uint64_t)p->midr);
    else if (p->pvr != UNKNOWN)
        (void)snprintf(text, ENV_TEXT_BYTES, " (PVR 0x%08" PRIx64 ")", (uint64_t)p->pvr);
}

void report_processor(FILE *out, const struct environment *e)
{
    const struct processor *p = &e->processor;
    char identity[ENV_TEXT_BYTES];
    char cpus[48] = "";

    identity_text(p, identity);
    if (p->cpus_online != UNKNOWN)
        (void)snprintf(cpus, sizeof(cpus), ", %d CPU%s online", p->cpus_online, p->cpus_online == 1 ? "" : "s");
    REPORT_LINE(out, "processor", "%s%s, %s%s", known(p->brand[0] != '\0' ? p->brand : p->vendor), identity,
                known(p->architecture), cpus);
    if (p->catalogue != NULL)
        REPORT_LINE(out, "catalogue", "%s (%s%s%s)", p->catalogue->id, p->catalogue->uarch,
                    p->catalogue->products != NULL ? "; " : "",
                    p->catalogue->products != NULL ? p->catalogue->products : "");
    else
        REPORT_LINE(out, "catalogue", "this processor is not in it");
    REPORT_LINE(out, "hypervisor", "%s",
                e->hypervisor.state == HYPERVISOR_UNKNOWN  ? "unknown"
                : e->hypervisor.state == HYPERVISOR_ABSENT ? "none"
                : e->hypervisor.name[0] == '\0'            ? "yes, unnamed"
                                                           : e->hypervisor.name);
}

static void count_cell(FILE *out, int columns, int64_t count)
{
    if (count == UNKNOWN)
        (void)fprintf(out, " %*s", columns, "?");
    else
        (void)fprintf(out, " %*" PRId64, columns, count);
}

static void report_pool(FILE *out, const struct pool *pool, bool by_node)
{
    char page[PAGE_TEXT_BYTES];

    (void)fprintf(out, "  %-5s %-4s", page_text(pool->page_bytes, page), "all");
    count_cell(out, 8, pool->nr);
    count_cell(out, 8, pool->free);
    count_cell(out, 8, pool->reserved);
    count_cell(out, 8, pool->surplus);
    count_cell(out, 10, pool->overcommit);
    (void)fputc('\n', out);
    for (size_t n = 0; by_node && n < pool->numa_count; n++) {
        (void)fprintf(out, "  %-5s %-4d", page, pool->numa[n].node);
        count_cell(out, 8, pool->numa[n].nr);
        count_cell(out, 8, pool->numa[n].free);
        (void)fprintf(out, " %8s", "");
        count_cell(out, 8, pool->numa[n].surplus);
        (void)fputc('\n', out);
    }
}

static void report_pools(FILE *out, const struct environment *e)
{
    if (e->pool_count == 0)
        return;
    (void)fputs("pools (pages)\n  size  node    total     free reserved  surplus overcommit\n", out);
    for (size_t i = 0; i < e->pool_count; i++)
        report_pool(out, &e->pools[i], e->node_count > 1);
}

/* Every kernel lists its processors in /sys: without them, what is absent there says nothing of the kernel. */
static bool has_sys(const struct environment *e)
{
    return e->processor.cpus_online != UNKNOWN;
}

static void report_page_sizes(FILE *out, const struct environment *e)
{
    char page[PAGE_TEXT_BYTES];
    char text[ENV_TEXT_BYTES * 4] = "";

    REPORT_LINE(out, "base pages", "%s", e->base_page_bytes != 0 ? page_text(e->base_page_bytes, page) : "?");
    for (size_t i = 0; i < e->pool_count; i++)
        text_append(text, sizeof(text), "%s%s%s", i > 0 ? ", " : "", page_text(e->pools[i].page_bytes, page),
                    e->pools[i].page_bytes == e->default_huge_bytes ? " (default)" : "");
    REPORT_LINE(out, "huge pages", "%s",
                e->pool_count > 0 ? text
                : has_sys(e)      ? "none: this kernel has no hugetlb"
                                  : "unknown: /sys cannot be read");
    if (e->thp.enabled[0] == '\0')
        REPORT_LINE(out, "THP", "%s", has_sys(e) ? "not in this kernel" : "unknown: /sys cannot be read");
    else
        REPORT_LINE(out, "THP", "%s, defrag %s, shmem %s, page %s", e->thp.enabled, known(e->thp.defrag),
                    known(e->thp.shmem_enabled), e->thp_bytes != 0 ? page_text(e->thp_bytes, page) : "?");
    text[0] = '\0';
    for (size_t i = 0; i < e->multi_size_count; i++)
        text_append(text, sizeof(text), "%s%s %s", i > 0 ? ", " : "", page_text(e->multi_size[i].page_bytes, page),
                    e->multi_size[i].enabled);
    if (e->multi_size_count > 0 || (e->thp_bytes > 0 && e->root[0] == '\0'))
        REPORT_LINE(out, "", "smaller: %s", e->multi_size_count > 0 ? text : "none: kernels before 6.8 have one size");
}

static void report_memory(FILE *out, const struct environment *e)
{
    const struct memory_state *m = &e->memory;
    char a[SIZE_TEXT_BYTES];
    char b[SIZE_TEXT_BYTES];
    char c[SIZE_TEXT_BYTES];

    REPORT_LINE(out, "memory", "%s total, %s available", size_text(m->mem_total_bytes, a),
                size_text(m->mem_available_bytes, b));
    REPORT_LINE(out, "", "%s page tables, %s transparent huge, %s in pools", size_text(m->page_tables_bytes, a),
                size_text(m->anon_huge_pages_bytes, b), size_text(m->hugetlb_bytes, c));
    if (m->direct_map_4k_bytes != UNKNOWN)
        REPORT_LINE(out, "direct map", "4K %s, 2M %s, 1G %s", size_text(m->direct_map_4k_bytes, a),
                    size_text(m->direct_map_2m_bytes, b), size_text(m->direct_map_1g_bytes, c));
    for (size_t i = 0; i < e->node_count; i++) {
        char label[REPORT_LABEL_COLUMNS + 8];

        (void)snprintf(label, sizeof(label), "NUMA node %d", e->nodes[i].id);
        REPORT_LINE(out, label, "CPUs %s, %s total, %s free", e->nodes[i].cpus[0] != '\0' ? e->nodes[i].cpus : "none",
                    size_text(e->nodes[i].mem_total_bytes, a), size_text(e->nodes[i].mem_free_bytes, b));
    }
    if (e->numa_truncated)
        REPORT_LINE(out, "", "more nodes than %d: the rest is left out", (int)ENV_MAX_NODES);
    if (e->cgroup.version == UNKNOWN)
        REPORT_LINE(out, "cgroup", "unknown");
    else if (e->cgroup.memory_limit_bytes == UNKNOWN)
        REPORT_LINE(out, "cgroup", "version %d, no memory limit", e->cgroup.version);
    else
        REPORT_LINE(out, "cgroup", "version %d, memory limit %s, used %s", e->cgroup.version,
                    size_text(e->cgroup.memory_limit_bytes, a), size_text(e->cgroup.memory_current_bytes, b));
}

/* Kernel parameters that change what is measured here; capture.sh keeps the values of the same. */
static bool concerns_memory(const char *word, size_t length)
{
    static const char names[] =
        "hugepagesz hugepages default_hugepagesz hugetlb_cma hugetlb_free_vmemmap transparent_hugepage "
        "transparent_hugepage_shmem thp_anon thp_shmem numa numa_balancing mem movablecore kernelcore isolcpus "
        "nohz_full maxcpus nr_cpus nosmt mitigations pti nopti kpti gbpages nogbpages nokaslr init_on_alloc "
        "init_on_free processor.max_cstate intel_idle.max_cstate intel_pstate amd_pstate tsc clocksource iommu "
        "intel_iommu amd_iommu";
    const char *equals = memchr(word, '=', length);

    return text_has_word(names, sizeof(names) - 1, " ", word, equals != NULL ? (size_t)(equals - word) : length);
}

/* The parameters that matter, and how many do not; "--" ends the kernel's and begins those of init. */
static void report_command_line(FILE *out, const struct environment *e)
{
    char text[ENV_COMMAND_LINE_BYTES] = "";
    size_t others = 0;
    bool of_kernel = true;

    for (const char *word = e->kernel_command_line; *word != '\0';) {
        size_t length = strcspn(word, " \t");

        of_kernel = of_kernel && !(length == 2 && strncmp(word, "--", 2) == 0);
        if (of_kernel && concerns_memory(word, length))
            text_append(text, sizeof(text), "%s%.*s", text[0] != '\0' ? " " : "", (int)length, word);
        else
            others++;
        word += length;
        word += strspn(word, " \t");
    }
    if (e->kernel_command_line[0] == '\0')
        REPORT_LINE(out, "command line", "?");
    else if (others > 0 && text[0] != '\0')
        REPORT_LINE(out, "command line", "%s and %zu other word%s (--json lists all)", text, others,
                    others == 1 ? "" : "s");
    else if (others > 0)
        REPORT_LINE(out, "command line", "%zu word%s, none about memory (--json lists all)", others,
                    others == 1 ? "" : "s");
    else
        REPORT_LINE(out, "command line", "%s", text);
}

void report_environment(FILE *out, const struct environment *e)
{
    report_processor(out, e);
    REPORT_LINE(out, "kernel", "%s", known(e->kernel_release));
    report_command_line(out, e);
    report_page_sizes(out, e);
    report_memory(out, e);
    report_pools(out, e);
}

static int by_rss(const void *a, const void *b)
{
    const struct process_pages *x = *(const struct process_pages *const *)a;
    const struct process_pages *y = *(const struct process_pages *const *)b;

    return (x->rss_bytes < y->rss_bytes) - (x->rss_bytes > y->rss_bytes);
}

/* The kernel's names have 15; a narrow terminal has no place for all. */
static int name_columns(FILE *out)
{
    return report_width(out) >= 68 ? 15 : 8;
}

static void report_process(FILE *out, const struct process_pages *p)
{
    const int64_t values[] = {p->rss_bytes, p->anon_huge_pages_bytes, p->hugetlb_bytes, p->page_tables_bytes};
    char text[SIZE_TEXT_BYTES];
    char name[sizeof(p->name)];

    (void)snprintf(name, sizeof(name), "%s", known(p->name));
    text_ascii(name);
    (void)fprintf(out, "  %7d %-*.*s", p->pid, name_columns(out), name_columns(out), name);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        (void)fprintf(out, " %9s", size_text(values[i], text));
    (void)fprintf(out, "%s\n", p->denied ? " *" : "");
}

void report_processes(FILE *out, const struct process_list *list)
{
    const struct process_pages **sorted = calloc(list->count + 1, sizeof(struct process_pages *));
    bool any_denied = false;

    if (sorted == NULL) {
        (void)fputs("\nprocesses: no memory to sort them\n", out);
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = &list->items[i];
    qsort(sorted, list->count, sizeof(sorted[0]), by_rss);
    if (list->count == 0)
        (void)fputs("\nprocesses: none could be read\n", out);
    else
        (void)fprintf(out, "\nprocesses (%zu, the largest first)\n  %7s %-*s %9s %9s %9s %9s\n", list->count, "pid",
                      name_columns(out), "name", "resident", "THP", "hugetlb", "tables");
    for (size_t i = 0; i < list->count && i < REPORT_MOST_PROCESSES; i++) {
        report_process(out, sorted[i]);
        any_denied = any_denied || sorted[i]->denied;
    }
    if (list->count > REPORT_MOST_PROCESSES)
        (void)fprintf(out, "  and %zu more; --json lists all\n", list->count - REPORT_MOST_PROCESSES);
    if (any_denied)
        (void)fputs("  * only partly readable: not permitted\n", out);
    free(sorted);
}
