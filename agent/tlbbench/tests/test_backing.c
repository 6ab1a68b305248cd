/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, its proof, its limits, and what happens when a page is not there. */
#include "base/clock.h"
#include "base/rng.h"
#include "base/signals.h"
#include "base/verdict.h"
#include "harness.h"
#include "machine/environment.h"
#include "machine/processes.h"
#include "memory/arena.h"
#include "memory/backing.h"
#include "rows/parts.h"
#include "rows/result.h"
#include "scatter/scatter.h"
#include "timing/cpus.h"
#include "timing/session.h"
#include "timing/window.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char SMAPS[] = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n"
                            "Size:               4096 kB\n"
                            "KernelPageSize:        4 kB\n"
                            "Rss:                3000 kB\n"
                            "AnonHugePages:      2048 kB\n"
                            "Private_Hugetlb:       0 kB\n"
                            "VmFlags: rd wr mr mw me ac sd hg \n"
                            "7f0000400000-7f0000800000 rw-s 00000000 00:10 77 /memfd:x (deleted)\n"
                            "KernelPageSize:     2048 kB\n"
                            "Rss:                   0 kB\n"
                            "ShmemPmdMapped:       64 kB\n"
                            "Shared_Hugetlb:     4096 kB\n";

static struct smaps_proof parse(uint64_t start, uint64_t end)
{
    struct smaps_parser parser = {.start = start, .end = end};
    char text[sizeof(SMAPS)];
    char *rest = NULL;

    memcpy(text, SMAPS, sizeof(SMAPS));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        smaps_parse_line(&parser, line);
    return parser.proof;
}

static void smaps_of_a_range(struct harness *h)
{
    struct smaps_proof first = parse(0x7f0000000000, 0x7f0000400000);
    struct smaps_proof second = parse(0x7f0000400000, 0x7f0000800000);
    struct smaps_proof none = parse(0x1000, 0x2000);

    CHECK_U64(first.anon_huge_bytes, 2 * MIB);
    CHECK_U64(first.rss_bytes, 3000 * 1024);
    CHECK_U64(first.kernel_page_bytes, 4096);
    CHECK_U64(first.hugetlb_bytes, 0);
    CHECK_U64(second.hugetlb_bytes, 4 * MIB);
    CHECK_U64(second.shmem_huge_bytes, 64 * 1024);
    CHECK_U64(second.kernel_page_bytes, 2 * MIB);
    CHECK_U64(none.rss_bytes + none.anon_huge_bytes + none.hugetlb_bytes, 0);
}

static struct arena_request request_arena(const struct backing *backing, uint64_t bytes)
{
    return (struct arena_request){
        .backing = backing, .bytes = bytes, .node = -1, .seconds = INFINITY, .budget_bytes = UINT64_MAX};
}

/* Whatever a page size rounds it up to: 4 MiB of transparent huge pages of 512M are 512 MiB. */
static void no_arena_passes_its_budget(struct harness *h)
{
    struct backing huge = {.kind = BACKING_THP, .page_bytes = 512 * MIB, .name = "THP"};
    struct backing base = {.kind = BACKING_BASE, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), .name = "base"};
    struct arena_request rounded = request_arena(&huge, 4 * MIB);
    struct arena_request beside = request_arena(&base, 4 * MIB);
    struct verdict verdict;
    struct arena arena;

    rounded.budget_bytes = 511 * MIB;
    CHECK_I64(arena_open(&arena, &rounded, &verdict), -1);
    CHECK(verdict.status == STATUS_MEMORY_LIMIT && arena.base == NULL);
    beside.budget_bytes = 6 * MIB;
    beside.mapped_bytes = 3 * MIB;
    CHECK_I64(arena_open(&arena, &beside, &verdict), -1);
    CHECK(verdict.status == STATUS_MEMORY_LIMIT && strstr(verdict.reason, "of which 3 MiB are mapped") != NULL);
    beside.mapped_bytes = 2 * MIB;
    CHECK_I64(arena_open(&arena, &beside, &verdict), 0);
    arena_close(&arena);
    beside.bytes = UINT64_MAX - 1;
    CHECK_I64(arena_open(&arena, &beside, &verdict), -1);
}

