/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cpuid_tlb.h"
#include "output/to_json.h"

void verdict_to_json(const struct verdict *verdict, struct json *j)
{
    json_string(j, "status", STATUS_TEXTS[verdict->status].name);
    json_text_or_null(j, "reason", verdict->reason);
}

static void sections_to_json(const struct section_result *sections, size_t count, struct json *j)
{
    json_begin_array(j, "sections");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(j, NULL);
        json_string(j, "name", sections[i].name);
        verdict_to_json(&sections[i].verdict, j);
        json_double(j, "duration_seconds", sections[i].duration_seconds);
        json_end_object(j);
    }
    json_end_array(j);
}

/* What CPUID says, structure by structure, before anything is summed or compared. */
static void cpuid_to_json(const struct environment *environment, struct json *j)
{
    struct cpuid_identity identity;
    struct cpuid_tlb tlb;

    cpuid_identify(&environment->cpuid, &identity);
    cpuid_tlb_decode(&environment->cpuid, &identity, &tlb);
    json_begin_object(j, "cpuid_tlb");
    verdict_to_json(&tlb.verdict, j);
    json_begin_array(j, "leaf2_descriptors");
    for (size_t i = 0; i < tlb.descriptor_count; i++)
        json_u64(j, NULL, tlb.descriptors[i]);
    json_end_array(j);
    json_bool(j, "l2_size_x32", tlb.l2_size_x32);
    json_bool(j, "l2_size_doubtful", tlb.l2_size_doubtful);
    tlb_structures_to_json(tlb.structures, tlb.structure_count, j);
    json_end_object(j);
}

struct document document_start(const char *command, uint64_t seed, const struct environment *environment)
{
    struct document document = {
        .command = command, .seed = seed, .environment = environment, .start_ns = clock_now_ns()};

    (void)clock_gettime(CLOCK_REALTIME, &document.started_at);
    return document;
}

void document_begin(const struct document *d, const struct section_result *sections, size_t count, FILE *out,
                    struct json *j)
{
    char started[32] = "";
    struct tm utc;

