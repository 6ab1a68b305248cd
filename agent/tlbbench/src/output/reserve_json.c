/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/reserve.h"
#include "memory/reserve_journal.h"
#include "output/json.h"
#include "output/to_json.h"

void reservation_to_json(struct json *j, const char *key, const struct reservation *reservation)
{
    json_begin_object(j, key);
    verdict_to_json(&reservation->verdict, j);
    json_begin_array(j, "pools");
    for (size_t index = 0; index < reservation->pool_count; index++) {
        const struct reserve_pool *pool = &reservation->pools[index];

        json_begin_object(j, NULL);
        json_u64(j, "page_bytes", pool->page_bytes);
        json_i64_or_null(j, "node", pool->node);
        json_i64(j, "former_pages", pool->previous);
        json_i64(j, "target_pages", pool->target);
        json_i64_or_null(j, "got_pages", pool->got);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}