/* Memory is preferred from a node, so the kernel gives it from elsewhere where the node is full, or is not there. */
static void memory_of_another_node_is_refused(struct harness *h)
{
    struct backing base = {.kind = BACKING_BASE, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), .name = "base"};
    struct arena_request request = request_arena(&base, 4 * MIB);
    struct verdict verdict;
    struct arena arena;

    CHECK_I64(arena_open(&arena, &request, &verdict), 0);
    double here = backing_share_on_node(arena.base, arena.bytes, 0);

    arena_close(&arena);
    if (isnan(here)) {
        harness_skip(h, "move_pages(2) does not tell where pages lie");
        return;
    }
    request.node = 63;
    CHECK_I64(arena_open(&arena, &request, &verdict), -1);
    CHECK(verdict.status == STATUS_NO_MEMORY && strstr(verdict.reason, "NUMA node 63 has no room") != NULL);
}

static void base_pages_are_proved(struct harness *h)
{
    struct backing backing = {.kind = BACKING_BASE, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), .name = "base"};
    struct verdict verdict;
    struct arena arena;

    struct arena_request request = request_arena(&backing, 4 * MIB);

    if (arena_open(&arena, &request, &verdict) != 0) {
        harness_fail(h, __FILE__, __LINE__, "%s", verdict.reason);
        return;
    }
    CHECK(verdict.status == STATUS_OK);
    if (isnan(arena.granted_fraction))
        harness_skip(h, "/proc/self/smaps does not show this mapping (an emulator?)");
    else
        CHECK(arena.granted_fraction == 1);
    CHECK((uintptr_t)arena.base % backing.page_bytes == 0);
    arena_close(&arena);
    CHECK(arena.base == NULL);
}

static void stop_and_touch(void *context)
{
    *(volatile char *)context = 1;
}

/* A page behind the end of its file is the same to a program as a huge page that the kernel cannot find. */
/* No time at all: an arena fails, or the first piece is touched and nothing is left mapped behind it. */
static void touching_stops_in_time(struct harness *h)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct backing backing = {.kind = BACKING_BASE, .page_bytes = page, .name = "base"};
    struct verdict verdict;
    struct arena arena;

    struct arena_request request = request_arena(&backing, 256 * MIB);

    struct session session = {.deadline = deadline_after(0), .numa_node = -1, .memory_bytes = UINT64_MAX};
    struct arena_request of_section = session_arena(&session, &backing, 256 * MIB, 0);

    CHECK_I64(arena_open(&arena, &of_section, &verdict), -1);
    CHECK(verdict.status == STATUS_STOPPED && arena.base == NULL);
    request.seconds = 0;
    request.may_be_cut = true;
    CHECK_I64(arena_open(&arena, &request, &verdict), 0);
    CHECK_I64(verdict.status, STATUS_OK);
    CHECK(arena.bytes > 0 && arena.bytes < 256 * MIB && arena.bytes % page == 0);
    CHECK_U64(*(uint64_t *)(arena.base + arena.bytes - page), (arena.bytes - page) % (64 * MIB) + 1);
    CHECK(arena.granted_fraction == 1);
    arena_close(&arena);
}

/* The kernel lets a process send itself a signal with any si_code. */
static void send_bus(void *context)
{
    siginfo_t info = {.si_signo = SIGBUS, .si_code = *(const int *)context};

    (void)syscall(SYS_rt_sigqueueinfo, getpid(), SIGBUS, &info);
}

static void a_bus_error_says_why(struct harness *h)
{
#if defined(__x86_64__)
    int poison = BUS_MCEERR_AR;
    int shortage = BUS_ADRERR;

    CHECK_I64(signals_install(), 0);
    CHECK_I64(signals_guard_bus(send_bus, &poison), -1);
    CHECK(strstr(signals_bus_reason(), "damaged") != NULL);
    CHECK_I64(signals_guard_bus(send_bus, &shortage), -1);
    CHECK(strstr(signals_bus_reason(), "not available") != NULL);
#else
    (void)send_bus;
    harness_skip(h, "qemu-user ends a process that sends itself a SIGBUS");
#endif
}

