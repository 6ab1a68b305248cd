/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated_machine.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "memory/arena.h"
#include "memory/backing.h"
#include "timing/chase.h"
#include "timing/cpus.h"
#include "timing/session.h"
#include "timing/window.h"
#include "tlb_simulator.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE_RANGES_MAX = 4, TIMED_LAPS = 1, LOOKED_ACCESSES_MIN = 256, SIBLING_PAGES = 2000 };

/* Above every address of a process. */
#define SIBLING_PAGES_FROM (1ull << 48)
#define SIBLING_ACCESS_SHARE 0.3
/* Mappings lie in a region where neither programs nor sanitizers have anything. */
#define MAPS_FROM (18ull << 40)
#define MAPS_DRAWN (1u << 24)
#define MAPS_STEP (64ull << 10) /* the largest base page */
#define MAPS_DISTANCE_MAX (32ull << 40)
/* What one probe takes; additions per cycle alone and beside a busy sibling. */
#define PROBE_NS 3000.0
#define WIDTH_ALONE 3.7
#define WIDTH_SHARED 2.4
#define WIDTH_SPREAD 0.02

/* What the next cache level adds to a miss of the first, and an mmap, a link and a flush to a cycle. */
#define L1_MISS_NS 3.0
#define LINK_NS_PER_PAGE 8.0
#define FLUSH_NS 5000.0
/* A cycle over zeroes adds a table's load to each access. */
#define TABLE_NS 1.7

static struct {
    const struct sim_core *core;
    struct sim_conditions conditions;
    struct sim_tlb *tlb;
    struct rng rng;
    double wall_ns, cpu_ns;
    double slice_ns; /* left of the slice */
    double clock;    /* of the core, 1 = its usual one */
    double clock_ns; /* until it jumps */
    bool sibling_busy;
    double spell_ns; /* left of the sibling's spell */
    long switches;
    double walks;
    uint64_t pages;    /* of the cycle that was linked last; 0 = unknown */
    double line_ns;    /* what its data costs beside a hit */
    int cpu, idle_cpu; /* bound; idle, 0 = there is none */
    uint64_t base_page_bytes, pool_pages;
    uintptr_t maps_from;
    const struct sim_pages *large; /* NULL = base pages alone */
    struct large_range {
        uintptr_t start;
        size_t bytes;
        unsigned pages; /* place in the processor's list */
    } ranges[LARGE_RANGES_MAX];
} machine;

void sim_machine_start(const struct sim_core *core, const struct sim_conditions *conditions, uint64_t seed)
{
    struct rng places = rng_new(seed, 78);

    memset(&machine, 0, sizeof(machine));
    machine.core = core;
    machine.conditions = *conditions;
    machine.tlb = sim_tlb_new(&core->processor);
    machine.rng = rng_new(seed, 77);
    machine.maps_from = MAPS_FROM + MAPS_STEP * rng_below(&places, MAPS_DRAWN);
    machine.slice_ns = conditions->run_ns;
    machine.clock = 1;
    machine.base_page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    machine.pool_pages = 4;
}

void sim_machine_set_memory(uint64_t base_page_bytes, uint64_t pool_pages, const struct sim_pages pages[SIM_PAGES_MAX])
{
    machine.large = pages;
    sim_tlb_set_pages(machine.tlb, pages);
    machine.base_page_bytes = base_page_bytes;
    machine.pool_pages = pool_pages;
}

void sim_machine_stop(void)
{
    sim_tlb_free(machine.tlb);
    machine.tlb = NULL;
}

void sim_machine_add_idle_cpu(int cpu)
{
    machine.idle_cpu = cpu;
}

int sim_machine_cpu(void)
{
    return machine.cpu;
}

double sim_machine_walks(void *factor)
{
    return machine.walks * (factor != NULL ? *(const double *)factor : 1);
}

double sim_machine_seconds(void)
{
    return machine.wall_ns / 1e9;
}

static void lose_core(void)
{
    machine.wall_ns += machine.conditions.off_ns;
    machine.slice_ns = machine.conditions.run_ns * (0.3 + 0.7 * rng_unit(&machine.rng));
    machine.switches++;
    sim_tlb_flush(machine.tlb);
}

static double draw_spell(double mean_ns)
{
    return -mean_ns * log(1 - rng_unit(&machine.rng));
}

static void change_sibling(double ns)
{
    const struct sim_conditions *conditions = &machine.conditions;

    machine.spell_ns -= ns;
    while (conditions->busy_ns > 0 && machine.spell_ns <= 0) {
        machine.sibling_busy = !machine.sibling_busy;
        machine.spell_ns += draw_spell(machine.sibling_busy ? conditions->busy_ns : conditions->pause_ns);
    }
}

