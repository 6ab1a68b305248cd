/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/backing.h"

#include "base/text.h"
#include "base/tree.h"
#include "machine/processes.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* From linux/memfd.h and linux/mman.h, which old headers lack: log2 of the page size in the flag bits 26 to 31. */
#define HUGE_SIZE_SHIFT 26
#define MEMFD_CLOSE_ON_EXEC 1u
#define MEMFD_HUGE_PAGES 4u
#define MEMFD_NO_EXEC 8u        /* MFD_NOEXEC_SEAL: hardened kernels refuse memfds without it */
#define NUMA_POLICY_PREFERRED 1 /* MPOL_PREFERRED of linux/mempolicy.h */

int backing_explain_errno(int error, const char *doing, uint64_t bytes, struct verdict *verdict)
{
    struct rlimit limit;
    uint64_t mapped = process_own_status_bytes("VmSize");

    if (error == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        mapped != UINT64_MAX && mapped + bytes > limit.rlim_cur)
        return FAILED(verdict, STATUS_ADDRESS_SPACE_LIMIT, "%s: RLIMIT_AS of %" PRIu64 " bytes is reached", doing,
                      (uint64_t)limit.rlim_cur);
    return FAILED(verdict,
                  error == ENOMEM                                                                ? STATUS_NO_MEMORY
                  : error == EPERM || error == EACCES                                            ? STATUS_NOT_PERMITTED
                  : error == EINVAL || error == ENOSYS || error == ENODEV || error == EOPNOTSUPP ? STATUS_UNSUPPORTED
                                                                                                 : STATUS_FAILED,
                  "%s: %s", doing, strerror(error));
}

static char *no_mapping(const char *doing, uint64_t bytes, struct verdict *verdict)
{
    (void)backing_explain_errno(errno, doing, bytes, verdict);
    return NULL;
}

int64_t backing_free_pages(const char *sysfs, uint64_t page_bytes, int node)
{
    int64_t free_pages = pool_read(sysfs, -1, page_bytes, "free_hugepages");
    int64_t promised = pool_read(sysfs, -1, page_bytes, "resv_hugepages");

    if (free_pages < 0)
        return -1;
    free_pages -= promised > free_pages ? free_pages : promised > 0 ? promised : 0;
    if (node < 0)
        return free_pages;
    int64_t on_node = pool_read(sysfs, node, page_bytes, "free_hugepages");

    return on_node < free_pages ? on_node : free_pages;
}

void backing_explain_pool(uint64_t page_bytes, uint64_t needed, int64_t free_pages, struct verdict *verdict)
{
    char text[PAGE_TEXT_BYTES];

    verdict_set(verdict, STATUS_NO_FREE_HUGEPAGES, "%" PRIu64 " free %s of %s needed, the pool has %" PRId64, needed,
                needed == 1 ? "page" : "pages", page_text(page_bytes, text), free_pages);
}

static void explain_hugetlb(int error, uint64_t page_bytes, uint64_t bytes, struct verdict *verdict)
{
    int64_t free_pages = backing_free_pages("/sys", page_bytes, -1);
    uint64_t needed = bytes / page_bytes;

    if (error == ENOMEM && free_pages >= 0 && (uint64_t)free_pages < needed)
        backing_explain_pool(page_bytes, needed, free_pages, verdict);
    else
        (void)backing_explain_errno(error, "mapping huge pages", bytes, verdict);
}

static unsigned size_flag(uint64_t page_bytes)
{
    return (unsigned)__builtin_ctzll(page_bytes) << HUGE_SIZE_SHIFT;
}

int backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict)
{
    unsigned flags = MEMFD_CLOSE_ON_EXEC | (page_bytes > 0 ? MEMFD_HUGE_PAGES | size_flag(page_bytes) : 0);
    int fd = (int)syscall(SYS_memfd_create, "tlbbench", flags | MEMFD_NO_EXEC);

    if (fd < 0 && errno == EINVAL) /* kernels before 6.3 do not know that flag */
        fd = (int)syscall(SYS_memfd_create, "tlbbench", flags);
    if (fd < 0)
        return backing_explain_errno(errno, "memfd_create", bytes, verdict);
    if (ftruncate(fd, (off_t)bytes) != 0)
        (void)backing_explain_errno(errno, "sizing the shared segment", bytes, verdict);
    else if (page_bytes > 0 && backing_free_pages("/sys", page_bytes, -1) == 0)
        explain_hugetlb(ENOMEM, page_bytes, bytes, verdict);
    else
        return fd;
    (void)close(fd);
    return -1;
}

