/* SPDX-License-Identifier: Apache-2.0 */
/* What decides over the cost of a page walk beside the footprint: how many run side by side, which NUMA node holds the
 * memory, where the page tables lie (L2, last level, memory), and how far apart the pages are (the walk caches). */
#include "base/signals.h"
#include "latency/series.h"

#include <sys/mman.h>

enum {
    ROW_POINTS_MAX = 16,
    CHASE_POINTS = 4, /* 1, 2, 4 and 8 */
    QUICK_ROUNDS = 2,
    FULL_ROUNDS = 3,
    BATCHES = 3,
    ENTRY_BYTES = 8, /* of a page table, on every architecture here */
    ENTRIES_PER_LINE = CACHE_LINE_BYTES / ENTRY_BYTES,
    HELD_PAGES = 16,         /* fewer than any first level holds: no walks, for comparison */
    WALKED_PAGES = 1 << 13,  /* more than any second level holds */
    TOUCHED_PAGES = 1 << 14, /* between two looks at the clock */
};

#define QUICK_TABLE_BYTES (8 * MIB)
#define FULL_TABLE_BYTES (512 * MIB)
#define QUICK_FOOTPRINT_BYTES (128 * MIB)
#define FULL_FOOTPRINT_BYTES (1 * GIB)
#define FOOTPRINT_LEAST_BYTES (16 * MIB) /* below, a second level may hold all base pages */
#define STRIDE_MOST_BYTES (1 * GIB)

/* Shares of the time, set by hand. */
#define ZEROES_SHARE 0.4
#define TOUCH_SHARE 0.5

/* A curve in the making. */
struct row {
    uint64_t x[ROW_POINTS_MAX];
    struct latency_cell cells[ROW_POINTS_MAX];
    size_t count;
};

struct walks_run {
    const struct session *session;
    struct walks_result *result;
    struct latency_plan plan; /* how long cycles are walked warm, and batches last */
    unsigned rounds;
    int nodes[ROW_POINTS_MAX]; /* with memory; the session's first */
    size_t node_count;         /* 0 = there is one, or none is known */
};

static struct curve *add_curve(struct walks_run *run, const struct backing *backing, const char *x_name,
                               const struct verdict *verdict, struct row *row)
{
    bool is_arena = strcmp(x_name, "chases") == 0 || strcmp(x_name, "numa_node") == 0;
    struct curve *curve = curve_list_add(&run->result->curves, backing, is_arena ? "line_per_page" : "zeroes", verdict);

    if (curve == NULL || latency_fill_curve(curve, row->x, row->cells, row->count) != 0)
        return NULL;
    (void)snprintf(curve->name, sizeof(curve->name), "walks %s %s", x_name, backing->name);
    curve->x_name = x_name;
    return curve;
}

/* --- base pages that all map the zero page: no time but that of translation --------------------------------------- */

struct pages {
    uint64_t x, count, stride_bytes;
};

/* Bytes of page tables that hold so many entries at a stride, each level as far as it has more than one table. */
static uint64_t tables_of(const struct pages *pages, uint64_t page_bytes)
{
    uint64_t span = pages->count * pages->stride_bytes;
    uint64_t bytes = 0;
    uint64_t tables = 2;

    for (uint64_t reach = page_bytes; tables > 1 && reach <= span; bytes += tables * page_bytes) {
        reach *= page_bytes / ENTRY_BYTES;
        tables = span / reach + 1 < pages->count ? span / reach + 1 : pages->count;
    }
    return bytes;
}

/* A line of a page somewhere in its stride: tables have one size, so that entries at one place of each would share few
 * cache sets. */
static const char *page_address(const char *base, const struct pages *pages, uint64_t page_bytes, uint64_t page)
{
    uint64_t inside = rng_mix(page) % (pages->stride_bytes / page_bytes) * page_bytes;
    uint64_t line = page * CACHE_LINE_STEP % (page_bytes / CACHE_LINE_BYTES);

    return base + page * pages->stride_bytes + inside + line * CACHE_LINE_BYTES;
}

/* Makes the kernel map every page. False when the time is over. */
static bool touch_pages(struct walks_run *run, const char *base, const struct pages *pages)
{
    struct verdict ignored;

    for (uint64_t page = 0; page < pages->count; page++) {
        if (page % TOUCHED_PAGES == 0 && session_must_stop(run->session, &ignored))
            return false;
        (void)*(const volatile char *)page_address(base, pages, run->session->base_page_bytes, page);
    }
    return true;
}

