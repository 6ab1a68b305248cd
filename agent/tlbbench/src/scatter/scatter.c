/* SPDX-License-Identifier: Apache-2.0 */
#include "scatter/scatter.h"

#include <sys/mman.h>

enum {
    PART_BYTES = 4096,
    LINES_PER_PART = PART_BYTES / CACHE_LINE_BYTES,
    HOT_LINES_MIN = 4,
    HOT_LINES_MAX = 16384,
    QUICK_THP_PAGES = 256, /* transparent huge pages cannot be mapped twice, so these cost memory */
    FULL_THP_PAGES = 1024,
    GIGANTIC_LINES_MAX = 1024, /* 1 TiB of addresses at 1 GiB each */
    FULL_PLACES = 2,           /* of each window; mapping one takes as long as a few rounds */
    PLACE_SEED_BITS = 20,
    CONFIRMATIONS = 2, /* of a crossing: both sides again at other places; what stands in none was luck */
};

#define PLACES_BYTES (64 * GIB) /* of addresses over which the places of a window are drawn */

#define SWEEP_STEP 1.414213562 /* square root of 2 */
/* Less than this share of a hot line's cost is a tie, and less than this share of the first point's: a quarter of an L1
 * hit is a core cycle, which a busy SMT sibling or the clock adds to either side, and no page structure. */
#define LOSS_SHARE 0.05
#define LOSS_HIT_SHARE 0.25
#define LOSS_MADS 3.0

static const struct sweep_effort QUICK_EFFORT = {.rounds = 5, .batches = 2, .batch_seconds = 0.4e-3, .control = true};
static const struct sweep_effort FULL_EFFORT = {.rounds = 8, .batches = 4, .batch_seconds = 1e-3, .control = true};

int64_t scatter_find_crossing(const struct scatter_point *base, const struct scatter_point *huge, size_t count)
{
    unsigned in_a_row = 0;

    for (size_t index = 0; index < count; index++) {
        double least = fmax(LOSS_SHARE * base[index].ns, LOSS_HIT_SHARE * base[0].ns);
        double margin = fmax(least, LOSS_MADS * fmax(base[index].mad, huge[index].mad));

        in_a_row = huge[index].ns - base[index].ns > margin ? in_a_row + 1 : 0;
        if (in_a_row == 2)
            return (int64_t)huge[index - 1].hot_lines;
    }
    return -1;
}

struct scatter_run {
    const struct session *session;
    struct scatter_result *result;
    struct sweep_effort effort;
    struct sweep *huge, *base;
    uint64_t stream;
    unsigned pass; /* 0, and more to confirm a crossing */
};

static void make_sweep(struct scatter_run *run, struct sweep *sweep, size_t lines_max)
{
    sweep->count = 0;
    sweep->seed = 0x5ca7000u + ++run->stream;
    for (double lines = HOT_LINES_MIN; llround(lines) <= (long long)lines_max; lines *= SWEEP_STEP)
        sweep_add_point(sweep, (uint64_t)llround(lines));
}

static void keep_curve(struct scatter_run *run, const struct sweep *sweep, const struct backing *backing,
                       const struct backing *beside, const struct verdict *verdict)
{
    struct curve *curve = curve_list_add(&run->result->curves, backing, "scatter", verdict);

    if (curve == NULL)
        return;
    (void)snprintf(curve->name, sizeof(curve->name), "scatter %s, one line in each %s", backing->name, beside->name);
    if (sweep != NULL)
        (void)sweep_to_curve(sweep, false, curve);
    curve->x_name = "hot_lines";
}

/* Measures the sweep in fresh mappings at one virtual address after another: TLBs choose the set of an entry from high
 * address bits, too, so that one place of so few entries can be lucky or not. The same places for huge pages, which are
 * one page that is mapped many times, and for base pages that lie as far `apart` as those. */
static int measure_places(struct scatter_run *run, struct sweep *sweep, uint64_t page_bytes, uint64_t apart,
                          struct verdict *verdict)
{
    struct window_request request = {.page_bytes = page_bytes,
                                     .base_bytes = run->session->base_page_bytes,
                                     .stride_pages = apart / page_bytes,
                                     .pages_max = (size_t)sweep->cells[sweep->count - 1].pages,
                                     .slots = WINDOW_SLOTS_LINES,
                                     .spread = apart > page_bytes};
    uint64_t range = apart * GIGANTIC_LINES_MAX > PLACES_BYTES ? apart * GIGANTIC_LINES_MAX : PLACES_BYTES;
    unsigned places = run->session->full ? FULL_PLACES : 1;
    struct sweep_effort effort = run->effort;
    struct rng rng = rng_new(run->session->seed, apart + run->pass);
    int status = 0;

