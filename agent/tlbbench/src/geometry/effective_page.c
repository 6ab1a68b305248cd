/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one TLB entry covers. A cycle of one line in every base-page part of a large page needs a single entry per large
 * page if the TLB holds large pages; if it shows the knee of the base-page structure instead, the page is fractured: a
 * hypervisor that backs the guest with base pages leaves the TLB no larger entry to hold.
 */
#include "geometry/work.h"

#include <sys/mman.h>

enum {
    AREA_BYTES = 4 << 20, /* with 96 entries of 4K it shows that a core coalesces up to eight of them */
    AREA_ENTRIES = 2,     /* times the entries of a first level: its knee, and a rise behind it, lie inside */
    PIECES_MAX = 8,
    PIECES_MIN = 4, /* of a sweep over pieces whose first level is not known */
    COLOURS = 64,
    ZEROED_SOON_BYTES = 64 << 20,
};

/* A later knee than this share of the first level over neighbouring frames is coalescing, not error. */
#define COALESCED_SHARE 1.15
#define ZERO_NS_PER_BYTE 0.15
/* A page is cut when misses cost at least this share of what a first-level miss costs for base pages. */
#define CUT_PENALTY_SHARE 0.5

/* One line in each of `parts` parts of an arena. */
struct parts {
    char *base;
    uint64_t part_bytes;
};

/* Parts in a row use lines in a row, so that the lines spread over all sets of the first-level cache. */
static char *part_line(const void *context, size_t part)
{
    const struct parts *parts = context;

    return parts->base + part * parts->part_bytes +
           (part * CACHE_LINE_STEP + part / COLOURS) % COLOURS * CACHE_LINE_BYTES;
}

static char *packed_line(const void *context, size_t part)
{
    return ((const struct parts *)context)->base + part * CACHE_LINE_BYTES;
}

static struct chase link_parts(void *context, bool packed, size_t count, struct rng *rng, uint32_t *order)
{
    permutation_fill(order, count, rng);
    return chase_link(packed ? packed_line : part_line, context, order, count);
}

/* Measures the sweep over the parts. Returns the number of parts at the knee, 0 when there is none; negative on
 * failure. */
static int64_t find_parts_knee(struct geometry_work *work, const struct arena *arena, uint64_t part_bytes,
                               size_t parts_max, const char *name, struct verdict *verdict)
{
    struct parts parts = {arena->base, part_bytes};
    struct sweep_source source = {.link = link_parts, .context = &parts};
    struct knee_point points[SWEEP_POINTS_MAX];
    bool base = part_bytes == work->session->base_page_bytes;
    double from = base ? (double)work->l1_entries / 4 : PIECES_MIN;

    geometry_start_sweep(work);
    struct sweep_effort effort = geometry_effort(work, 1.0 / (double)work->pages_left);

    effort.control = true;
    /* Fourth roots of 2 that meet the first level of base pages itself and its multiples. */
    for (double count = from; llround(count) <= (long long)parts_max; count *= 1.189207115)
        sweep_add_point(work->sweep, (uint64_t)llround(count));
    sweep_add_point(work->sweep, parts_max);
    if (sweep_measure(work->sweep, &source, &effort, work->session, verdict) != 0)
        return -1;
    geometry_keep_curve(work, name, &arena->backing, false, "part_per_line", verdict);
    size_t count = sweep_knee_points(work->sweep, work->l1_hit_ns, points);
    struct knee knee = knee_find(points, count, work->l1_hit_ns);

    if (knee.verdict == KNEE_UNCLEAR)
        return FAILED(verdict, STATUS_NOISY, "no clear plateau inside %s pages", arena->backing.name);
    double rise = points[count - 1].ns - knee.plateau_ns;
    double cut = isnan(work->l2_penalty_ns) ? 0.25 * work->l1_hit_ns : CUT_PENALTY_SHARE * work->l2_penalty_ns;

    return knee.verdict == KNEE_FOUND && rise >= cut ? (int64_t)knee.pages : 0;
}

