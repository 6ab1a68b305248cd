/* SPDX-License-Identifier: Apache-2.0 */
/* The TLB table: one line for each level and page size, the sources beside each other. */
#include "output/report.h"
#include "output/report_text.h"

/* Loads and data of both kinds are one side; a source may call the same structure data, load or unified. */
enum side { SIDE_DATA, SIDE_STORE, SIDE_INSTRUCTION };

struct row {
    unsigned level;
    uint64_t page_bytes;
    enum side side;
    bool disputed;
    const struct tlb_level *cells[SOURCE_COUNT];
};

struct row_list {
    struct row rows[TLB_LEVELS_MAX];
    size_t count;
    bool any_low, any_disputed;
};

/* What is measured wins, so it comes first. */
static const struct {
    enum fact_source source;
    const char *heading;
    int columns;
} COLUMNS[] = {
    {SOURCE_MEASURED, "measured", 18},
    {SOURCE_CPUID, "CPUID", 12},
    {SOURCE_CATALOGUE, "catalogue", 11},
    {SOURCE_DEVICE_TREE, "device tree", 11},
};

static enum side side_of(enum tlb_kind kind)
{
    if (kind == TLB_INSTRUCTION)
        return SIDE_INSTRUCTION;
    return kind == TLB_STORE ? SIDE_STORE : SIDE_DATA;
}

static struct row *find_row(struct row_list *table, const struct tlb_level *level)
{
    for (size_t i = 0; i < table->count; i++) {
        struct row *row = &table->rows[i];

        if (row->level == level->level && row->page_bytes == level->page_bytes && row->side == side_of(level->kind) &&
            row->cells[level->source] == NULL)
            return row;
    }
    struct row *row = &table->rows[table->count++];

    *row = (struct row){.level = level->level, .page_bytes = level->page_bytes, .side = side_of(level->kind)};
    return row;
}

/* By level and page size, instructions last. */
static uint64_t rank_of(const struct row *row)
{
    return (uint64_t)(row->side == SIDE_INSTRUCTION) << 63 | (uint64_t)row->level << 60 | row->page_bytes << 2 |
           row->side;
}

static int by_row(const void *a, const void *b)
{
    uint64_t x = rank_of(a);
    uint64_t y = rank_of(b);

    return (x > y) - (x < y);
}

/* The document lists every page size of the processor; the table those that this kernel can map. */
static bool kernel_has(const struct environment *e, uint64_t page_bytes)
{
    if (e->base_page_bytes == 0 || e->pool_count == 0)
        return page_bytes != 4 * MIB; /* unknown: all but 4M, which no 64-bit kernel maps */
    return page_bytes == e->base_page_bytes || page_bytes == e->thp_bytes || environment_pool(e, page_bytes) != NULL;
}

static bool is_doubtful(const struct tlb_level *level)
{
    return level->confidence == CONFIDENCE_LOW && level->entries != TLB_ENTRIES_UNKNOWN;
}

static void table_make(struct row_list *table, const struct environment *environment,
                       const struct tlb_level_list *levels, const struct disagreement_list *disagreements)
{
    memset(table, 0, sizeof(*table));
    for (size_t i = 0; i < levels->count; i++) {
        const struct tlb_level *level = &levels->items[i];

        if (!kernel_has(environment, level->page_bytes))
            continue;
        struct row *row = find_row(table, level);

        row->cells[level->source] = level;
        row->disputed = row->side == SIDE_DATA && tlb_is_disputed(disagreements, level->level, level->page_bytes);
        table->any_low = table->any_low || is_doubtful(level);
        table->any_disputed = table->any_disputed || row->disputed;
    }
    qsort(table->rows, table->count, sizeof(table->rows[0]), by_row);
}

static void append_ways(const struct tlb_level *level, char text[TABLE_TEXT_BYTES])
{
    if (level->ways == TLB_WAYS_FULL)
        text_append(text, TABLE_TEXT_BYTES, "/full");
    else if (level->ways != TLB_WAYS_UNKNOWN && level->ways_max > level->ways)
        text_append(text, TABLE_TEXT_BYTES, "/%d-%d", level->ways, level->ways_max);
    else if (level->ways != TLB_WAYS_UNKNOWN)
        text_append(text, TABLE_TEXT_BYTES, "/%d", level->ways);
}