/* Returns the seconds that the first touch took. */
static double measure_pages(struct walks_run *run, const struct pages *pages, struct latency_cell *cell,
                            struct verdict *verdict)
{
    uint64_t start_ns = clock_now_ns();
    double touch_seconds = 0;
    size_t bytes = pages->count * pages->stride_bytes;
    size_t table_bytes = pages->count * sizeof(char *);
    /* Not from the heap, which keeps what was freed. */
    const char **addresses = mmap(NULL, table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *base = addresses == MAP_FAILED ? NULL : backing_map_zeroes(bytes);

    if (base == NULL) {
        (void)backing_explain_errno(errno, "mapping the zero page", bytes, verdict);
        if (addresses != MAP_FAILED)
            (void)munmap(addresses, table_bytes);
        return 0;
    }
    for (unsigned round = 0; round < run->rounds && touch_pages(run, base, pages); round++) {
        touch_seconds = round == 0 ? (double)(clock_now_ns() - start_ns) / 1e9 : touch_seconds;
        struct permutation permutation =
            permutation_new(pages->count, rng_mix(run->session->seed ^ rng_mix(pages->x)) + round);
        struct chase chase = {.addresses = addresses, .count = pages->count};

        for (uint64_t index = 0; index < pages->count; index++)
            addresses[index] =
                page_address(base, pages, run->session->base_page_bytes, permutation_at(&permutation, index));
        tlb_flush();
        latency_measure_cell(cell, &run->plan, BATCHES, &chase, pages->count);
    }
    (void)munmap(base, bytes);
    (void)munmap(addresses, table_bytes);
    return touch_seconds;
}

/* Points of rising cost, as far as memory and time reach. */
static int measure_zeroes(struct walks_run *run, const char *x_name, const struct pages *points, size_t count,
                          double seconds)
{
    uint64_t page_bytes = run->session->base_page_bytes;
    struct verdict verdict = {.status = STATUS_OK};
    struct deadline end = deadline_after(seconds);
    struct row row = {0};

    for (; row.count < count && verdict.status == STATUS_OK; row.count++) {
        const struct pages *pages = &points[row.count];
        uint64_t bytes = tables_of(pages, page_bytes) + pages->count * sizeof(void *);
        double left = deadline_remaining_seconds(end);

        if (2 * bytes > run->session->memory_bytes || left <= 0) {
            (void)snprintf(verdict.reason, sizeof(verdict.reason), "%s: %zu of %zu points were measured",
                           left <= 0 ? "the time limit was reached" : "the memory budget is small", row.count, count);
            break;
        }
        uint64_t start_ns = clock_now_ns();

        row.x[row.count] = pages->x;
        double touch_seconds = measure_pages(run, pages, &row.cells[row.count], &verdict);
        note_peak(&run->result->peak_mapped_bytes, bytes);
        double took = (double)(clock_now_ns() - start_ns) / 1e9;

        /* The next one has more tables to touch: it is not begun where it could not end. */
        if (row.count + 1 < count && took + touch_seconds * (double)tables_of(&points[row.count + 1], page_bytes) /
                                                 (double)tables_of(pages, page_bytes) >
                                         left - took)
            end = deadline_after(0);
    }
    if (row.count > 0)
        verdict.status = STATUS_OK; /* what is missing is named */
    return add_curve(run, &run->session->backings[0], x_name, &verdict, &row) == NULL ? -1 : 0;
}

/* Each page has a line of its own in the tables, and all of them are read in turn: what they take of the caches. */
static int measure_tables(struct walks_run *run, double seconds)
{
    uint64_t stride = ENTRIES_PER_LINE * run->session->base_page_bytes;
    uint64_t most = run->session->full ? FULL_TABLE_BYTES : QUICK_TABLE_BYTES;
    struct pages points[ROW_POINTS_MAX] = {{(uint64_t)HELD_PAGES * CACHE_LINE_BYTES, HELD_PAGES, stride}};
    size_t count = 1;

    for (uint64_t pages = WALKED_PAGES; pages * CACHE_LINE_BYTES <= most; pages *= 4)
        points[count++] = (struct pages){pages * CACHE_LINE_BYTES, pages, stride};
    return measure_zeroes(run, "table_bytes", points, count, seconds);
}

/* The same number of pages further and further apart: entries of the upper levels, which processors cache, run out. */
static int measure_strides(struct walks_run *run, double seconds)
{
    struct pages points[ROW_POINTS_MAX];
    size_t count = 0;

    for (uint64_t stride = run->session->base_page_bytes; stride <= STRIDE_MOST_BYTES; stride *= ENTRIES_PER_LINE)
        points[count++] = (struct pages){stride, WALKED_PAGES, stride};
    return measure_zeroes(run, "stride_bytes", points, count, seconds);
}

/* --- chases side by side, and the NUMA nodes of memory, for every page size --------------------------------------- */

struct place {
    struct backing backing;
    struct verdict verdict;
    struct verdict node_verdict; /* of the last node that has no figure */
    double granted_fraction;
    uint64_t bytes;
    bool is_over; /* nothing more can be mapped */
    struct row chases, nodes;
};

/* The largest footprint that leaves half of the memory allowed, and the pool, to others. */
static void size_place(const struct walks_run *run, struct place *place)
{
    const struct session *session = run->session;
    uint64_t most = session_pool_bytes(session, &place->backing, &place->verdict);

    place->bytes = session->full ? FULL_FOOTPRINT_BYTES : QUICK_FOOTPRINT_BYTES;
    if (place->backing.kind == BACKING_MULTI_SIZE_THP)
        most = MULTI_SIZE_PAGES_MAX * place->backing.page_bytes;
    most = most < session->memory_bytes / 2 ? most : session->memory_bytes / 2;
    while (place->bytes > most)
        place->bytes /= 2;
    if (place->bytes >= FOOTPRINT_LEAST_BYTES)
        return;
    if (place->verdict.status == STATUS_OK)
        verdict_set(&place->verdict, STATUS_NO_FREE_HUGEPAGES,
                    "chases need %" PRIu64 " MiB: %" PRIu64 " MiB may be taken", (FOOTPRINT_LEAST_BYTES / MIB),
                    most / MIB);
    place->is_over = true;
}

static void measure_chases(struct walks_run *run, struct place *place, const struct latency_cycle *cycle)
{
    uint64_t nodes = latency_node_count(cycle);

    for (unsigned point = 0; point < CHASE_POINTS; point++) {
        unsigned count = 1u << point;
        struct chase chases[CHASES_MAX] = {0};

        for (unsigned index = 0; index < count; index++)
            chases[index].position = latency_node(cycle, index * (nodes / count));
        latency_time_batches(&place->chases.cells[point], &run->plan, BATCHES, chases, count);
    }
}

/* True when memory may be taken from a node that is not the session's, and as much as the footprint is there. */
static bool node_has(const struct session *there, const struct place *place, struct verdict *verdict)
{
    int64_t available = environment_node_available_bytes(there->environment, there->numa_node);

    if (session_pool_bytes(there, &place->backing, verdict) < place->bytes ||
        (place->backing.kind != BACKING_HUGETLB && available != UNKNOWN && (uint64_t)available < 4 * place->bytes))
        return REFUSED(verdict, STATUS_NO_MEMORY, "NUMA node %d has no %" PRIu64 " MiB to spare in %s pages",
                       there->numa_node, place->bytes / MIB, place->backing.name);
    return true;
}

/* Maps the footprint on a node, with proof of where it lies; else `verdict` says why not. */
static bool open_place(const struct walks_run *run, const struct place *place, size_t node, struct arena *arena,
                       struct verdict *verdict)
{
    struct session there = *run->session;