/* Maps `bytes` at a multiple of `alignment` and gives the rest back. */
static char *map_aligned(size_t bytes, uint64_t alignment, int protection, int flags)
{
    size_t slack = (size_t)alignment;
    char *wide = mmap(NULL, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (wide == MAP_FAILED)
        return NULL;
    char *base = wide + (slack - (uintptr_t)wide % slack) % slack;

    if (base > wide)
        (void)munmap(wide, (size_t)(base - wide));
    if (wide + slack > base)
        (void)munmap(base + bytes, (size_t)(wide + slack - base));
    return base;
}

char *backing_reserve_range(size_t bytes, uint64_t alignment, struct verdict *verdict)
{
    char *base = map_aligned(bytes, alignment, PROT_NONE, MAP_NORESERVE);

    return base == NULL ? no_mapping("reserving addresses", bytes + alignment, verdict) : base;
}

char *backing_map_zeroes(size_t bytes)
{
    char *base = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return NULL;
    (void)madvise(base, bytes, MADV_NOHUGEPAGE); /* there is a huge zero page, too */
    return base;
}

char *backing_map_file(int fd, size_t bytes, uint64_t alignment, struct verdict *verdict)
{
    /* A page table of the base pages covers at most this much on every architecture here. */
    uint64_t table_bytes = 512 * MIB;
    char *range = NULL;

    if (alignment > 0)
        range = backing_reserve_range(bytes, alignment > table_bytes ? alignment : table_bytes, verdict);
    if (alignment > 0 && range == NULL)
        return NULL;
    char *base = mmap(range, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (range != NULL ? MAP_FIXED : 0), fd, 0);

    if (base != MAP_FAILED)
        return base;
    (void)no_mapping("mapping the shared segment", bytes, verdict);
    if (range != NULL)
        (void)munmap(range, bytes);
    return NULL;
}

void backing_prefer(char *base, size_t bytes, int node)
{
    enum { MASK_WORDS = 16, WORD_BITS = 64 };
    unsigned long mask[MASK_WORDS] = {0};

    if (node < 0 || node >= MASK_WORDS * WORD_BITS)
        return;
    mask[node / WORD_BITS] = 1ul << (node % WORD_BITS);
    (void)syscall(SYS_mbind, base, bytes, NUMA_POLICY_PREFERRED, mask, (unsigned long)MASK_WORDS * WORD_BITS, 0u);
}

double backing_share_on_node(char *base, size_t bytes, int node)
{
    enum { SAMPLE = 256 };
    void *pages[SAMPLE];
    int places[SAMPLE];
    size_t step = bytes / SAMPLE + 1;
    unsigned long count = 0;
    unsigned known = 0;
    unsigned here = 0;

    for (size_t offset = 0; offset < bytes && count < SAMPLE; offset += step)
        pages[count++] = base + offset;
    if (syscall(SYS_move_pages, 0, count, pages, NULL, places, 0) != 0)
        return NAN;
    for (unsigned long index = 0; index < count; index++) {
        known += places[index] >= 0 ? 1 : 0; /* else an errno: a page that is not there, or of another kind */
        here += places[index] == node ? 1 : 0;
    }
    return known == 0 ? NAN : (double)here / known;
}

/* The kernel gives the largest size that is enabled and fits into the mapping: so every page becomes a mapping of its
 * own. They would be merged if they were alike; every other one is left out of core dumps. */
static void split_mapping(char *base, size_t bytes, size_t page)
{
    for (size_t offset = 0; offset < bytes; offset += 2 * page)
        (void)madvise(base + offset, page, MADV_DONTDUMP);
}

char *backing_map(const struct backing *backing, size_t bytes, struct verdict *verdict)
{
    if (backing->kind == BACKING_HUGETLB) {
        char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)size_flag(backing->page_bytes), -1, 0);

        if (base == MAP_FAILED) {
            explain_hugetlb(errno, backing->page_bytes, bytes, verdict);
            return NULL;
        }
        return base;
    }
    bool is_transparent = backing->kind != BACKING_BASE;
    char *base = map_aligned(bytes, backing->page_bytes, PROT_READ | PROT_WRITE, 0);

    if (base == NULL)
        return no_mapping("mapping memory", bytes + backing->page_bytes, verdict);
    if (madvise(base, bytes, is_transparent ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 && is_transparent) {
        (void)no_mapping("asking for transparent huge pages", bytes, verdict);
        (void)munmap(base, bytes);
        return NULL;
    }
    if (backing->kind == BACKING_MULTI_SIZE_THP)
        split_mapping(base, bytes, (size_t)backing->page_bytes);
    return base;
}

int64_t backing_multi_size_given(const char *sysfs, uint64_t page_bytes)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/kernel/mm/transparent_hugepage/hugepages-%" PRIu64 "kB/stats/anon_fault_alloc",
                   page_bytes / 1024);
    return tree_read_number(sysfs, path);
}

const char *const BACKING_KIND_NAMES[] = {[BACKING_BASE] = "base",
                                          [BACKING_THP] = "thp",
                                          [BACKING_HUGETLB] = "hugetlb",
                                          [BACKING_MULTI_SIZE_THP] = "multi_size_thp"};
