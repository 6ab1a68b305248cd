/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/environment.h"
#include "output/json.h"
#include "output/to_json.h"

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
    json_end_object(j);
    nodes_to_json(e, j);
    memory_to_json(&e->memory, j);
    json_begin_object(j, "cgroup");
    json_i64_or_null(j, "version", e->cgroup.version);
    json_i64_or_null(j, "memory_limit_bytes", e->cgroup.memory_limit_bytes);
    json_i64_or_null(j, "memory_current_bytes", e->cgroup.memory_current_bytes);
    json_end_object(j);
}