/* Lets processor time pass. Returns false when a slice ended in it. */
static bool spend(double ns)
{
    bool whole = true;

    machine.wall_ns += ns;
    machine.cpu_ns += ns;
    machine.clock_ns -= ns;
    change_sibling(ns);
    if (machine.clock_ns <= 0) {
        machine.clock = 1 + machine.conditions.clock_step * (2 * rng_unit(&machine.rng) - 1);
        machine.clock_ns = 2e8 * rng_unit(&machine.rng);
    }
    if (machine.conditions.off_ns > 0 && machine.cpu == 0) {
        machine.slice_ns -= ns;
        while (machine.slice_ns <= 0) {
            lose_core();
            whole = false;
        }
    }
    return whole;
}

/* One of its pages, for every few of ours. */
static void let_sibling_access(void)
{
    if (machine.sibling_busy && rng_unit(&machine.rng) < SIBLING_ACCESS_SHARE)
        (void)sim_tlb_access(machine.tlb, SIBLING_PAGES_FROM + rng_below(&machine.rng, SIBLING_PAGES), &machine.rng);
}

static struct large_range *range_of(uintptr_t address)
{
    for (unsigned index = 0; index < LARGE_RANGES_MAX; index++)
        if (address - machine.ranges[index].start < machine.ranges[index].bytes)
            return &machine.ranges[index];
    return NULL;
}

static void note_range(const char *start, size_t bytes, uint64_t page_bytes)
{
    const struct sim_pages *pages = machine.large;

    for (unsigned index = 0; pages != NULL && index < SIM_PAGES_MAX; index++)
        for (unsigned place = 0; pages[index].page_bytes == page_bytes && place < LARGE_RANGES_MAX; place++)
            if (machine.ranges[place].bytes == 0) {
                machine.ranges[place] = (struct large_range){(uintptr_t)start, bytes, index};
                return;
            }
}

static void forget_range(const char *start)
{
    struct large_range *range = range_of((uintptr_t)start);

    if (range != NULL)
        range->bytes = 0;
}

/* Follows the cycle through the simulated TLB. Returns ns per access. */
static double follow(struct chase *chase, uint64_t accesses)
{
    /* A power of two; a division per access would be a quarter of the time. */
    int page_shift = __builtin_ctzll(machine.base_page_bytes);
    double ns = 0;

    for (uint64_t done = 0; done < accesses; done++) {
        uintptr_t address;

        if (chase->offsets != NULL) {
            address = (uintptr_t)chase->base + chase->offsets[chase->next];
            chase->next = chase->next + 1 == chase->count ? 0 : chase->next + 1;
        } else {
            address = (uintptr_t)chase->position;
            chase->position = *(void *const *)chase->position;
        }
        const struct large_range *range = range_of(address);

        double one = range != NULL ? sim_tlb_access_large(machine.tlb, range->pages, address, &machine.rng)
                                   : sim_tlb_access(machine.tlb, address >> page_shift, &machine.rng);

        ns += one;
        machine.walks += one > machine.core->processor.second_hit_ns ? 1 : 0;
        let_sibling_access();
    }
    ns = ns / (double)accesses + machine.core->processor.hit_ns + machine.line_ns;
    return (ns + (chase->offsets != NULL ? TABLE_NS : 0)) / machine.clock;
}

/* --- in the place of chase.c ------------------------------------------------------------------------------------ */

void __wrap_chase_walk(struct chase *chase, uint64_t accesses);
bool __wrap_chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access);
uint64_t __wrap_chase_batch_accesses(struct chase *chase, double batch_seconds);

/* Settled after two laps and a little; the rest of a short cycle's warming only takes time. */
void __wrap_chase_walk(struct chase *chase, uint64_t accesses)
{
    uint64_t enough = machine.pages > 0 ? 2 * machine.pages + CHASE_UNROLL : accesses;

    uint64_t looked = accesses < enough ? accesses : enough;
    double walks = machine.walks;

    (void)spend(follow(chase, looked) * (double)accesses);
    machine.walks = walks + (machine.walks - walks) * (double)accesses / (double)looked;
}

bool __wrap_chase_time_batch(struct chase *chase, uint64_t accesses, double *ns_per_access)
{
    const struct sim_conditions *conditions = &machine.conditions;
    uint64_t laps = machine.pages > LOOKED_ACCESSES_MIN ? TIMED_LAPS * machine.pages : LOOKED_ACCESSES_MIN;
    double ns = follow(chase, machine.pages > 0 && laps < accesses ? laps : accesses);

    ns *= 1 + conditions->spread * sim_normal(&machine.rng);
    ns *= rng_unit(&machine.rng) < conditions->outlier_share ? 1.5 : 1;
    *ns_per_access = ns;
    bool whole = spend(ns * (double)accesses);

    if (whole && rng_unit(&machine.rng) < conditions->disturbed) {
        machine.wall_ns += 1e5;
        *ns_per_access *= 3;
        return false;
    }
    return whole;
}