static void sigbus_becomes_a_value(struct harness *h)
{
    struct verdict verdict = {.status = STATUS_OK};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    CHECK(signals_install() == 0);
    int fd = backing_memfd(0, 2 * page, &verdict);
    char *base = backing_map_file(fd, 2 * page, 0, &verdict);

    CHECK(base != NULL);
    CHECK(ftruncate(fd, (off_t)page) == 0);
    CHECK_I64(signals_guard_bus(stop_and_touch, base), 0);
    CHECK_I64(signals_guard_bus(stop_and_touch, base + page), -1);
    CHECK_I64(signals_guard_bus(stop_and_touch, base + page), -1);
    CHECK_I64(signals_guard_bus(stop_and_touch, base), 0);
    (void)munmap(base, 2 * page);
    (void)close(fd);
}

static void unguarded_sigbus_ends_the_process(struct harness *h)
{
    struct verdict verdict = {.status = STATUS_OK};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        int fd = backing_memfd(0, page, &verdict);
        char *base = backing_map_file(fd, page, 0, &verdict);

        (void)signals_install();
        if (base == NULL || ftruncate(fd, 0) != 0)
            _exit(2);
        (void)alarm(10);
        stop_and_touch(base);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 2));
}

static void address_space_limit_is_named(struct harness *h)
{
    struct backing backing = {.kind = BACKING_BASE, .page_bytes = 4096, .name = "4K"};

    if (harness_is_emulated()) {
        harness_skip(h, "qemu-user keeps no RLIMIT_AS for the program that it runs");
        return;
    }
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        uint64_t mapped = process_own_status_bytes("VmSize");
        struct rlimit limit = {mapped + 8 * MIB, mapped + 8 * MIB};
        struct arena_request request = request_arena(&backing, 64 * MIB);
        struct verdict verdict;
        struct arena arena;

        if (mapped == UINT64_MAX || setrlimit(RLIMIT_AS, &limit) != 0 ||
            mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            _exit(77); /* an emulator takes the limit and does not keep it */
        _exit(arena_open(&arena, &request, &verdict) == -1 && verdict.status == STATUS_ADDRESS_SPACE_LIMIT
                  ? 0
                  : (int)verdict.status + 1);
    }
    (void)waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (sizeof(void *) != 8 || (WIFEXITED(status) && WEXITSTATUS(status) == 77)) {
        harness_skip(h, "RLIMIT_AS has no effect here (an emulator?)");
        return;
    }
#if defined(__SANITIZE_ADDRESS__)
    harness_skip(h, "the address sanitizer maps more than any limit allows");
#else
    harness_fail(h, __FILE__, __LINE__, "the child ended with %d", status);
#endif
}

/* The budget of a machine with so much available and this cgroup limit. */
static uint64_t budget(uint64_t max_bytes, uint64_t available, int64_t limit, int64_t current, struct verdict *verdict)
{
    static struct environment environment;

    environment.memory.mem_available_bytes = (int64_t)available;
    environment.cgroup.memory_limit_bytes = limit;
    environment.cgroup.memory_current_bytes = current;
    (void)snprintf(environment.cgroup.memory_limit_name, sizeof(environment.cgroup.memory_limit_name), "memory.high");
    return budget_memory_bytes(&environment, max_bytes, -1, verdict);
}

/* 512 GiB in all say nothing of the node that the memory comes from. */
static void a_full_numa_node_has_a_small_budget(struct harness *h)
{
    static struct environment environment;
    struct verdict verdict;

    environment.memory.mem_available_bytes = (int64_t)(512 * GIB);
    environment.cgroup.memory_limit_bytes = UNKNOWN;
    environment.node_count = 2;
    environment.nodes[0] = (struct numa_node){0, "0-31", (int64_t)(512 * GIB), (int64_t)(300 * GIB), 0};
    environment.nodes[1] =
        (struct numa_node){1, "32-63", (int64_t)(512 * GIB), (int64_t)(40 * MIB), (int64_t)(80 * MIB)};
    CHECK_U64(budget_memory_bytes(&environment, 0, -1, &verdict), 128 * GIB);
    CHECK_U64(budget_memory_bytes(&environment, 0, 1, &verdict), 20 * MIB);
    CHECK(verdict.status == STATUS_OK);
    CHECK_U64(budget_memory_bytes(&environment, GIB, 1, &verdict), 70 * MIB);
    environment.nodes[1].mem_free_bytes = 0;
    (void)budget_memory_bytes(&environment, 0, 1, &verdict);
    CHECK(verdict.status == STATUS_MEMORY_LIMIT && strstr(verdict.reason, "NUMA node 1") != NULL);
    environment.nodes[1].mem_free_bytes = UNKNOWN; /* then the machine's figure is all there is */
    CHECK_U64(budget_memory_bytes(&environment, 0, 1, &verdict), 128 * GIB);
}

