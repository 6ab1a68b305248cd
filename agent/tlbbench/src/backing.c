/* SPDX-License-Identifier: Apache-2.0 */
#include "backing.h"

#include "environment_parts.h"
#include "signals.h"
#include "timing.h"
#include "tlb.h"
#include "tree.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/memfd.h and linux/mman.h, which old headers lack: log2 of the page size in the flag bits 26 to 31. */
#define HUGE_SIZE_SHIFT 26
#define MEMFD_CLOSE_ON_EXEC 1u
#define MEMFD_HUGE_PAGES 4u
#define NUMA_POLICY_BIND 2 /* MPOL_BIND of linux/mempolicy.h */

enum {
    TOUCH_CHUNK_BYTES = 64 << 20, /* how long a stop request waits at most: some tens of milliseconds */
    STATUS_BYTES = 8192,          /* of /proc/self/status, which is below 2 KiB */
};

void verdict_set(struct verdict *verdict, enum status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    verdict->status = status;
    (void)vsnprintf(verdict->reason, sizeof(verdict->reason), format, arguments);
    va_end(arguments);
}

uint64_t backing_status_bytes(const char *field)
{
    char text[STATUS_BYTES];

    if (tree_read("", "/proc/self/status", text, sizeof(text)) < 0) {
        return UINT64_MAX;
    }
    const int64_t bytes = colon_kilobytes(text, field);

    return bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
}

void backing_explain_errno(int error, const char *doing, uint64_t bytes, struct verdict *verdict)
{
    struct rlimit limit;
    const uint64_t mapped = backing_status_bytes("VmSize");

    if (error == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        mapped != UINT64_MAX && mapped + bytes > limit.rlim_cur) {
        verdict_set(verdict, STATUS_ADDRESS_SPACE_LIMIT, "%s: RLIMIT_AS of %llu bytes is reached", doing,
                    (unsigned long long)limit.rlim_cur);
        return;
    }
    verdict_set(verdict,
                error == ENOMEM                                                                ? STATUS_NO_MEMORY
                : error == EPERM || error == EACCES                                            ? STATUS_NOT_PERMITTED
                : error == EINVAL || error == ENOSYS || error == ENODEV || error == EOPNOTSUPP ? STATUS_UNSUPPORTED
                                                                                               : STATUS_FAILED,
                "%s: %s", doing, strerror(error));
}

int64_t backing_free_pages(uint64_t page_bytes, int node)
{
    char path[128];

    if (node < 0) {
        (void)snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%llukB/free_hugepages",
                       (unsigned long long)(page_bytes / 1024));
    } else {
        (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/hugepages/hugepages-%llukB/free_hugepages",
                       node, (unsigned long long)(page_bytes / 1024));
    }
    return tree_read_number("", path);
}

void backing_explain_pool(uint64_t page_bytes, uint64_t needed, int64_t free_pages, struct verdict *verdict)
{
    char text[PAGE_TEXT_BYTES];

    verdict_set(verdict, STATUS_NO_FREE_HUGEPAGES, "%llu free %s of %s needed, the pool has %lld",
                (unsigned long long)needed, needed == 1 ? "page" : "pages", page_text(page_bytes, text),
                (long long)free_pages);
}

static void explain_hugetlb(int error, uint64_t page_bytes, uint64_t bytes, struct verdict *verdict)
{
    const int64_t free_pages = backing_free_pages(page_bytes, -1);
    const uint64_t needed = bytes / page_bytes;

    if (error == ENOMEM && free_pages >= 0 && (uint64_t)free_pages < needed) {
        backing_explain_pool(page_bytes, needed, free_pages, verdict);
        return;
    }
    backing_explain_errno(error, "mapping huge pages", bytes, verdict);
}

static unsigned size_flag(uint64_t page_bytes)
{
    return (unsigned)__builtin_ctzll(page_bytes) << HUGE_SIZE_SHIFT;
}

int backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict)
{
    const unsigned flags = MEMFD_CLOSE_ON_EXEC | (page_bytes > 0 ? MEMFD_HUGE_PAGES | size_flag(page_bytes) : 0);
    const int fd = (int)syscall(SYS_memfd_create, "tlbbench", flags);

    if (fd < 0) {
        backing_explain_errno(errno, "memfd_create", bytes, verdict);
        return -1;
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        backing_explain_errno(errno, "sizing the shared segment", bytes, verdict);
        (void)close(fd);
        return -1;
    }
    if (page_bytes > 0 && backing_free_pages(page_bytes, -1) == 0) {
        explain_hugetlb(ENOMEM, page_bytes, bytes, verdict);
        (void)close(fd);
        return -1;
    }
    return fd;
}