    if (run->node_count > 0)
        there.numa_node = run->nodes[node];
    struct arena_request request = session_arena(&there, &place->backing, place->bytes, 0);

    request.seconds = TOUCH_SHARE * deadline_remaining_seconds(there.deadline);
    if ((node > 0 && !node_has(&there, place, verdict)) || arena_open(arena, &request, verdict) != 0)
        return false;
    if (node > 0 && isnan(arena->on_node))
        verdict_set(verdict, STATUS_CANNOT_TELL, "the kernel does not say on which NUMA node %s pages lie",
                    place->backing.name);
    if (verdict->status == STATUS_OK)
        return true;
    arena_close(arena);
    return false;
}

/* The figures of one fresh mapping: of all numbers of chases on the session's node, of one chase elsewhere. What
 * earlier rounds found stands where this one has no memory. */
static void measure_arena(struct walks_run *run, struct place *place, size_t node, unsigned round)
{
    struct verdict *verdict = node == 0 ? &place->verdict : &place->node_verdict;
    struct verdict found = {.status = STATUS_OK};
    struct arena arena;

    if (!open_place(run, place, node, &arena, &found)) {
        if (place->nodes.cells[node].count == 0)
            *verdict = found;
        place->is_over = place->is_over || node == 0;
        return;
    }
    struct latency_cycle cycle = {arena.base, place->bytes, run->session->base_page_bytes, LAYOUT_LINE_PER_PAGE,
                                  rng_mix(run->session->seed) + round};
    struct chase chase = {.position = latency_link(&cycle)};

    note_peak(&run->result->peak_mapped_bytes, arena.bytes);
    tlb_flush();
    latency_measure_cell(&place->nodes.cells[node], &run->plan, BATCHES, &chase, latency_node_count(&cycle));
    if (node == 0) {
        place->granted_fraction = arena.granted_fraction;
        measure_chases(run, place, &cycle);
    }
    arena_close(&arena);
}

static int collect_place(struct walks_run *run, struct place *place)
{
    if (place->verdict.status != STATUS_OK)
        place->node_verdict = place->verdict;
    for (int nodes = 0; nodes <= (run->node_count > 0 ? 1 : 0); nodes++) {
        struct curve *curve = nodes == 1
                                  ? add_curve(run, &place->backing, "numa_node", &place->node_verdict, &place->nodes)
                                  : add_curve(run, &place->backing, "chases", &place->verdict, &place->chases);

        if (curve == NULL)
            return -1;
        curve->granted_fraction = place->granted_fraction;
        curve->footprint_bytes = place->bytes;
    }
    return 0;
}

static int measure_places(struct walks_run *run, struct place *places, size_t count)
{
    size_t per_round = count * (run->node_count > 0 ? run->node_count : 1);
    uint32_t order[SESSION_ALL_BACKINGS_MAX * ROW_POINTS_MAX];
    struct rng rng = rng_new(run->session->seed, 0x3a1c5);
    struct verdict ignored;
    int status = 0;

    for (size_t index = 0; index < count; index++) {
        places[index].backing = run->session->backings[index];
        places[index].granted_fraction = NAN;
        places[index].chases.count = CHASE_POINTS;
        for (unsigned point = 0; point < CHASE_POINTS; point++)
            places[index].chases.x[point] = 1u << point;
        places[index].nodes.count = run->node_count;
        for (size_t node = 0; node < run->node_count; node++)
            places[index].nodes.x[node] = (uint64_t)run->nodes[node];
        size_place(run, &places[index]);
    }
    for (unsigned round = 0; round < run->rounds; round++) {
        permutation_fill(order, per_round, &rng);
        for (size_t step = 0; step < per_round && !session_must_stop(run->session, &ignored); step++)
            if (!places[order[step] % count].is_over)
                measure_arena(run, &places[order[step] % count], order[step] / count, round);
    }
    for (size_t index = 0; index < count && status == 0; index++)
        status = collect_place(run, &places[index]);
    return status;
}

/* Nodes with memory, that of the session first; none where there is but one. */
static void list_nodes(struct walks_run *run)
{
    const struct environment *environment = run->session->environment;

    if (run->session->numa_node < 0)
        return;
    run->nodes[run->node_count++] = run->session->numa_node;
    for (size_t index = 0; index < environment->node_count && run->node_count < ROW_POINTS_MAX; index++)
        if (environment->nodes[index].id != run->session->numa_node && environment->nodes[index].mem_total_bytes > 0)
            run->nodes[run->node_count++] = environment->nodes[index].id;
    run->node_count = run->node_count < 2 ? 0 : run->node_count;
}

int walks_measure(const struct session *session, struct walks_result *result)
{
    uint64_t start_ns = clock_now_ns();
    double seconds = deadline_remaining_seconds(session->deadline);
    size_t count = session->backing_count + session->multi_size_count;
    struct place *places = calloc(count, sizeof(*places));
    struct walks_run run = {
        .session = session,
        .result = result,
        .plan = {.warm_seconds = session->full ? 0.5 : 0.02, .batch_seconds = session->full ? 2e-3 : 1e-3},
        .rounds = session->full ? FULL_ROUNDS : QUICK_ROUNDS,
    };

    *result = (struct walks_result){.cpu_node = environment_node_of_cpu(session->environment, session->cpu)};
    if (places == NULL)
        return FAILED(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
    list_nodes(&run);
    int status = measure_strides(&run, ZEROES_SHARE / 2 * seconds);

    if (status == 0)
        status = measure_tables(&run, ZEROES_SHARE / 2 * seconds);
    session_report_progress(session, ZEROES_SHARE);
    if (status == 0)
        status = measure_places(&run, places, count);
    free(places);
    session_report_progress(session, 1);
    result->duration_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    if (signals_stop_requested())
        (void)session_must_stop(session, &result->verdict);
    return status;
}