static void memory_budgets(struct harness *h)
{
    struct verdict verdict;

    /* A quarter of what is available. */
    CHECK_U64(budget(0, 4096 * MIB, -1, -1, &verdict), 1024 * MIB);
    CHECK(verdict.status == STATUS_OK);
    /* --max-memory is an upper bound, and cannot take what is not there. */
    CHECK_U64(budget(100 * MIB, 4096 * MIB, -1, -1, &verdict), 100 * MIB);
    CHECK_U64(budget(8192 * MIB, 4096 * MIB, -1, -1, &verdict), 3584 * MIB);
    /* The cgroup binds, less a margin for page tables. */
    CHECK_U64(budget(0, 4096 * MIB, (int64_t)(208 * MIB), (int64_t)(40 * MIB), &verdict), 140 * MIB);
    CHECK(verdict.status == STATUS_OK);
    (void)budget(0, 4096 * MIB, (int64_t)(24 * MIB), (int64_t)(10 * MIB), &verdict);
    CHECK(verdict.status == STATUS_CGROUP_LIMIT);
    (void)budget(0, 4096 * MIB, (int64_t)(24 * MIB), (int64_t)(30 * MIB), &verdict);
    CHECK(verdict.status == STATUS_CGROUP_LIMIT);
    (void)budget(0, 32 * MIB, -1, -1, &verdict);
    CHECK(verdict.status == STATUS_MEMORY_LIMIT);
}

/* The packed view and the window must be the same memory, and the cycle must visit every page once. */
static void window_cycles_are_whole(struct harness *h)
{
    enum { PAGES = 700 };
    static const enum window_slots all[] = {WINDOW_SLOTS_WORDS, WINDOW_SLOTS_SHARED, WINDOW_SLOTS_LINES};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t order[PAGES];

    for (size_t kind = 0; kind < 3; kind++) {
        struct window_request request = {.page_bytes = page,
                                         .base_bytes = page,
                                         .stride_pages = 3,
                                         .pages_max = PAGES,
                                         .slots = all[kind],
                                         .spread = kind == 2};
        struct verdict verdict = {.status = STATUS_OK};
        struct rng rng = rng_new(4, kind);
        struct window window;

        if (window_open(&window, &request, &verdict) != 0 || window_map(&window, PAGES, &verdict) != 0) {
            harness_fail(h, __FILE__, __LINE__, "%s", verdict.reason);
            return;
        }
        for (unsigned packed = 0; packed < 2; packed++) {
            char *start = packed ? window_link_packed(&window, PAGES, &rng, order)
                                 : window_link_view(&window, PAGES, &rng, order);
            char *position = start;
            unsigned length = 0;

            do {
                position = *(char **)position;
                length++;
            } while (position != start && length <= PAGES);
            CHECK_U64(length, PAGES);
        }
        window_close(&window);
    }
}