uint64_t __wrap_chase_batch_accesses(struct chase *chase, double batch_seconds)
{
    (void)chase;
    return (uint64_t)(batch_seconds * 1e9 / (2 * machine.core->processor.hit_ns)) + CHASE_UNROLL;
}

/* --- in the place of translations.c and window.c -----------------------------------------------------
 */

void __wrap_tlb_flush(void);
void __wrap_tlb_evict_foreign(void);
void *__wrap_window_link_view(struct window *window, size_t pages, struct rng *rng, uint32_t *order);
void *__wrap_window_link_packed(struct window *window, size_t pages, struct rng *rng, uint32_t *order);
struct chase __wrap_zero_window_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order);
void *__real_window_link_view(struct window *window, size_t pages, struct rng *rng, uint32_t *order);
void *__real_window_link_packed(struct window *window, size_t pages, struct rng *rng, uint32_t *order);
struct chase __real_zero_window_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order);

void __wrap_tlb_flush(void)
{
    sim_tlb_flush(machine.tlb);
    (void)spend(FLUSH_NS);
}

void __wrap_tlb_evict_foreign(void)
{
    sim_tlb_flush(machine.tlb);
    (void)spend(20 * FLUSH_NS);
}

static void note_link(size_t pages, double lines)
{
    (void)spend(LINK_NS_PER_PAGE * (double)pages);
    machine.pages = pages;
    machine.line_ns = lines > machine.core->l1_lines ? L1_MISS_NS * (1 - machine.core->l1_lines / lines) : 0;
}

/* Pages that share a line: eight of them unless every page has its own. */
static void note_window_link(const struct window *window, size_t pages, bool packed)
{
    bool shared = window->slots != WINDOW_SLOTS_LINES;

    note_link(pages, (double)pages / (shared ? 8 : 1));
    machine.line_ns += shared && !packed ? machine.core->shared_line_ns : 0;
}

void *__wrap_window_link_view(struct window *window, size_t pages, struct rng *rng, uint32_t *order)
{
    note_window_link(window, pages, false);
    return __real_window_link_view(window, pages, rng, order);
}

void *__wrap_window_link_packed(struct window *window, size_t pages, struct rng *rng, uint32_t *order)
{
    note_window_link(window, pages, true);
    return __real_window_link_packed(window, pages, rng, order);
}

/* All pages share the lines of one: where that costs, it costs every cycle longer than them the same. */
struct chase __wrap_zero_window_link(void *context, bool packed, size_t pages, struct rng *rng, uint32_t *order)
{
    note_link(pages, 0);
    machine.line_ns += packed ? 0 : machine.core->shared_line_ns;
    return __real_zero_window_link(context, packed, pages, rng, order);
}

/* --- in the place of the kernel's large pages: sparse base pages, since only some lines of them are used -----------
 */

int __wrap_arena_open(struct arena *arena, const struct arena_request *request, struct verdict *verdict);
void __wrap_arena_close(struct arena *arena);
int __wrap_backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict);
int64_t __wrap_backing_free_pages(const char *sysfs, uint64_t page_bytes, int node);
uint64_t __wrap_session_pool_bytes(const struct session *from, const struct backing *backing, struct verdict *verdict);
int __wrap_window_open(struct window *window, const struct window_request *request, struct verdict *verdict);
void __wrap_window_close(struct window *window);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_window_open(struct window *window, const struct window_request *request, struct verdict *verdict);
void __real_window_close(struct window *window);
void *__real_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict);

int __wrap_arena_open(struct arena *arena, const struct arena_request *request, struct verdict *verdict)
{
    uint64_t page_bytes = request->backing->page_bytes;

    *verdict = (struct verdict){.status = STATUS_OK};
    *arena = (struct arena){.backing = *request->backing, .granted_fraction = 1};
    arena->bytes = (size_t)((request->bytes + page_bytes - 1) / page_bytes * page_bytes);
    if (!arena_is_allowed(request, verdict))
        return -1;
    arena->base = backing_reserve_range(arena->bytes, page_bytes, verdict);
    if (arena->base == NULL || mprotect(arena->base, arena->bytes, PROT_READ | PROT_WRITE) != 0)
        return -1;
    note_range(arena->base, arena->bytes, page_bytes);
    return 0;
}

void __wrap_arena_close(struct arena *arena)
{
    forget_range(arena->base);
    (void)munmap(arena->base, arena->bytes);
}