char *backing_map_file(int fd, size_t bytes, struct verdict *verdict)
{
    char *const base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED) {
        backing_explain_errno(errno, "mapping the shared segment", bytes, verdict);
        return NULL;
    }
    return base;
}

/* Maps `bytes` at a multiple of `alignment` and gives the rest back. */
static char *map_aligned(size_t bytes, uint64_t alignment, int protection, int flags)
{
    const size_t slack = (size_t)alignment;
    char *const wide = mmap(NULL, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (wide == MAP_FAILED) {
        return NULL;
    }
    char *const base = wide + (slack - (uintptr_t)wide % slack) % slack;

    if (base > wide) {
        (void)munmap(wide, (size_t)(base - wide));
    }
    if (wide + slack > base) {
        (void)munmap(base + bytes, (size_t)(wide + slack - base));
    }
    return base;
}

char *backing_reserve_range(size_t bytes, uint64_t alignment, struct verdict *verdict)
{
    char *const base = map_aligned(bytes, alignment, PROT_NONE, MAP_NORESERVE);

    if (base == NULL) {
        backing_explain_errno(errno, "reserving addresses", bytes + alignment, verdict);
    }
    return base;
}

char *backing_map_file_aligned(int fd, size_t bytes, uint64_t alignment, struct verdict *verdict)
{
    /* A page table of the base pages covers at most this much on every architecture here. */
    const uint64_t table_bytes = 512ull << 20;
    char *const range = backing_reserve_range(bytes, alignment > table_bytes ? alignment : table_bytes, verdict);

    if (range == NULL) {
        return NULL;
    }
    char *const base = mmap(range, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);

    if (base == MAP_FAILED) {
        backing_explain_errno(errno, "mapping the shared segment", bytes, verdict);
        (void)munmap(range, bytes);
        return NULL;
    }
    return base;
}

/* --- arenas --------------------------------------------------------------------------------------------------- */

static double granted_fraction(const struct arena *arena)
{
    struct backing_proof proof;

    if (backing_read_proof(arena->base, arena->bytes, &proof) != 0) {
        return NAN;
    }
    switch (arena->backing.kind) {
    case BACKING_BASE:
        return proof.rss_bytes == 0 ? NAN : 1.0 - (double)proof.anon_huge_bytes / (double)arena->bytes;
    case BACKING_THP:
        return (double)proof.anon_huge_bytes / (double)arena->bytes;
    case BACKING_HUGETLB:
        return proof.kernel_page_bytes == arena->backing.page_bytes ? (double)proof.hugetlb_bytes / (double)arena->bytes
                                                                    : 0;
    }
    return NAN;
}

void backing_bind(char *base, size_t bytes, int node)
{
    enum { MASK_WORDS = 16, WORD_BITS = 64 };
    unsigned long mask[MASK_WORDS] = {0};

    if (node < 0 || node >= MASK_WORDS * WORD_BITS) {
        return;
    }
    mask[node / WORD_BITS] = 1ul << (node % WORD_BITS);
    (void)syscall(SYS_mbind, base, bytes, NUMA_POLICY_BIND, mask, (unsigned long)MASK_WORDS * WORD_BITS, 0u);
}

struct touch {
    char *base;
    size_t bytes;
    size_t step;
};

/* One non-zero word a base page: zero pages could be shared or compressed by a hypervisor. */
static void touch_pages(void *context)
{
    const struct touch *const touch = context;

    for (size_t offset = 0; offset < touch->bytes; offset += touch->step) {
        *(volatile uint64_t *)(touch->base + offset) = offset + 1;
    }
}

/* Gives back what lies behind the first `bytes`, rounded up to whole pages. */
static void cut_arena(struct arena *arena, size_t bytes)
{
    const size_t page = (size_t)arena->backing.page_bytes;
    const size_t kept = (bytes + page - 1) / page * page;

    if (kept < arena->bytes) {
        (void)munmap(arena->base + kept, arena->mapped_bytes - kept);
        arena->bytes = kept;
        arena->mapped_bytes = kept;
    }
}

/* Stops touching when `seconds` are over, and cuts the arena there. */
static int touch_arena(struct arena *arena, double seconds, struct verdict *verdict)
{
    const uint64_t start_ns = timing_now_ns();

    for (size_t done = 0; done < arena->bytes; done += TOUCH_CHUNK_BYTES) {
        const size_t left = arena->bytes - done;
        struct touch touch = {arena->base + done, left < TOUCH_CHUNK_BYTES ? left : TOUCH_CHUNK_BYTES,
                              (size_t)sysconf(_SC_PAGESIZE)};

        if (signals_stop_requested()) {
            verdict_set(verdict, STATUS_STOPPED, "stopped by signal %d", signals_stop_signal());
            return -1;
        }
        if (signals_guard_bus(touch_pages, &touch) != 0) {
            verdict_set(verdict, STATUS_SIGBUS, "SIGBUS: a promised page of %s could not be had", arena->backing.name);
            return -1;
        }
        arena->touch_seconds = (double)(timing_now_ns() - start_ns) / 1e9;
        if (arena->touch_seconds > seconds) {
            cut_arena(arena, done + touch.bytes);
        }
    }
    return 0;
}

static char *map_backing(const struct backing *backing, size_t bytes, struct verdict *verdict)
{
    if (backing->kind == BACKING_HUGETLB) {
        char *const base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)size_flag(backing->page_bytes), -1, 0);

        if (base == MAP_FAILED) {
            explain_hugetlb(errno, backing->page_bytes, bytes, verdict);
            return NULL;
        }
        return base;
    }
    char *const base = map_aligned(bytes, backing->page_bytes, PROT_READ | PROT_WRITE, 0);

    if (base == NULL) {
        backing_explain_errno(errno, "mapping memory", bytes + backing->page_bytes, verdict);
        return NULL;
    }
    if (madvise(base, bytes, backing->kind == BACKING_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 &&
        backing->kind == BACKING_THP) {
        backing_explain_errno(errno, "asking for transparent huge pages", bytes, verdict);
        (void)munmap(base, bytes);
        return NULL;
    }
    return base;
}

