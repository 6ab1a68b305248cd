/* SPDX-License-Identifier: Apache-2.0 */
#include "output/to_json.h"

void verdict_to_json(const struct verdict *verdict, struct json *j)
{
    json_string(j, "status", STATUS_TEXTS[verdict->status].name);
    json_text_or_null(j, "reason", verdict->reason);
}

static void processor_to_json(const struct processor *p, struct json *j)
{
    json_begin_object(j, "processor");
    JSON_MEMBERS(j, p, architecture, vendor, family, model, stepping, brand, midr, pvr, cpus_online);
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
    JSON_MEMBERS(j, h, name);
    json_end_object(j);
}

static void pools_to_json(const struct environment *e, struct json *j)
{
    json_begin_object(j, "huge_pages");
    json_u64_or_null(j, "default_bytes", e->default_huge_bytes, 0);
    for (size_t i = json_begin_list(j, "sizes"); json_next(j, i, e->pool_count); i++) {
        const struct pool *pool = &e->pools[i];

        JSON_MEMBERS(j, pool, page_bytes, nr, free, reserved, surplus, overcommit, cgroup_left_bytes);
        for (size_t k = json_begin_list(j, "numa"); json_next(j, k, pool->numa_count); k++)
            JSON_MEMBERS(j, &pool->numa[k], node, nr, free, surplus);
    }
    json_end_object(j);
}

static void nodes_to_json(const struct environment *e, struct json *j)
{
    for (size_t i = json_begin_list(j, "numa_nodes"); json_next(j, i, e->node_count); i++) {
        JSON_MEMBERS(j, &e->nodes[i], id);
        json_string(j, "cpus", e->nodes[i].cpus); /* "" of a node without CPUs */
        JSON_MEMBERS(j, &e->nodes[i], mem_total_bytes, mem_free_bytes, mem_reclaimable_bytes);
    }
    JSON_MEMBERS(j, e, numa_truncated);
}

/* A tree may have been captured before these files were: what it lacks says nothing of the kernel. */
static void multi_size_to_json(const struct environment *e, struct json *j)
{
    if (e->multi_size_count == 0 && (e->root[0] != '\0' || e->thp_bytes == 0)) {
        json_null(j, "multi_size");
        return;
    }
    for (size_t i = json_begin_list(j, "multi_size"); json_next(j, i, e->multi_size_count); i++)
        JSON_MEMBERS(j, &e->multi_size[i], page_bytes, enabled);
}

static void environment_to_json(const struct environment *e, struct json *j)
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
    JSON_MEMBERS(j, &e->thp, enabled, defrag, shmem_enabled);
    json_u64_or_null(j, "page_bytes", e->thp_bytes, 0);
    multi_size_to_json(e, j);
    json_end_object(j);
    nodes_to_json(e, j);
    json_begin_object(j, "memory");
    JSON_MEMBERS(j, &e->memory, mem_total_bytes, mem_free_bytes, mem_available_bytes, page_tables_bytes,
                 anon_huge_pages_bytes, shmem_huge_pages_bytes, file_huge_pages_bytes, hugetlb_bytes,
                 direct_map_4k_bytes, direct_map_2m_bytes, direct_map_1g_bytes);
    json_end_object(j);
    json_begin_object(j, "conditions");
    JSON_MEMBERS(j, &e->conditions, governor, clock_source, boost, numa_balancing, page_table_isolation,
                 page_table_levels, smt_active);
    json_u64_or_null(j, "second_level_cache_bytes", e->conditions.second_level_cache_bytes, 0);
    json_u64_or_null(j, "last_level_cache_bytes", e->conditions.last_level_cache_bytes, 0);
    json_end_object(j);
    json_begin_object(j, "cgroup");
    JSON_MEMBERS(j, &e->cgroup, version, memory_limit_bytes, memory_current_bytes, memory_limit_name, cpu_quota);
    json_end_object(j);
}

static void processes_to_json(const struct process_list *list, struct json *j)
{
    for (size_t i = json_begin_list(j, "processes"); json_next(j, i, list->count); i++) {
        const struct process_pages *p = &list->items[i];

        JSON_MEMBERS(j, p, pid);
        json_string(j, "name", p->name); /* a process may have none */
        JSON_MEMBERS(j, p, rss_bytes, pss_bytes, anon_huge_pages_bytes, shmem_pmd_mapped_bytes, file_pmd_mapped_bytes,
                     hugetlb_bytes, page_tables_bytes);
        json_string(j, "status", p->denied ? "not_permitted" : "ok");
    }
}

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
    JSON_MEMBERS(j, level, level);
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

static void structures_to_json(const struct tlb_structure *structures, size_t count, struct json *j)
{
    for (size_t i = json_begin_list(j, "structures"); json_next(j, i, count); i++) {
        const struct tlb_structure *s = &structures[i];

        JSON_MEMBERS(j, s, origin, level);
        json_string(j, "kind", TLB_KIND_NAMES[s->kind]);
        json_begin_array(j, "page_bytes");
        for (size_t p = 0; p < s->page_count; p++)
            json_u64(j, NULL, s->page_bytes[p]);
        json_end_array(j);
        json_u64_or_null(j, "entries", s->entries, TLB_ENTRIES_UNKNOWN);
        ways_to_json(s->ways, s->ways_max, j);
        json_string(j, "note", s->note);
    }
}

void tlb_disagreements_to_json(const struct disagreement_list *found, struct json *j)
{
    for (size_t i = json_begin_list(j, "disagreements"); json_next(j, i, found->count); i++) {
        const struct disagreement *d = &found->items[i];

        JSON_MEMBERS(j, d, level, page_bytes);
        json_string(j, "field", "entries");
        json_begin_object(j, "values");
        for (int source = 0; source < SOURCE_COUNT; source++)
            if (d->entries[source] != 0)
                json_u64(j, FACT_SOURCE_NAMES[source], d->entries[source]);
        json_end_object(j);
        JSON_MEMBERS(j, d, text);
    }
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
    JSON_MEMBERS(j, &tlb, l2_size_x32, l2_size_doubtful);
    structures_to_json(tlb.structures, tlb.structure_count, j);
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
    JSON_MEMBERS(j, d, command, profile, seed);
    json_string(j, "started_at", started);
    json_double(j, "duration_seconds", (double)(clock_now_ns() - d->start_ns) / 1e9);
    JSON_MEMBERS(j, d, exit_status);
    for (size_t i = json_begin_list(j, "sections"); json_next(j, i, count); i++) {
        JSON_MEMBERS(j, &sections[i], name);
        verdict_to_json(&sections[i].verdict, j);
        JSON_MEMBERS(j, &sections[i], duration_seconds);
    }
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
