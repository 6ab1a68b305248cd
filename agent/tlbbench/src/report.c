/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "catalogue.h"
#include "tlb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_MOST_PROCESSES = 15, WAYS_TEXT_BYTES = 32 };

static const uint64_t SIZE_4M = UINT64_C(4) << 20;

char *size_text(int64_t bytes, char text[SIZE_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    if (bytes < 0) {
        (void)snprintf(text, SIZE_TEXT_BYTES, "?");
        return text;
    }
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(text, SIZE_TEXT_BYTES, unit == 0 || value == (double)(int64_t)value ? "%.0f %s" : "%.1f %s", value,
                   units[unit]);
    return text;
}

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : "?";
}

void report_processor(FILE *out, const struct environment *e)
{
    const struct processor *p = &e->processor;

    (void)fprintf(out, "processor     %s", known(p->brand[0] != '\0' ? p->brand : p->vendor));
    if (p->family != UNKNOWN)
        (void)fprintf(out, " (%s family %d model %d stepping %d)", known(p->vendor), p->family, p->model, p->stepping);
    else if (p->midr != UNKNOWN)
        (void)fprintf(out, " (MIDR 0x%08" PRIx64 ")", (uint64_t)p->midr);
    else if (p->pvr != UNKNOWN)
        (void)fprintf(out, " (PVR 0x%08" PRIx64 ")", (uint64_t)p->pvr);
    (void)fprintf(out, ", %s", known(p->architecture));
    if (p->cpus_online != UNKNOWN)
        (void)fprintf(out, ", %d CPU%s online", p->cpus_online, p->cpus_online == 1 ? "" : "s");
    (void)fputc('\n', out);
    if (p->catalogue != NULL)
        (void)fprintf(out, "catalogue     %s (%s%s%s)\n", p->catalogue->id, p->catalogue->uarch,
                      p->catalogue->products != NULL ? "; " : "",
                      p->catalogue->products != NULL ? p->catalogue->products : "");
    else
        (void)fputs("catalogue     this processor is not in it\n", out);
    (void)fputs("hypervisor    ", out);
    switch (e->hypervisor.state) {
    case HYPERVISOR_PRESENT:
        (void)fprintf(out, "%s\n", e->hypervisor.name[0] != '\0' ? e->hypervisor.name : "yes, unnamed");
        break;
    case HYPERVISOR_ABSENT:
        (void)fputs("none\n", out);
        break;
    case HYPERVISOR_UNKNOWN:
        (void)fputs("unknown\n", out);
        break;
    }
}

static void count_cell(FILE *out, int64_t count)
{
    if (count == UNKNOWN)
        (void)fprintf(out, " %10s", "?");
    else
        (void)fprintf(out, " %10" PRId64, count);
}

static void report_pools(FILE *out, const struct environment *e)
{
    char page[PAGE_TEXT_BYTES];

    (void)fputs("huge pages   ", out);
    if (e->pool_count == 0) {
        (void)fputs(" none: this kernel has no hugetlb\n", out);
        return;
    }
    for (size_t i = 0; i < e->pool_count; i++)
        (void)fprintf(out, " %s%s", page_text(e->pools[i].page_bytes, page),
                      e->pools[i].page_bytes == e->default_huge_bytes ? " (default)" : "");
    (void)fputs("\npools         size  node         nr       free   reserved    surplus overcommit\n", out);
    for (size_t i = 0; i < e->pool_count; i++) {
        const struct pool *pool = &e->pools[i];

        (void)fprintf(out, "              %-5s %-4s", page_text(pool->page_bytes, page), "all");
        count_cell(out, pool->nr);
        count_cell(out, pool->free);
        count_cell(out, pool->reserved);
        count_cell(out, pool->surplus);
        count_cell(out, pool->overcommit);
        (void)fputc('\n', out);
        for (size_t n = 0; e->node_count > 1 && n < pool->numa_count; n++) {
            (void)fprintf(out, "              %-5s %-4d", page, pool->numa[n].node);
            count_cell(out, pool->numa[n].nr);
            count_cell(out, pool->numa[n].free);
            (void)fprintf(out, " %10s", "");
            count_cell(out, pool->numa[n].surplus);
            (void)fputc('\n', out);
        }
    }
}