int __wrap_backing_memfd(uint64_t page_bytes, uint64_t bytes, struct verdict *verdict)
{
    (void)page_bytes;
    return __real_backing_memfd(0, bytes, verdict);
}

int64_t __wrap_backing_free_pages(const char *sysfs, uint64_t page_bytes, int node)
{
    (void)sysfs;
    (void)page_bytes;
    (void)node;
    return (int64_t)machine.pool_pages;
}

uint64_t __wrap_session_pool_bytes(const struct session *from, const struct backing *backing, struct verdict *verdict)
{
    (void)from;
    (void)verdict;
    return backing->kind == BACKING_HUGETLB ? machine.pool_pages * backing->page_bytes : UINT64_MAX;
}

int __wrap_window_open(struct window *window, const struct window_request *request, struct verdict *verdict)
{
    int status = __real_window_open(window, request, verdict);

    if (status == 0) {
        note_range(window->view, window->view_bytes, request->page_bytes);
        note_range(window->packed, window->packed_bytes, request->page_bytes);
    }
    return status;
}

void __wrap_window_close(struct window *window)
{
    forget_range(window->view);
    forget_range(window->packed);
    __real_window_close(window);
}

/* Where the kernel maps what asks for no place differs from process to process, and with it the pages that share a
 * set: here the seed decides. The distance doubles until nothing else lies there; then it is ENOMEM. Fills nothing
 * beforehand. */
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    flags &= ~MAP_POPULATE;
    if ((flags & MAP_FIXED) != 0)
        return __real_mmap64(address, bytes, protection, flags, fd, offset);
    for (uintptr_t distance = MAPS_STEP; distance <= MAPS_DISTANCE_MAX; distance *= 2) {
        char *wanted = (char *)(machine.maps_from + distance); // NOLINT(performance-no-int-to-ptr): a hint
        char *mapped = __real_mmap64(wanted, bytes, protection, flags, fd, offset);

        if (mapped == wanted || mapped == MAP_FAILED)
            return mapped;
        (void)munmap(mapped, bytes);
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

/* --- in the place of core_width.c -------------------------------------------------------------------------------- */

double __wrap_issue_throughput_probe(void);

double __wrap_issue_throughput_probe(void)
{
    double width = machine.sibling_busy ? WIDTH_SHARED : WIDTH_ALONE;

    return spend(PROBE_NS) ? width * (1 + WIDTH_SPREAD * sim_normal(&machine.rng)) : NAN;
}

/* --- in the place of timing.c ----------------------------------------------------------------------------------- */

uint64_t __wrap_clock_now_ns(void);
uint64_t __wrap_clock_thread_cpu_ns(void);
long __wrap_guard_switches(void);
double __wrap_core_clock_hz(void);
int __wrap_cpus_choose(const struct cpu_list *allowed);
int __wrap_cpus_pin(int cpu);
void __wrap_cpus_sample_idle(struct idle_sample *look);
int __wrap_cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share);
struct deadline __wrap_deadline_after(double seconds);
double __wrap_deadline_remaining_seconds(struct deadline deadline);
bool __wrap_deadline_passed(struct deadline deadline);

uint64_t __wrap_clock_now_ns(void)
{
    return (uint64_t)machine.wall_ns;
}

uint64_t __wrap_clock_thread_cpu_ns(void)
{
    return (uint64_t)machine.cpu_ns;
}

long __wrap_guard_switches(void)
{
    return machine.switches;
}

double __wrap_core_clock_hz(void)
{
    (void)spend(2e6);
    return machine.core->hz * machine.clock;
}

int __wrap_cpus_choose(const struct cpu_list *allowed)
{
    (void)allowed;
    machine.wall_ns += 4e7;
    return machine.idle_cpu;
}

int __wrap_cpus_pin(int cpu)
{
    machine.cpu = cpu;
    return 0;
}

void __wrap_cpus_sample_idle(struct idle_sample *look)
{
    memset(look, 0, sizeof(*look));
    look->wall_ns = (uint64_t)machine.wall_ns + 1;
}

int __wrap_cpus_idlest(const struct idle_sample *since, const struct cpu_list *allowed, double *idle_share)
{
    (void)since;
    (void)allowed;
    *idle_share = machine.idle_cpu > 0 ? 1 : 0;
    return machine.idle_cpu;
}

struct deadline __wrap_deadline_after(double seconds)
{
    return (struct deadline){.end_ns = (uint64_t)(machine.wall_ns + seconds * 1e9)};
}

double __wrap_deadline_remaining_seconds(struct deadline deadline)
{
    return fmax(0, ((double)deadline.end_ns - machine.wall_ns) / 1e9);
}

bool __wrap_deadline_passed(struct deadline deadline)
{
    return machine.wall_ns >= (double)deadline.end_ns;
}
