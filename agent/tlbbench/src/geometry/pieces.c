/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the second level hold large pages whole? Some cores keep a large page in one entry of the first level and in
 * pieces in the second. A cycle over twice the first level's pages never hits the first level; with more and more parts
 * of each page in it, it still hits the second one if that holds whole pages, and
 * misses it if not.
 */
#include "geometry/work.h"

enum { PAGES_FACTOR = 2, PLACES_FACTOR = 2, LAST_POINTS = 3, WORD_BYTES = 8 };
#define PARTS_STEP 1.4
/* Of the last points over the first: as for the end of a second level (knee.c). */
#define RISE_MIN 1.25

/* Places in a window: every page once, then the next part of every page. */
struct places {
    const struct window *window;
    size_t pages;
    uint64_t part_bytes;
};

/* Byte offset in a page; pages have lines of their own as far as a base page has lines. */
static uint64_t offset_of(const struct places *places, size_t place)
{
    size_t page = place % places->pages;
    size_t part = place / places->pages;
    uint64_t lines = places->window->base_bytes / CACHE_LINE_BYTES;

    return part * places->part_bytes + (page * CACHE_LINE_STEP + part) % lines * CACHE_LINE_BYTES +
           page / lines * WORD_BYTES;
}

static char *view_place(const void *context, size_t place)
{
    const struct places *places = context;

    return places->window->view + place % places->pages * places->window->stride_bytes + offset_of(places, place);
}

static char *packed_place(const void *context, size_t place)
{
    return ((const struct places *)context)->window->packed + offset_of(context, place);
}

static struct chase link_places(void *context, bool packed, size_t count, struct rng *rng, uint32_t *order)
{
    size_t pages = ((const struct places *)context)->pages;

    /* The pages in the same order for every part: each comes again when the first level has long lost it. */
    permutation_fill(order, pages, rng);
    for (size_t step = pages; step < count; step++)
        order[step] = order[step - pages] + (uint32_t)pages;
    return chase_link(packed ? packed_place : view_place, context, order, count);
}

static int sweep_pieces(struct geometry_work *work, struct places *places, size_t places_max, struct verdict *verdict)
{
    struct sweep_source source = {.link = link_places, .context = places};

    geometry_start_sweep(work);
    struct sweep_effort effort = geometry_effort(work, 1);

    effort.control = true;
    for (double parts = 1; parts * (double)places->pages <= (double)places_max; parts *= PARTS_STEP)
        sweep_add_point(work->sweep, (uint64_t)llround(parts) * places->pages);
    return sweep_measure(work->sweep, &source, &effort, work->session, verdict);
}

bool geometry_second_level_has_pieces(struct geometry_work *work, const struct backing *backing,
                                      const struct geometry_first_level *first)
{
    const struct tlb_level *base = geometry_find_measured(work->result, 2, work->session->base_page_bytes);
    struct verdict verdict = {.status = STATUS_OK};
    struct knee_point points[SWEEP_POINTS_MAX];
    struct window window;

    if (base == NULL)
        return false;
    size_t pages = PAGES_FACTOR * (size_t)first->entries;
    size_t places_max = PLACES_FACTOR * (size_t)base->entries;
    struct places places = {.window = &window, .pages = pages, .part_bytes = backing->page_bytes};

    while (places.part_bytes > work->session->base_page_bytes &&
           backing->page_bytes / places.part_bytes * pages < places_max)
        places.part_bytes /= 2;
    if (places_max > backing->page_bytes / places.part_bytes * pages)
        places_max = (size_t)(backing->page_bytes / places.part_bytes) * pages;
    if (geometry_open_window(work, backing, 1, pages, &window, &verdict) != 0)
        return false;
    int status = window_map(&window, pages, &verdict) == 0 ? sweep_pieces(work, &places, places_max, &verdict) : -1;
    size_t count = status == 0 ? sweep_knee_points(work->sweep, work->l1_hit_ns, points) : 0;
    double last_ns = INFINITY;

    for (size_t index = count > LAST_POINTS ? count - LAST_POINTS : 0; index < count; index++)
        last_ns = fmin(last_ns, points[index].ns);

    window_close(&window);
    return count > LAST_POINTS && last_ns > RISE_MIN * points[0].ns;
}
