/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/tlb_levels.h"
#include "output/json.h"
#include "output/to_json.h"

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
    json_string(j, "kind", tlb_kind_name(level->kind));
    json_u64(j, "page_bytes", level->page_bytes);
    json_u64_or_null(j, "entries", level->entries, TLB_ENTRIES_UNKNOWN);
    json_u64_or_null(j, "entries_min", level->entries_min, TLB_ENTRIES_UNKNOWN);
    json_u64_or_null(j, "entries_max", level->entries_max, TLB_ENTRIES_UNKNOWN);
    ways_to_json(level->ways, level->ways_max, j);
    json_string(j, "source", fact_source_name(level->source));
    json_string(j, "confidence", confidence_name(level->confidence));
    json_text_or_null(j, "note", level->note);
    json_end_object(j);
}

/* Measured values stand first: a reader who takes the first match for a level and a page size gets what holds here. */
void tlb_levels_to_json(const struct tlb_level_list *levels, struct json *j, const char *key)
{
    json_begin_array(j, key);
    for (int measured = 1; measured >= 0; measured--) {
        for (size_t i = 0; i < levels->count; i++)
            if ((levels->items[i].source == SOURCE_MEASURED) == (measured == 1))
                level_to_json(&levels->items[i], j);
    }
    json_end_array(j);
}

void tlb_structures_to_json(const struct tlb_structure *structures, size_t count, struct json *j, const char *key)
{
    json_begin_array(j, key);
    for (size_t i = 0; i < count; i++) {
        const struct tlb_structure *s = &structures[i];

        json_begin_object(j, NULL);
        json_text_or_null(j, "origin", s->origin);
        json_u64(j, "level", s->level);
        json_string(j, "kind", tlb_kind_name(s->kind));
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

void tlb_disagreements_to_json(const struct disagreement *found, size_t count, struct json *j, const char *key)
{
    json_begin_array(j, key);
    for (size_t i = 0; i < count; i++) {
        const struct disagreement *d = &found[i];

        json_begin_object(j, NULL);
        json_u64(j, "level", d->level);
        json_u64(j, "page_bytes", d->page_bytes);
        json_string(j, "field", "entries");
        json_begin_object(j, "values");
        for (int source = 0; source < SOURCE_COUNT; source++)
            if (d->entries[source] != 0)
                json_u64(j, fact_source_name((enum fact_source)source), d->entries[source]);
        json_end_object(j);
        json_string(j, "text", d->text);
        json_end_object(j);
    }
    json_end_array(j);
}