    if (gmtime_r(&d->started_at.tv_sec, &utc) != NULL)
        (void)strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_init(j, out);
    json_begin_object(j, NULL);
    json_u64(j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    json_begin_object(j, "tool");
    json_string(j, "name", "tlbbench");
    json_string(j, "version", TLBBENCH_VERSION);
    json_end_object(j);
    json_string(j, "command", d->command);
    json_string(j, "profile", d->profile);
    json_u64(j, "seed", d->seed);
    json_string(j, "started_at", started);
    json_double(j, "duration_seconds", (double)(clock_now_ns() - d->start_ns) / 1e9);
    json_i64(j, "exit_status", d->exit_status);
    sections_to_json(sections, count, j);
    json_begin_object(j, "environment");
    environment_to_json(d->environment, j);
    cpuid_to_json(d->environment, j);
    if (d->processes != NULL)
        processes_to_json(d->processes, j);
    json_end_object(j);
}

int document_end(struct json *j)
{
    json_end_object(j);
    return json_finish(j);
}

/* --- environment -------------------------------------------------------------------------------------------------- */

static void processor_to_json(const struct processor *p, struct json *j)
{
    json_begin_object(j, "processor");
    json_text_or_null(j, "architecture", p->architecture);
    json_text_or_null(j, "vendor", p->vendor);
    json_i64_or_null(j, "family", p->family);
    json_i64_or_null(j, "model", p->model);
    json_i64_or_null(j, "stepping", p->stepping);
    json_text_or_null(j, "brand", p->brand);
    json_i64_or_null(j, "midr", p->midr);
    json_i64_or_null(j, "pvr", p->pvr);
    json_i64_or_null(j, "cpus_online", p->cpus_online);
    json_string(j, "catalogue_id", p->catalogue != NULL ? p->catalogue->id : NULL);
    json_string(j, "microarchitecture", p->catalogue != NULL ? p->catalogue->uarch : NULL);
    json_end_object(j);
}

static void hypervisor_to_json(const struct hypervisor *h, struct json *j)
{
    json_begin_object(j, "hypervisor");
    if (h->state == HYPERVISOR_UNKNOWN)
        json_null(j, "present");
    else
        json_bool(j, "present", h->state == HYPERVISOR_PRESENT);
    json_text_or_null(j, "name", h->name);
    json_end_object(j);
}

static void pool_to_json(const struct pool *pool, struct json *j)
{
    json_begin_object(j, NULL);
    json_u64(j, "page_bytes", pool->page_bytes);
    json_i64_or_null(j, "nr", pool->nr);
    json_i64_or_null(j, "free", pool->free);
    json_i64_or_null(j, "reserved", pool->reserved);
    json_i64_or_null(j, "surplus", pool->surplus);
    json_i64_or_null(j, "overcommit", pool->overcommit);
    json_i64_or_null(j, "cgroup_left_bytes", pool->cgroup_left_bytes);
    json_begin_array(j, "numa");
    for (size_t i = 0; i < pool->numa_count; i++) {
        json_begin_object(j, NULL);
        json_i64(j, "node", pool->numa[i].node);
        json_i64_or_null(j, "nr", pool->numa[i].nr);
        json_i64_or_null(j, "free", pool->numa[i].free);
        json_i64_or_null(j, "surplus", pool->numa[i].surplus);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void pools_to_json(const struct environment *e, struct json *j)
{
    json_begin_object(j, "huge_pages");
    json_u64_or_null(j, "default_bytes", e->default_huge_bytes, 0);
    json_begin_array(j, "sizes");
    for (size_t i = 0; i < e->pool_count; i++)
        pool_to_json(&e->pools[i], j);
    json_end_array(j);
    json_end_object(j);
}

static void nodes_to_json(const struct environment *e, struct json *j)
{
    json_begin_array(j, "numa_nodes");
    for (size_t i = 0; i < e->node_count; i++) {
        json_begin_object(j, NULL);
        json_i64(j, "id", e->nodes[i].id);
        json_string(j, "cpus", e->nodes[i].cpus);
        json_i64_or_null(j, "mem_total_bytes", e->nodes[i].mem_total_bytes);
        json_i64_or_null(j, "mem_free_bytes", e->nodes[i].mem_free_bytes);
        json_i64_or_null(j, "mem_reclaimable_bytes", e->nodes[i].mem_reclaimable_bytes);
        json_end_object(j);
    }
    json_end_array(j);
    json_bool(j, "numa_truncated", e->numa_truncated);
}

static void memory_to_json(const struct memory_state *m, struct json *j)
{
    json_begin_object(j, "memory");
    json_i64_or_null(j, "mem_total_bytes", m->mem_total_bytes);
    json_i64_or_null(j, "mem_free_bytes", m->mem_free_bytes);
    json_i64_or_null(j, "mem_available_bytes", m->mem_available_bytes);
    json_i64_or_null(j, "page_tables_bytes", m->page_tables_bytes);
    json_i64_or_null(j, "anon_huge_pages_bytes", m->anon_huge_pages_bytes);
    json_i64_or_null(j, "shmem_huge_pages_bytes", m->shmem_huge_pages_bytes);
    json_i64_or_null(j, "file_huge_pages_bytes", m->file_huge_pages_bytes);
    json_i64_or_null(j, "hugetlb_bytes", m->hugetlb_bytes);
    json_i64_or_null(j, "direct_map_4k_bytes", m->direct_map_4k_bytes);
    json_i64_or_null(j, "direct_map_2m_bytes", m->direct_map_2m_bytes);
    json_i64_or_null(j, "direct_map_1g_bytes", m->direct_map_1g_bytes);
    json_end_object(j);
}

/* A tree may have been captured before these files were: what it lacks says nothing of the kernel. */
static void multi_size_to_json(const struct environment *e, struct json *j)
{
    if (e->multi_size_count == 0 && (e->root[0] != '\0' || e->thp_bytes == 0)) {
        json_null(j, "multi_size");
        return;
    }
    json_begin_array(j, "multi_size");
    for (size_t i = 0; i < e->multi_size_count; i++) {
        json_begin_object(j, NULL);
        json_u64(j, "page_bytes", e->multi_size[i].page_bytes);
        json_string(j, "enabled", e->multi_size[i].enabled);
        json_end_object(j);
    }
    json_end_array(j);
}

void environment_to_json(const struct environment *e, struct json *j)
{
    processor_to_json(&e->processor, j);
    hypervisor_to_json(&e->hypervisor, j);
    json_begin_object(j, "kernel");
    json_text_or_null(j, "release", e->kernel_release);
    json_text_or_null(j, "command_line", e->kernel_command_line);
    json_end_object(j);
    json_u64_or_null(j, "base_page_bytes", e->base_page_bytes, 0);
    pools_to_json(e, j);
    json_begin_object(j, "thp");
    json_text_or_null(j, "enabled", e->thp.enabled);
    json_text_or_null(j, "defrag", e->thp.defrag);
    json_text_or_null(j, "shmem_enabled", e->thp.shmem_enabled);
    json_u64_or_null(j, "page_bytes", e->thp_bytes, 0);
    multi_size_to_json(e, j);
    json_end_object(j);
    nodes_to_json(e, j);
    memory_to_json(&e->memory, j);
    json_begin_object(j, "conditions");
    json_text_or_null(j, "governor", e->conditions.governor);
    json_text_or_null(j, "clock_source", e->conditions.clock_source);
    json_i64_or_null(j, "boost", e->conditions.boost);
    json_i64_or_null(j, "numa_balancing", e->conditions.numa_balancing);
    json_i64_or_null(j, "page_table_isolation", e->conditions.page_table_isolation);
    json_i64_or_null(j, "page_table_levels", e->conditions.page_table_levels);
    json_i64_or_null(j, "smt_active", e->conditions.smt_active);
    json_u64_or_null(j, "second_level_cache_bytes", e->conditions.second_level_cache_bytes, 0);
    json_u64_or_null(j, "last_level_cache_bytes", e->conditions.last_level_cache_bytes, 0);
    json_end_object(j);
    json_begin_object(j, "cgroup");
    json_i64_or_null(j, "version", e->cgroup.version);
    json_i64_or_null(j, "memory_limit_bytes", e->cgroup.memory_limit_bytes);
    json_i64_or_null(j, "memory_current_bytes", e->cgroup.memory_current_bytes);
    json_text_or_null(j, "memory_limit_name", e->cgroup.memory_limit_name);
    json_double(j, "cpu_quota", e->cgroup.cpu_quota);
    json_end_object(j);
}

void processes_to_json(const struct process_list *list, struct json *j)
{
    json_begin_array(j, "processes");
    for (size_t i = 0; i < list->count; i++) {
        const struct process_pages *p = &list->items[i];

        json_begin_object(j, NULL);
        json_i64(j, "pid", p->pid);
        json_string(j, "name", p->name);
        json_i64_or_null(j, "rss_bytes", p->rss_bytes);
        json_i64_or_null(j, "pss_bytes", p->pss_bytes);
        json_i64_or_null(j, "anon_huge_pages_bytes", p->anon_huge_pages_bytes);
        json_i64_or_null(j, "shmem_pmd_mapped_bytes", p->shmem_pmd_mapped_bytes);
        json_i64_or_null(j, "file_pmd_mapped_bytes", p->file_pmd_mapped_bytes);
        json_i64_or_null(j, "hugetlb_bytes", p->hugetlb_bytes);
        json_i64_or_null(j, "page_tables_bytes", p->page_tables_bytes);
        json_string(j, "status", p->denied ? "not_permitted" : "ok");
        json_end_object(j);
    }
    json_end_array(j);
}

/* --- TLBs ------------------------------------------------------------------------------------------------------- */

static void ways_to_json(int ways, int ways_max, struct json *j)
{
    if (ways == TLB_WAYS_FULL)
        json_string(j, "ways", "full");
    else if (ways == TLB_WAYS_UNKNOWN)
        json_null(j, "ways");
    else
        json_i64(j, "ways", ways);
    if (ways > 0 && ways_max > ways)
        json_i64(j, "ways_max", ways_max);
}

static void level_to_json(const struct tlb_level *level, struct json *j)
{
    json_begin_object(j, NULL);
    json_u64(j, "level", level->level);
    json_string(j, "kind", TLB_KIND_NAMES[level->kind]);
    json_u64(j, "page_bytes", level->page_bytes);
    json_u64_or_null(j, "entries", level->entries, TLB_ENTRIES_UNKNOWN);
    json_u64_or_null(j, "entries_min", level->entries_min, TLB_ENTRIES_UNKNOWN);
    json_u64_or_null(j, "entries_max", level->entries_max, TLB_ENTRIES_UNKNOWN);
    ways_to_json(level->ways, level->ways_max, j);
    json_string(j, "source", FACT_SOURCE_NAMES[level->source]);
    json_string(j, "confidence", CONFIDENCE_NAMES[level->confidence]);
    json_text_or_null(j, "note", level->note);
    json_end_object(j);
}

/* Measured values stand first: a reader who takes the first match for a level and a page size gets what holds here. */
void tlb_levels_to_json(const struct tlb_level_list *levels, struct json *j)
{
    json_begin_array(j, "levels");
    for (int measured = 1; measured >= 0; measured--) {
        for (size_t i = 0; i < levels->count; i++)
            if ((levels->items[i].source == SOURCE_MEASURED) == (measured == 1))
                level_to_json(&levels->items[i], j);
    }
    json_end_array(j);
}

void tlb_structures_to_json(const struct tlb_structure *structures, size_t count, struct json *j)
{
    json_begin_array(j, "structures");
    for (size_t i = 0; i < count; i++) {
        const struct tlb_structure *s = &structures[i];

        json_begin_object(j, NULL);
        json_text_or_null(j, "origin", s->origin);
        json_u64(j, "level", s->level);
        json_string(j, "kind", TLB_KIND_NAMES[s->kind]);
        json_begin_array(j, "page_bytes");
        for (size_t p = 0; p < s->page_count; p++)
            json_u64(j, NULL, s->page_bytes[p]);
        json_end_array(j);
        json_u64_or_null(j, "entries", s->entries, TLB_ENTRIES_UNKNOWN);
        ways_to_json(s->ways, s->ways_max, j);
        json_string(j, "note", s->note);
        json_end_object(j);
    }
    json_end_array(j);
}

void tlb_disagreements_to_json(const struct disagreement_list *found, struct json *j)
{
    json_begin_array(j, "disagreements");
    for (size_t i = 0; i < found->count; i++) {
        const struct disagreement *d = &found->items[i];

        json_begin_object(j, NULL);
        json_u64(j, "level", d->level);
        json_u64(j, "page_bytes", d->page_bytes);
        json_string(j, "field", "entries");
        json_begin_object(j, "values");
        for (int source = 0; source < SOURCE_COUNT; source++)
            if (d->entries[source] != 0)
                json_u64(j, FACT_SOURCE_NAMES[source], d->entries[source]);
        json_end_object(j);
        json_string(j, "text", d->text);
        json_end_object(j);
    }
    json_end_array(j);
}