/* Intervals are rounded outward to two digits where they are wide: the knee of a second level is known no better. */
static const char *cell_text(const struct tlb_level *level, char text[TABLE_TEXT_BYTES])
{
    struct entries_interval about = report_entries(level);

    if (level->entries == TLB_ENTRIES_UNKNOWN)
        return "unknown";
    if (level->entries_min == level->entries_max)
        (void)snprintf(text, TABLE_TEXT_BYTES, "%u", level->entries);
    else
        (void)snprintf(text, TABLE_TEXT_BYTES, "%s%u (%u-%u)", about.is_rounded ? "~" : "", about.entries, about.min,
                       about.max);
    append_ways(level, text);
    text_append(text, TABLE_TEXT_BYTES, is_doubtful(level) ? "?" : "");
    return text;
}

/* The vendor's word for the structure; a measurement sees loads only and calls them data. */
static const char *kind_text(const struct row *row)
{
    static const enum fact_source order[] = {SOURCE_CPUID, SOURCE_CATALOGUE, SOURCE_DEVICE_TREE, SOURCE_MEASURED};

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (row->cells[order[i]] != NULL)
            return TLB_KIND_NAMES[row->cells[order[i]]->kind];
    return "?";
}

static void print_rows(FILE *out, const struct row_list *list)
{
    struct table table = {.empty = "-", .is_left = true};

    for (size_t i = 0; i < list->count; i++) {
        const struct row *row = &list->rows[i];
        char label[TABLE_TEXT_BYTES], cell[TABLE_TEXT_BYTES], page[PAGE_TEXT_BYTES];

        (void)snprintf(label, sizeof(label), "%c L%-4u %-5s %-7s", row->disputed ? '!' : ' ', row->level,
                       page_text(row->page_bytes, page), kind_text(row));
        for (size_t c = 0; c < sizeof(COLUMNS) / sizeof(COLUMNS[0]); c++) {
            struct table_column column = {.rank = c};

            (void)snprintf(column.heading, sizeof(column.heading), "%-*s", COLUMNS[c].columns, COLUMNS[c].heading);
            if (row->cells[COLUMNS[c].source] != NULL)
                table_set(&table, label, column, "%s", cell_text(row->cells[COLUMNS[c].source], cell));
        }
    }
    table_print(&table, "  level page  kind   ", out);
}

static bool is_explained(const char *note, const struct disagreement_list *disagreements)
{
    for (size_t i = 0; i < disagreements->count; i++)
        if (strstr(disagreements->items[i].text, note) != NULL)
            return true;
    return false;
}

static void print_notes(FILE *out, const struct row_list *table, const struct disagreement_list *disagreements)
{
    char page[PAGE_TEXT_BYTES];

    for (size_t i = 0; i < table->count; i++)
        for (size_t c = 0; c < sizeof(COLUMNS) / sizeof(COLUMNS[0]); c++) {
            const struct row *row = &table->rows[i];
            const struct tlb_level *level = row->cells[COLUMNS[c].source];

            if (level != NULL && level->note[0] != '\0' && !is_explained(level->note, disagreements))
                report_wrapped(out, "  -", 4, "L%u %s %s, %s: %s", row->level, kind_text(row),
                               page_text(row->page_bytes, page), COLUMNS[c].heading, level->note);
        }
}

void report_levels(FILE *out, const struct environment *environment, const struct tlb_level_list *levels,
                   const struct disagreement_list *disagreements)
{
    struct row_list table;

    (void)fputc('\n', out);
    table_make(&table, environment, levels, disagreements);
    if (table.count == 0)
        (void)fputs("TLBs: nothing is known\n", out);
    else {
        report_wrapped(out, "TLBs", 5, "(entries/ways, full = fully associative%s%s)",
                       table.any_low ? ", ? = low confidence" : "",
                       table.any_disputed ? ", ! = the sources disagree" : "");
        print_rows(out, &table);
        print_notes(out, &table, disagreements);
    }
    for (size_t i = 0; i < disagreements->count; i++)
        report_wrapped(out, "  !", 4, "%s", disagreements->items[i].text);
}