/* A segment whose pages vanish while workers touch it. */
static void workers_that_die_are_told(struct harness *h)
{
    static struct environment environment;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct session session = {
        .environment = &environment, .base_page_bytes = page, .memory_bytes = 64 * MIB, .numa_node = -1};
    struct backing backing = {.kind = BACKING_BASE, .page_bytes = page, .name = "base"};

    (void)cpus_get_affinity(&session.cpus);
    session.deadline = deadline_after(60);
    for (unsigned mode = MODE_THREADS; mode <= MODE_PROCESSES; mode++) {
        struct rows_spec spec = {.row_bytes = 128, .workers = 3, .mode = mode, .keys = KEYS_ZIPF, .read = READ_ROW};
        struct row_measurement measurement = {.verdict.status = STATUS_NOISY};
        struct rows_round round;
        struct rows_segment segment;

        CHECK(rows_segment_open(&segment, &backing, 16 * MIB, 48 * MIB, &session) == 0);
        CHECK(segment.verdict.status == STATUS_OK);
        /* Where others have the CPUs, no worker may come to a row in a short time: noise, and no rate of zero. */
        for (double seconds = 0; measurement.verdict.status == STATUS_NOISY && seconds < 2; seconds += seconds + 0.02) {
            measurement = (struct row_measurement){.spec = spec};
            CHECK(workers_run(&segment, seconds, &session, &measurement, &round) == 0);
            CHECK((measurement.verdict.status == STATUS_OK) == (round.rows_per_second > 0));
            CHECK((measurement.verdict.status == STATUS_NOISY) == (isnan(round.rows_per_second) != 0));
        }
        CHECK(measurement.verdict.status == STATUS_OK);
        CHECK(round.rows_per_second > 0 && round.cpu_share > 0 && round.cpu_share <= 1);
        CHECK(round.ns_p50 > 0 && round.ns_p50 <= round.ns_p99);
        CHECK(ftruncate(segment.fd, (off_t)(8 * MIB)) == 0);
        measurement = (struct row_measurement){.spec = spec};
        round.rows_per_second = NAN;
        CHECK(workers_run(&segment, 0.02, &session, &measurement, &round) == 0);
        CHECK(measurement.verdict.status == STATUS_SIGBUS);
        CHECK(isnan(round.rows_per_second));
        rows_segment_close(&segment);
    }
}

static void memory_allowed_is_kept(struct harness *h)
{
    static struct environment environment;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct session session = {
        .environment = &environment, .base_page_bytes = page, .memory_bytes = 64 * MIB, .numa_node = -1};
    struct backing base = {.kind = BACKING_BASE, .page_bytes = page, .name = "base"};
    struct backing huge = {.kind = BACKING_HUGETLB, .page_bytes = 1024 * MIB, .name = "1G"};
    struct verdict verdict = {.status = STATUS_OK};
    struct rows_segment segment;

    CHECK(session_allows(&session, &base, 32 * MIB, 32 * MIB, &verdict) && verdict.status == STATUS_OK);
    CHECK(!session_allows(&session, &base, 32 * MIB, 32 * MIB + page, &verdict));
    CHECK(verdict.status == STATUS_MEMORY_LIMIT);
    CHECK(strcmp(verdict.reason, "32 MiB in base pages exceed the memory budget: 64 MiB, of which 32 MiB are mapped") ==
          0);
    CHECK(!session_allows(&session, &huge, 0, huge.page_bytes, &verdict));
    CHECK(strcmp(verdict.reason, "one 1G page exceeds the memory budget of 64 MiB") == 0);
    CHECK(rows_segment_open(&segment, &base, 16 * MIB, 56 * MIB, &session) == 0);
    CHECK(segment.verdict.status == STATUS_MEMORY_LIMIT && segment.fd < 0);
    rows_segment_close(&segment);
}

static void pools_are_explained(struct harness *h)
{
    struct verdict verdict;

    backing_explain_pool(1024 * MIB, 1, 0, &verdict);
    CHECK(verdict.status == STATUS_NO_FREE_HUGEPAGES);
    CHECK(strcmp(verdict.reason, "1 free page of 1G needed, the pool has 0") == 0);
    backing_explain_pool(2 * MIB, 8, 1, &verdict);
    CHECK(strcmp(verdict.reason, "8 free pages of 2M needed, the pool has 1") == 0);
}