    effort.rounds = run->effort.rounds / places;
    for (unsigned place = 0; place < places && status == 0; place++) {
        size_t shift = (size_t)((1 + rng_below(&rng, range / apart)) * apart);
        void *shifting = mmap(NULL, shift, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        struct window window;

        sweep->seed += (1 + place + (uint64_t)run->pass * FULL_PLACES) << PLACE_SEED_BITS;
        status = window_open(&window, &request, verdict);
        if (status != 0 && shifting != MAP_FAILED) {
            /* Addresses are short (RLIMIT_AS): the window lies where the kernel puts it. */
            (void)munmap(shifting, shift);
            shifting = MAP_FAILED;
            *verdict = (struct verdict){.status = STATUS_OK};
            status = window_open(&window, &request, verdict);
        }
        if (status == 0) {
            note_peak(&run->result->peak_mapped_bytes, window.packed_bytes);
            struct sweep_source source = sweep_of_window(&window);

            status = sweep_measure(sweep, &source, &effort, run->session, verdict);
            window_close(&window);
        }
        if (shifting != MAP_FAILED)
            (void)munmap(shifting, shift);
    }
    return status;
}

static char *hot_line(const void *context, size_t line)
{
    const struct arena *arena = context;
    size_t page = (size_t)arena->backing.page_bytes;
    size_t parts = page > PART_BYTES ? page / PART_BYTES : 1;

    return arena->base + line * page + line % parts * PART_BYTES +
           line * CACHE_LINE_STEP % LINES_PER_PART * CACHE_LINE_BYTES;
}

static char *packed_line(const void *context, size_t line)
{
    return ((const struct arena *)context)->base + line * CACHE_LINE_BYTES;
}

static struct chase link_arena(void *context, bool packed, size_t count, struct rng *rng, uint32_t *order)
{
    permutation_fill(order, count, rng);
    return chase_link(packed ? packed_line : hot_line, context, order, count);
}

static int measure_thp(struct scatter_run *run, const struct backing *backing, struct verdict *verdict)
{
    size_t pages = (size_t)run->huge->cells[run->huge->count - 1].pages;
    struct arena_request request = session_arena(run->session, backing, pages * backing->page_bytes, 0);
    struct arena arena;

    if (arena_open(&arena, &request, verdict) != 0)
        return -1;
    struct sweep_source source = {.link = link_arena, .context = &arena};

    note_peak(&run->result->peak_mapped_bytes, arena.bytes);
    int status =
        verdict->status == STATUS_OK ? sweep_measure(run->huge, &source, &run->effort, run->session, verdict) : -1;

    arena_close(&arena);
    return status;
}

static size_t cost_points(const struct sweep *sweep, struct scatter_point points[SWEEP_POINTS_MAX])
{
    struct knee_point costs[SWEEP_POINTS_MAX];
    /* The best over all places: what disturbs only adds. */
    size_t count = sweep_knee_points(sweep, 0, costs);

    for (size_t index = 0; index < count; index++) {
        /* The control is subtracted; an L1 hit is put back so that 5 % of nothing is not requested. */
        double hit_ns = sweep->cells[0].packed.stats.ns_min;

        points[index] = (struct scatter_point){.hot_lines = costs[index].pages,
                                               .ns = costs[index].ns + hit_ns,
                                               .mad = sweep->cells[index].view.stats.ns_mad};
    }
    return count;
}

/* Returns whether huge pages cost more somewhere; notes it, and what was tested, in the result if `is_final`. */
static bool compare(struct scatter_run *run, const struct backing *backing, bool is_final)
{
    struct scatter_point base[SWEEP_POINTS_MAX];
    struct scatter_point huge[SWEEP_POINTS_MAX];
    struct scatter_result *result = run->result;
    size_t count = cost_points(run->huge, huge);

    if (count == 0 || cost_points(run->base, base) < count)
        return false;
    int64_t crossing = scatter_find_crossing(base, huge, count);

    if (!is_final)
        return crossing >= 0;
    if (result->crossing_status == STATUS_SKIPPED || huge[count - 1].hot_lines > result->tested_max) {
        result->tested_min = huge[0].hot_lines;
        result->tested_max = huge[count - 1].hot_lines;
    }
    if (crossing >= 0 && (result->crossing_hot_lines < 0 || crossing < result->crossing_hot_lines)) {
        result->crossing_hot_lines = crossing;
        result->crossing_status = STATUS_OK;
        memcpy(result->crossing_backing, backing->name, sizeof(result->crossing_backing));
    } else if (crossing < 0 && result->crossing_hot_lines < 0) {
        result->crossing_status = STATUS_NOT_REACHED;
    }
    return crossing >= 0;
}

static size_t lines_of(const struct scatter_run *run, const struct backing *backing)
{
    bool full = run->session->full;
    uint64_t allowed = run->session->memory_bytes / backing->page_bytes;
    size_t wanted = full ? FULL_THP_PAGES : QUICK_THP_PAGES;
    /* Every base page far from its neighbours needs a page table of its own. */
    uint64_t tables = run->session->memory_bytes / (2 * run->session->base_page_bytes);
    size_t most = tables < HOT_LINES_MAX ? (size_t)tables : HOT_LINES_MAX;

    if (backing->kind == BACKING_THP)
        return allowed < wanted ? (size_t)allowed : wanted;
    return backing->page_bytes >= GIB && most > GIGANTIC_LINES_MAX ? GIGANTIC_LINES_MAX : most;
}

/* Huge pages of one backing beside base pages at the same addresses. Returns -1 when asked to stop. */
static int measure_backing(struct scatter_run *run, const struct backing *backing, const struct backing *base)
{
    size_t lines = lines_of(run, backing);
    struct verdict verdict = {.status = STATUS_OK};

    make_sweep(run, run->huge, lines);
    make_sweep(run, run->base, lines);
    if (run->huge->count < 2) {
        verdict_set(&verdict, STATUS_MEMORY_LIMIT, "the memory allowed holds too few %s pages", backing->name);
        keep_curve(run, NULL, backing, backing, &verdict);
        return 0;
    }
    if (backing->kind == BACKING_HUGETLB &&
        (session_pool_bytes(run->session, backing, &verdict) < backing->page_bytes ||
         !session_allows(run->session, backing, 0, backing->page_bytes, &verdict))) {
        keep_curve(run, NULL, backing, backing, &verdict);
        return 0;
    }
    struct verdict plain_verdict = {.status = STATUS_OK};
    int huge, plain;

    run->pass = 0;
    do {
        huge = backing->kind == BACKING_THP
                   ? measure_thp(run, backing, &verdict)
                   : measure_places(run, run->huge, backing->page_bytes, backing->page_bytes, &verdict);
        plain = huge == 0 ? measure_places(run, run->base, base->page_bytes, backing->page_bytes, &plain_verdict) : -1;
    } while (run->pass++ < CONFIRMATIONS && plain == 0 && compare(run, backing, false));
    keep_curve(run, huge == 0 ? run->huge : NULL, backing, backing, &verdict);
    if (huge == 0)
        keep_curve(run, plain == 0 ? run->base : NULL, base, backing, &plain_verdict);
    if (plain == 0) {
        (void)compare(run, backing, true);
        return 0;
    }
    const struct verdict *failed = huge != 0 ? &verdict : &plain_verdict;

    run->result->verdict = failed->status == STATUS_STOPPED ? *failed : run->result->verdict;
    return failed->status == STATUS_STOPPED ? -1 : 0;
}

/* Without a comparison the crossing is unknown; the curves say why. */
static void judge(struct scatter_result *result)
{
    if (result->verdict.status != STATUS_OK)
        return;
    for (size_t index = 0; index < result->curves.count && result->crossing_status == STATUS_SKIPPED; index++)
        if (result->curves.items[index].verdict.status != STATUS_OK)
            result->crossing_status = result->curves.items[index].verdict.status;
}

int scatter_measure(const struct session *session, struct scatter_result *result)
{
    const struct backing *backings = session->backings;
    size_t count = session->backing_count;
    struct scatter_run run = {
        .session = session,
        .result = result,
        .effort = session->full ? FULL_EFFORT : QUICK_EFFORT,
        .huge = calloc(1, sizeof(*run.huge)),
        .base = calloc(1, sizeof(*run.base)),
    };

    *result = (struct scatter_result){.crossing_hot_lines = -1, .crossing_status = STATUS_SKIPPED};
    if (run.huge == NULL || run.base == NULL) {
        free(run.huge);
        free(run.base);
        return FAILED(&result->verdict, STATUS_NO_MEMORY, "no memory for the result");
    }
    if (count < 2)
        verdict_set(&result->verdict, STATUS_SKIPPED, "no larger pages to compare with were found or requested");
    for (size_t index = 1; index < count; index++) {
        session_report_progress(session, (double)(index - 1) / (double)count);
        if (measure_backing(&run, &backings[index], &backings[0]) != 0)
            break;
    }
    free(run.huge);
    free(run.base);
    judge(result);
    return 0;
}