/* Base pages that one entry seems to hold, by a knee at `parts` parts: a power of two. */
static uint64_t coalesced_pages(const struct geometry_work *work, int64_t parts)
{
    long doublings = lround(log2((double)parts / (double)work->l1_entries));

    return 1ull << (doublings > 0 ? doublings : 0);
}

/* The page size that the TLB holds. Some cores (AMD Zen, Arm) coalesce a few neighbours with neighbouring frames into
 * one entry; that depends on the luck of the frames, so it is told apart from a page size and only noted. */
static uint64_t page_from_knee(struct geometry_work *work, int64_t parts, uint64_t page_bytes)
{
    const struct environment *environment = work->session->environment;
    uint64_t coalesced = coalesced_pages(work, parts);
    uint64_t bytes = coalesced * work->session->base_page_bytes;

    if (bytes >= page_bytes)
        return page_bytes;
    for (size_t index = 0; index < environment->pool_count; index++)
        if (environment->pools[index].page_bytes == bytes)
            return bytes;
    if (coalesced > 1)
        work->result->coalescing_seen = true;
    return work->session->base_page_bytes;
}

static void judge_effective_page(const struct geometry_work *work, struct effective_page *page, int64_t knee)
{
    page->verdict = (struct verdict){.status = STATUS_OK};
    if (page->entry_bytes >= page->backing.page_bytes)
        return;
    uint64_t coalesced = knee > 0 ? coalesced_pages(work, knee) : 1;

    verdict_set(&page->verdict, STATUS_FRACTURED, "one TLB entry covers %" PRIu64 " of the page's %" PRIu64 " bytes",
                page->entry_bytes, page->backing.page_bytes);
    if (coalesced > 1)
        text_append(page->verdict.reason, sizeof(page->verdict.reason),
                    "; the core coalesced about %" PRIu64 " neighbouring base pages per entry", coalesced);
}

/* What an entry may cover of a page: base pages, the pools' sizes between them and the page, and 2M, which hosts map.
 * In ascending order; returns how many. */
static size_t list_pieces(const struct session *session, uint64_t page_bytes, uint64_t pieces[PIECES_MAX])
{
    const struct environment *environment = session->environment;
    size_t count = 0;

    pieces[count++] = session->base_page_bytes;
    for (size_t index = 0; index <= environment->pool_count && count < PIECES_MAX; index++) {
        uint64_t bytes = index < environment->pool_count ? environment->pools[index].page_bytes : 2 * MIB;
        size_t place = count;

        while (place > 0 && pieces[place - 1] > bytes)
            place--;
        if (bytes <= session->base_page_bytes || bytes >= page_bytes || pieces[place - 1] == bytes)
            continue;
        memmove(pieces + place + 1, pieces + place, (count - place) * sizeof(*pieces));
        pieces[place] = bytes;
        count++;
    }
    return count;
}

/* Parts that a sweep over pieces needs to show the end of their first level. No first level in the catalogue holds more
 * large pages than base pages. */
static size_t parts_needed(const struct geometry_work *work, uint64_t piece_bytes)
{
    const struct tlb_level *level = geometry_find_measured(work->result, 1, piece_bytes);

    return AREA_ENTRIES * (size_t)(level != NULL ? level->entries : work->l1_entries);
}

static uint64_t area_needed(const struct geometry_work *work, uint64_t piece_bytes)
{
    uint64_t bytes = parts_needed(work, piece_bytes) * piece_bytes;

    return bytes > AREA_BYTES ? bytes : AREA_BYTES;
}

/* Returns the bytes of one entry and stores the knee it was read from; 0 with the reason when it stayed unclear. */
static uint64_t measure_huge(struct geometry_work *work, const struct arena *arena, int64_t *found,
                             struct verdict *verdict)
{
    uint64_t pieces[PIECES_MAX];
    size_t count = list_pieces(work->session, arena->backing.page_bytes, pieces);
    char name[64], text[PAGE_TEXT_BYTES];

