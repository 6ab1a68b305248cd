/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"

#include <sys/mman.h>

/* The contents do not matter, only that the pages exist. */
static void fill_segment(char *view, const struct session *session, struct rows_segment *segment)
{
    struct touch_request request = {.base = view,
                                    .bytes = segment->mapped_bytes,
                                    .step = (size_t)session->base_page_bytes,
                                    .writes = true,
                                    .name = segment->backing.name,
                                    .seconds = deadline_remaining_seconds(session->deadline)};

    (void)memory_touch(&request, NULL, &segment->verdict);
}

/* Shared memory gets transparent huge pages only where shmem_enabled says so; what was given is read back. */
static void check_shared_thp(struct rows_segment *segment, const char *view, const struct session *session)
{
    struct smaps_proof proof;

    if (smaps_read(view, segment->mapped_bytes, &proof) != 0 || proof.shmem_huge_bytes < segment->mapped_bytes) {
        verdict_set(&segment->verdict, STATUS_THP_NOT_GRANTED, "shared memory got no huge pages: shmem_enabled is '%s'",
                    session->environment->thp.shmem_enabled);
    }
}

static void open_private_thp(struct rows_segment *segment, const struct session *session, uint64_t taken_bytes)
{
    struct arena_request request = session_arena(session, &segment->backing, segment->bytes, taken_bytes);

    (void)close(segment->fd);
    segment->fd = -1;
    (void)arena_open(&segment->arena, &request, &segment->verdict);
}

/* What the pool, as it was found, holds beyond the segment: nothing else than huge pages can use it meanwhile. */
static uint64_t idle_pool_bytes(const struct session *session, uint64_t page_bytes, uint64_t pages)
{
    const struct pool *pool = environment_pool(session->environment, page_bytes);

    return pool != NULL && pool->free > (int64_t)pages ? ((uint64_t)pool->free - pages) * page_bytes : 0;
}

int rows_segment_open(struct rows_segment *segment, const struct backing *backing, size_t bytes, uint64_t taken_bytes,
                      const struct session *session)
{
    size_t page = (size_t)backing->page_bytes;
    bool is_hugetlb = backing->kind == BACKING_HUGETLB;

    *segment = (struct rows_segment){.backing = *backing, .fd = -1, .bytes = bytes};
    segment->mapped_bytes = (bytes + page - 1) / page * page;
    uint64_t pages = segment->mapped_bytes / page;
    uint64_t pool_bytes = session_pool_bytes(session, backing, &segment->verdict);

    if (pool_bytes < segment->mapped_bytes) {
        if (pool_bytes > 0)
            backing_explain_pool(page, pages, (int64_t)(pool_bytes / page), &segment->verdict);
        return 0;
    }
    if (!session_allows(session, backing, taken_bytes, segment->mapped_bytes, &segment->verdict))
        return 0;
    segment->idle_pool_bytes = is_hugetlb ? idle_pool_bytes(session, page, pages) : 0;
    segment->fd = backing_memfd(is_hugetlb ? page : 0, segment->mapped_bytes, &segment->verdict);
    if (segment->fd < 0)
        return 0;
    char *view = rows_segment_map(segment, &segment->verdict);

    if (view == NULL)
        return 0;
    backing_prefer(view, segment->mapped_bytes, session->numa_node);
    fill_segment(view, session, segment);
    if (segment->verdict.status == STATUS_OK && backing->kind == BACKING_THP)
        check_shared_thp(segment, view, session);
    rows_segment_unmap(segment, view);
    if (segment->verdict.status == STATUS_THP_NOT_GRANTED)
        open_private_thp(segment, session, taken_bytes);
    return segment->verdict.status == STATUS_STOPPED ? -1 : 0;
}

void rows_segment_close(struct rows_segment *segment)
{
    if (segment->fd >= 0)
        (void)close(segment->fd);
    arena_close(&segment->arena);
    segment->fd = -1;
}

char *rows_segment_map(const struct rows_segment *segment, struct verdict *verdict)
{
    if (segment->fd < 0)
        return segment->arena.base;
    char *view = backing_map_file(segment->fd, segment->mapped_bytes, segment->backing.page_bytes, verdict);

    if (view != NULL && segment->backing.kind != BACKING_HUGETLB) {
        (void)madvise(view, segment->mapped_bytes,
                      segment->backing.kind == BACKING_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    return view;
}

void rows_segment_unmap(const struct rows_segment *segment, char *view)
{
    if (segment->fd >= 0 && view != NULL)
        (void)munmap(view, segment->mapped_bytes);
}