static void report_memory(FILE *out, const struct environment *e)
{
    const struct memory_state *m = &e->memory;
    char a[SIZE_TEXT_BYTES];
    char b[SIZE_TEXT_BYTES];
    char c[SIZE_TEXT_BYTES];

    (void)fprintf(out, "memory        %s total, %s available, %s page tables\n", size_text(m->mem_total_bytes, a),
                  size_text(m->mem_available_bytes, b), size_text(m->page_tables_bytes, c));
    (void)fprintf(out, "              %s transparent huge, %s in pools\n", size_text(m->anon_huge_pages_bytes, a),
                  size_text(m->hugetlb_bytes, b));
    if (m->direct_map_4k_bytes != UNKNOWN)
        (void)fprintf(out, "direct map    4K %s, 2M %s, 1G %s\n", size_text(m->direct_map_4k_bytes, a),
                      size_text(m->direct_map_2m_bytes, b), size_text(m->direct_map_1g_bytes, c));
    for (size_t i = 0; i < e->node_count; i++)
        (void)fprintf(out, "NUMA node %-3d CPUs %s, %s total, %s free\n", e->nodes[i].id, known(e->nodes[i].cpus),
                      size_text(e->nodes[i].mem_total_bytes, a), size_text(e->nodes[i].mem_free_bytes, b));
    if (e->numa_truncated)
        (void)fprintf(out, "              more nodes than %d: the rest is left out\n", (int)ENV_MAX_NODES);
    if (e->cgroup.version == UNKNOWN)
        (void)fputs("cgroup        unknown\n", out);
    else if (e->cgroup.memory_limit_bytes == UNKNOWN)
        (void)fprintf(out, "cgroup        version %d, no memory limit\n", e->cgroup.version);
    else
        (void)fprintf(out, "cgroup        version %d, memory limit %s, used %s\n", e->cgroup.version,
                      size_text(e->cgroup.memory_limit_bytes, a), size_text(e->cgroup.memory_current_bytes, b));
}

void report_environment(FILE *out, const struct environment *e)
{
    char page[PAGE_TEXT_BYTES];

    report_processor(out, e);
    (void)fprintf(out, "kernel        %s\n", known(e->kernel_release));
    (void)fprintf(out, "command line  %s\n", known(e->kernel_command_line));
    (void)fprintf(out, "base pages    %s\n", e->base_page_bytes != 0 ? page_text(e->base_page_bytes, page) : "?");
    report_pools(out, e);
    if (e->thp.enabled[0] == '\0')
        (void)fputs("THP           not in this kernel\n", out);
    else
        (void)fprintf(out, "THP           %s, defrag %s, shmem %s, page %s\n", e->thp.enabled, known(e->thp.defrag),
                      known(e->thp.shmem_enabled), e->thp_bytes != 0 ? page_text(e->thp_bytes, page) : "?");
    report_memory(out, e);
}

static bool is_disputed(const struct tlb_level *level, const struct disagreement *disagreements, size_t count)
{
    if (level->kind == TLB_INSTRUCTION || level->kind == TLB_STORE)
        return false;
    for (size_t i = 0; i < count; i++)
        if (disagreements[i].level == level->level && disagreements[i].page_bytes == level->page_bytes)
            return true;
    return false;
}

static void ways_text(const struct tlb_level *level, char text[WAYS_TEXT_BYTES])
{
    if (level->ways == TLB_WAYS_FULL)
        (void)snprintf(text, WAYS_TEXT_BYTES, "full");
    else if (level->ways == TLB_WAYS_UNKNOWN)
        (void)snprintf(text, WAYS_TEXT_BYTES, "?");
    else if (level->ways_max > level->ways)
        (void)snprintf(text, WAYS_TEXT_BYTES, "%d-%d", level->ways, level->ways_max);
    else
        (void)snprintf(text, WAYS_TEXT_BYTES, "%d", level->ways);
}

static void entries_text(const struct tlb_level *level, char text[40])
{
    if (level->entries == TLB_ENTRIES_UNKNOWN)
        (void)snprintf(text, 40, "?");
    else if (level->entries_min != level->entries_max)
        (void)snprintf(text, 40, "%u (%u-%u)", level->entries, level->entries_min, level->entries_max);
    else
        (void)snprintf(text, 40, "%u", level->entries);
}

/* Data before instructions, then page size, then the sources of the same thing beside each other. */
static int by_level(const void *a, const void *b)
{
    const struct tlb_level *x = *(const struct tlb_level *const *)a;
    const struct tlb_level *y = *(const struct tlb_level *const *)b;
    int x_instruction = x->kind == TLB_INSTRUCTION;
    int y_instruction = y->kind == TLB_INSTRUCTION;

    if (x_instruction != y_instruction)
        return x_instruction - y_instruction;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->page_bytes != y->page_bytes)
        return x->page_bytes < y->page_bytes ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