    for (size_t index = 0; index < count; index++) {
        uint64_t area = index == 0 ? area_needed(work, pieces[0]) : parts_needed(work, pieces[index]) * pieces[index];
        size_t parts = (size_t)((arena->bytes < area ? arena->bytes : area) / pieces[index]);

        (void)snprintf(name, sizeof(name), index == 0 ? "fracture %s" : "fracture %s in %s parts", arena->backing.name,
                       page_text(pieces[index], text));
        int64_t knee = find_parts_knee(work, arena, pieces[index], parts, name, verdict);

        if (knee < 0)
            return 0;
        *found = index == 0 ? knee : 0;
        if (knee > 0)
            return index == 0 ? page_from_knee(work, knee, arena->backing.page_bytes) : pieces[index];
        if (parts < parts_needed(work, pieces[index])) {
            verdict_set(verdict, STATUS_CANNOT_TELL, "pieces of %s: %zu could be looked at, and %zu are needed",
                        page_text(pieces[index], text), parts, parts_needed(work, pieces[index]));
            return 0;
        }
    }
    return arena->backing.page_bytes;
}

/* What the looks at all pieces need, in whole pages, as far as the pool and the budget go; a page at least. */
static uint64_t area_bytes(const struct geometry_work *work, const struct backing *backing, uint64_t pool_bytes)
{
    uint64_t pieces[PIECES_MAX];
    size_t count = list_pieces(work->session, backing->page_bytes, pieces);
    uint64_t most = pool_bytes < work->session->memory_bytes ? pool_bytes : work->session->memory_bytes;
    uint64_t wanted = backing->page_bytes;

    for (size_t index = 0; index < count; index++)
        if (area_needed(work, pieces[index]) > wanted)
            wanted = area_needed(work, pieces[index]);
    wanted = (wanted + backing->page_bytes - 1) / backing->page_bytes * backing->page_bytes;
    most -= most % backing->page_bytes;
    return wanted <= most ? wanted : most > backing->page_bytes ? most : backing->page_bytes;
}

static void measure_backing(struct geometry_work *work, const struct backing *backing, struct effective_page *page)
{
    uint64_t pool_bytes = session_pool_bytes(work->session, backing, &page->verdict);
    struct verdict verdict;
    struct arena arena;
    int64_t knee = 0;

    if (pool_bytes == 0)
        return;
    struct arena_request request = session_arena(work->session, backing, area_bytes(work, backing, pool_bytes), 0);

    if (arena_open(&arena, &request, &verdict) == 0) {
        note_peak(&work->result->peak_mapped_bytes, arena.bytes);
        /* THP not granted: base pages would be measured under its name. */
        page->entry_bytes = verdict.status == STATUS_OK ? measure_huge(work, &arena, &knee, &verdict) : 0;
        arena_close(&arena);
    }
    if (page->entry_bytes > 0)
        judge_effective_page(work, page, knee);
    else
        page->verdict = verdict;
}

/* Base pages over contiguous frames: a huge page whose mapping was split by changing the protection of a part and back.
 * A core that coalesces neighbours into one entry shows a later knee here than over the window's scattered frames. */
static void measure_coalescing(struct geometry_work *work, const struct backing *base, const struct backing *thp,
                               struct effective_page *page)
{
    uint64_t area = area_needed(work, base->page_bytes);
    struct arena_request request = session_arena(work->session, base, area, 0);
    struct verdict verdict;
    struct arena arena;

    /* Transparent huge pages of 512M, as arm64 with 64K pages has them, are rarely worth their memory here. */
    if (thp != NULL && session_allows(work->session, thp, 0, area, &verdict))
        request.backing = thp;
    else
        thp = NULL;
    if (arena_open(&arena, &request, &verdict) != 0) {
        page->verdict = verdict;
        return;
    }
    bool is_contiguous = thp != NULL && verdict.status == STATUS_OK;

    for (size_t offset = 0; thp != NULL && offset < arena.bytes; offset += (size_t)thp->page_bytes)
        (void)mprotect(arena.base + offset, (size_t)base->page_bytes, PROT_READ);
    if (mprotect(arena.base, arena.bytes, PROT_READ | PROT_WRITE) != 0) {
        (void)backing_explain_errno(errno, "making the pages writable again", arena.bytes, &page->verdict);
        arena_close(&arena);
        return;
    }
    arena.backing = *base;
    verdict = (struct verdict){.status = STATUS_OK};
    int64_t knee =
        find_parts_knee(work, &arena, base->page_bytes, (size_t)(area / base->page_bytes), "coalescing", &verdict);