int arena_open(struct arena *arena, const struct backing *backing, size_t bytes, int node, struct verdict *verdict)
{
    return arena_open_within(arena, backing, bytes, node, INFINITY, verdict);
}

static void start_arena(struct arena *arena, const struct backing *backing, size_t bytes, struct verdict *verdict)
{
    const size_t page = (size_t)backing->page_bytes;

    *arena = (struct arena){.backing = *backing, .granted_fraction = NAN};
    *verdict = (struct verdict){.status = STATUS_OK};
    arena->bytes = (bytes + page - 1) / page * page;
    arena->mapped_bytes = arena->bytes;
}

/* Touches what was mapped and proves it. */
static int fill_arena(struct arena *arena, int node, double seconds, struct verdict *verdict)
{
    arena->base = arena->mapped;
    backing_bind(arena->base, arena->bytes, node);
    if (touch_arena(arena, seconds, verdict) != 0) {
        arena_close(arena);
        return -1;
    }
    arena->granted_fraction = granted_fraction(arena);
    if (arena->backing.kind == BACKING_THP && arena->granted_fraction < 1.0) {
        verdict_set(verdict, STATUS_THP_NOT_GRANTED, "the kernel gave huge pages for %.0f %% of the mapping",
                    100 * arena->granted_fraction);
    }
    return 0;
}

int arena_open_within(struct arena *arena, const struct backing *backing, size_t bytes, int node, double seconds,
                      struct verdict *verdict)
{
    start_arena(arena, backing, bytes, verdict);
    arena->mapped = map_backing(backing, arena->bytes, verdict);
    return arena->mapped == NULL ? -1 : fill_arena(arena, node, seconds, verdict);
}

int arena_open_file(struct arena *arena, const struct backing *backing, int fd, size_t bytes, int node,
                    struct verdict *verdict)
{
    start_arena(arena, backing, bytes, verdict);
    arena->mapped = backing_map_file(fd, arena->bytes, verdict);
    return arena->mapped == NULL ? -1 : fill_arena(arena, node, INFINITY, verdict);
}

void arena_close(struct arena *arena)
{
    if (arena->mapped != NULL) {
        (void)munmap(arena->mapped, arena->mapped_bytes);
    }
    arena->mapped = NULL;
    arena->base = NULL;
}
