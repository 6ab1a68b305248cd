/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/processes.h"
#include "output/json.h"
#include "output/to_json.h"

void processes_to_json(const struct process_list *list, struct json *j, const char *key)
{
    json_begin_array(j, key);
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