static void break_even(struct harness *h)
{
    struct row_measurement measured[2] = {{.backing = {.kind = BACKING_BASE, .page_bytes = 4096},
                                           .spec.mode = MODE_PROCESSES,
                                           .vm_pte_bytes_per_process = 516 * 1024},
                                          {.backing = {.kind = BACKING_HUGETLB, .page_bytes = 2 * MIB},
                                           .spec.mode = MODE_PROCESSES,
                                           .vm_pte_bytes_per_process = 4096}};
    struct rows_segment segment = {.backing = {.kind = BACKING_HUGETLB, .page_bytes = 2 * MIB, .name = "2M"},
                                   .fd = -1,
                                   .bytes = 255 * MIB,
                                   .mapped_bytes = 256 * MIB,
                                   .idle_pool_bytes = 6 * MIB};
    struct rows_result result = {.measurements = measured, .measurement_count = 2};

    CHECK(rows_break_even_connections(0, 512) == 1);
    CHECK(rows_break_even_connections(511, 512) == 1 && rows_break_even_connections(512, 512) == 2);
    CHECK(rows_find_break_even(&result, &segment, 1, 4096) == 0 && result.break_even_count == 1);
    CHECK(result.break_evens[0].saved_bytes_per_connection == 512 * 1024);
    CHECK(result.break_evens[0].rounding_bytes == MIB && result.break_evens[0].idle_pool_bytes == 6 * MIB);
    CHECK(result.break_evens[0].connections == 15); /* 14 save exactly the 7 MiB that are held */
    CHECK(result.break_evens[0].connections_per_idle_page == 4);
    free(result.break_evens);
    result.break_evens = NULL;
    result.break_even_count = 0;
    measured[1].vm_pte_bytes_per_process = UINT64_MAX;
    CHECK(rows_find_break_even(&result, &segment, 1, 4096) == 0);
    CHECK(result.break_evens[0].connections == -1 && strncmp(result.break_evens[0].text, "unknown", 7) == 0);
    free(result.break_evens);
}

static void row_buckets(struct harness *h)
{
    for (double ns = 0.5; ns < 1e8; ns *= 1.7) {
        double middle = rows_bucket_ns(rows_bucket(ns));

        CHECK(middle / ns > 0.97 && middle / ns < 1.03);
    }
    CHECK_U64(rows_bucket(0), 0);
    CHECK(rows_bucket(1e300) < ROWS_BUCKETS);
    CHECK_U64(rows_count(136 * 1000, 128), 1000);
}

static void scatter_crossings(struct harness *h)
{
    const struct scatter_point base[] = {{4, 1, .01}, {8, 1, .01}, {16, 1, .01}, {32, 1, .01}, {64, 2, .01}};
    const struct scatter_point loses[] = {{4, 1, .01}, {8, 1, .01}, {16, 1.5, .01}, {32, 2, .01}, {64, 3, .01}};
    const struct scatter_point ties[] = {{4, 1, .01}, {8, 1.3, .01}, {16, 1.01, .01}, {32, 1.02, .01}, {64, 2, .01}};
    const struct scatter_point noisy[] = {{4, 1, .5}, {8, 1.3, .5}, {16, 1.3, .5}, {32, 1.2, .5}, {64, 2, .5}};

    /* Two points in a row, each by less than a core cycle: seen at 16 lines of a core with a busy SMT sibling. */
    const struct scatter_point near[] = {{4, 1, .01}, {8, 1.1, .01}, {16, 1.2, .01}, {32, 1.1, .01}, {64, 2, .01}};

    CHECK_I64(scatter_find_crossing(base, loses, 5), 16);
    CHECK_I64(scatter_find_crossing(base, near, 5), -1);
    CHECK_I64(scatter_find_crossing(base, ties, 5), -1);
    CHECK_I64(scatter_find_crossing(base, noisy, 5), -1);
}

static const struct harness_case CASES[] = {
    {"smaps of a range", smaps_of_a_range},
    {"no arena passes its budget", no_arena_passes_its_budget},
    {"memory of another NUMA node is refused", memory_of_another_node_is_refused},
    {"a full NUMA node has a small budget", a_full_numa_node_has_a_small_budget},
    {"a SIGBUS says why", a_bus_error_says_why},
    {"base pages are proved", base_pages_are_proved},
    {"touching stops in time", touching_stops_in_time},
    {"SIGBUS becomes a value", sigbus_becomes_a_value},
    {"an unguarded SIGBUS ends the process", unguarded_sigbus_ends_the_process},
    {"RLIMIT_AS is named", address_space_limit_is_named},
    {"memory budgets", memory_budgets},
    {"cycles of a window are whole", window_cycles_are_whole},
    {"workers that die are told", workers_that_die_are_told},
    {"the memory allowed is kept", memory_allowed_is_kept},
    {"pools are explained", pools_are_explained},
    {"break-even connections", break_even},
    {"buckets of row times", row_buckets},
    {"crossings of scatter ladders", scatter_crossings},
};

HARNESS_MAIN("backing", CASES)