    arena_close(&arena);
    if (knee < 0) {
        page->verdict = verdict;
        return;
    }
    /* Coalesced or not, the page that the TLB was given is a base page. */
    page->entry_bytes = base->page_bytes;
    page->verdict = (struct verdict){.status = STATUS_OK};
    work->result->coalescing_seen =
        work->result->coalescing_seen || knee == 0 || (double)knee > COALESCED_SHARE * (double)work->l1_entries;
    (void)snprintf(work->result->coalescing, sizeof(work->result->coalescing),
                   "%s: knee at %lld base pages; scattered frames: %llu",
                   is_contiguous ? "frames that are contiguous in the guest"
                                 : "frames in the order the kernel gave them",
                   (long long)knee, (unsigned long long)work->l1_entries);
}

static void list_effective_pages(struct geometry_work *work)
{
    work->result->effective_page_count = work->session->backing_count;
    for (size_t index = 0; index < work->session->backing_count; index++) {
        struct effective_page *page = &work->result->effective_pages[index];

        page->backing = work->session->backings[index];
        verdict_set(&page->verdict, STATUS_STOPPED, "the time limit was reached");
    }
}

static bool is_open(const struct effective_page *page)
{
    return page->verdict.status == STATUS_STOPPED || page->verdict.status == STATUS_NOISY;
}

size_t geometry_open_pages(const struct geometry_result *result)
{
    size_t open = 0;

    for (size_t index = 0; index < result->effective_page_count; index++)
        open += is_open(&result->effective_pages[index]) ? 1 : 0;
    return open;
}

/* The kernel zeroes a page before it hands it out: one of 1G takes a tenth of a second of processor time or two, and
 * seconds where the host of a guest first has to give the memory; nothing can interrupt it. Such a page has its turn
 * when everything else is done, and only where the time is likely to last. */
static bool has_to_wait(const struct geometry_work *work, struct effective_page *page)
{
    const struct backing *backing = &page->backing;
    double zero_seconds = ZERO_NS_PER_BYTE * 1e-9 * (double)backing->page_bytes;
    double left = deadline_remaining_seconds(work->session->deadline) * fmin(1, work->cpu_share);

    if (backing->page_bytes <= ZEROED_SOON_BYTES || backing->page_bytes > work->session->memory_bytes ||
        (backing->kind == BACKING_HUGETLB && backing_free_pages("/sys", backing->page_bytes, -1) < 1) ||
        (work->pages_tried && left >= 2 * zero_seconds))
        return false; /* what is not available says so at once */
    if (work->pages_tried)
        verdict_set(&page->verdict, STATUS_NOISY, "CPU contention: zeroing a page of %s would take too long",
                    backing->name);
    return true;
}

int geometry_measure_effective_pages(struct geometry_work *work, struct verdict *verdict)
{
    const struct backing *backings = work->session->backings;
    size_t count = work->session->backing_count;
    const struct backing *thp = NULL;

    if (work->result->effective_page_count == 0)
        list_effective_pages(work);
    for (size_t index = 0; index < count; index++)
        thp = backings[index].kind == BACKING_THP ? &backings[index] : thp;
    geometry_watch_core(work);
    work->pages_left = geometry_open_pages(work->result);
    for (size_t index = 0; index < count; index++) {
        struct effective_page *page = &work->result->effective_pages[index];

        if (!is_open(page) || has_to_wait(work, page))
            continue;
        if (session_must_stop(work->session, verdict)) {
            page->verdict = *verdict;
            return -1;
        }
        if (backings[index].kind == BACKING_BASE)
            measure_coalescing(work, &backings[index], thp, page);
        else
            measure_backing(work, &backings[index], page);
        work->pages_left--;
    }
    work->pages_tried = true;
    return geometry_open_pages(work->result) > 0 ? 1 : 0;
}