static void report_level(FILE *out, const struct tlb_level *level, bool disputed)
{
    char page[PAGE_TEXT_BYTES];
    char ways[WAYS_TEXT_BYTES];
    char entries[40];

    ways_text(level, ways);
    entries_text(level, entries);
    (void)fprintf(out, "%c L%-4u %-7s %-5s %-16s %-5s %-11s %s", disputed ? '!' : ' ', level->level,
                  tlb_kind_name(level->kind), page_text(level->page_bytes, page), entries, ways,
                  fact_source_name(level->source), confidence_name(level->confidence));
    if (level->note[0] != '\0')
        (void)fprintf(out, "%*s%s", (int)(12 - strlen(confidence_name(level->confidence))), "", level->note);
    (void)fputc('\n', out);
}

/* The document lists every page size of the processor; the table those that this kernel can map. */
static bool kernel_has(const struct environment *e, uint64_t page_bytes)
{
    if (e->base_page_bytes == 0 || e->pool_count == 0)
        return page_bytes != SIZE_4M; /* unknown: all but 4M, which no 64-bit kernel maps */
    return page_bytes == e->base_page_bytes || page_bytes == e->thp_bytes || environment_pool(e, page_bytes) != NULL;
}

void report_levels(FILE *out, const struct environment *environment, const struct tlb_level_list *levels,
                   const struct disagreement *disagreements, size_t disagreement_count)
{
    const struct tlb_level **sorted = calloc(levels->count + 1, sizeof(struct tlb_level *));

    if (sorted == NULL) {
        (void)fputs("\nTLBs: no memory to sort them\n", out);
        return;
    }
    for (size_t i = 0; i < levels->count; i++)
        sorted[i] = &levels->items[i];
    qsort(sorted, levels->count, sizeof sorted[0], by_level);
    (void)fputs("\nTLBs\n  level kind    pages entries          ways  source      confidence  note\n", out);
    for (size_t i = 0; i < levels->count; i++)
        if (kernel_has(environment, sorted[i]->page_bytes))
            report_level(out, sorted[i], is_disputed(sorted[i], disagreements, disagreement_count));
    free(sorted);
    if (levels->count == 0)
        (void)fputs("  nothing is known\n", out);
    for (size_t i = 0; i < disagreement_count; i++)
        (void)fprintf(out, "%s  ! %s\n", i == 0 ? "\ndisagreements\n" : "", disagreements[i].text);
}

static int by_rss(const void *a, const void *b)
{
    const struct process_pages *x = *(const struct process_pages *const *)a;
    const struct process_pages *y = *(const struct process_pages *const *)b;

    return (x->rss_bytes < y->rss_bytes) - (x->rss_bytes > y->rss_bytes);
}

static void report_process(FILE *out, const struct process_pages *p)
{
    const int64_t values[] = {p->rss_bytes, p->anon_huge_pages_bytes, p->hugetlb_bytes, p->page_tables_bytes};
    char text[SIZE_TEXT_BYTES];

    (void)fprintf(out, "  %8d %-16.16s", p->pid, known(p->name));
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        (void)fprintf(out, " %12s", size_text(values[i], text));
    (void)fprintf(out, "%s\n", p->denied ? "  (only partly readable)" : "");
}

void report_processes(FILE *out, const struct process_list *list)
{
    const struct process_pages **sorted = calloc(list->count + 1, sizeof(struct process_pages *));

    if (sorted == NULL) {
        (void)fputs("\nprocesses: no memory to sort them\n", out);
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = &list->items[i];
    qsort(sorted, list->count, sizeof sorted[0], by_rss);
    (void)fprintf(out, "\nprocesses (%zu, the largest first)\n  %8s %-16s %12s %12s %12s %12s\n", list->count, "pid",
                  "name", "resident", "THP", "hugetlb", "page tables");
    for (size_t i = 0; i < list->count && i < REPORT_MOST_PROCESSES; i++)
        report_process(out, sorted[i]);
    if (list->count > REPORT_MOST_PROCESSES)
        (void)fprintf(out, "  and %zu more; --json lists all\n", list->count - REPORT_MOST_PROCESSES);
    free(sorted);
}
