/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of geometry_measure() on simulated processors: quiet, noisy, and where others have most of the core. */
#include "base/verdict.h"
#include "geometry/result.h"
#include "harness.h"
#include "machine/environment.h"
#include "machine/tlb_levels.h"
#include "memory/backing.h"
#include "simulated_machine.h"
#include "timing/session.h"
#include "tlb_simulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUICK_SECONDS 5.0

/* Emulated and instrumented programs are ten times slower and take a tenth of the seeds. The seeds of a quick run fall
 * into every case; what fails once in a hundred is found with TLBBENCH_SEEDS=20, which takes twenty times as many. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_INSTRUMENTED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_INSTRUMENTED true
#endif
#endif
#ifndef IS_INSTRUMENTED
#define IS_INSTRUMENTED false
#endif

#if defined(__x86_64__)
#define HAS_LEAST_WIDTH true
#else
#define HAS_LEAST_WIDTH false
#endif

/* Geometries of tlb_geometry.json; hits of the second level cost 7 cycles, as on most of them. */
static const struct sim_core EMERALD_RAPIDS = {
    "Emerald Rapids", {"", {96, 6, SIM_LRU, false}, {2048, 16, SIM_NRU, true}, 5 / 3.0, 7 / 3.0, 8}, 3.0e9, 0, 768};
static const struct sim_core EMERALD_RAPIDS_8_WAYS = {
    "Emerald Rapids, second level of 8 ways",
    {"", {96, 6, SIM_NRU, false}, {2048, 8, SIM_LRU, false}, 5 / 3.0, 7 / 3.0, 8},
    3.0e9,
    0,
    768};
static const struct sim_core OTHERS[] = {
    {"Ice Lake", {"", {64, 4, SIM_LRU, false}, {1536, 12, SIM_NRU, true}, 5 / 3.0, 7 / 3.0, 8}, 3.0e9, 0, 768},
    {"Skylake", {"", {64, 4, SIM_NRU, false}, {1536, 12, SIM_LRU, true}, 5 / 3.0, 7 / 3.0, 8}, 3.0e9, 0, 512},
    {"Zen 3", {"", {64, 64, SIM_LRU, false}, {2048, 16, SIM_NRU, true}, 1.234, 2.158, 5}, 3.243e9, 5.0, 512},
    {"Zen 2", {"", {64, 64, SIM_LRU, false}, {2048, 16, SIM_RANDOM, true}, 1.1, 1.9, 9}, 3.6e9, 2.0, 512},
    {"Zen 4", {"", {72, 72, SIM_LRU, false}, {3072, 24, SIM_NRU, true}, 1.1, 1.9, 9}, 3.6e9, 2.0, 512},
    {"Zen 5", {"", {96, 96, SIM_LRU, false}, {4096, 16, SIM_NRU, true}, 0.94, 1.65, 10}, 4.25e9, 2.5, 768},
    {"Neoverse N1", {"", {48, 48, SIM_LRU, false}, {1280, 5, SIM_LRU, false}, 4 / 3.0, 5 / 3.0, 12}, 3.0e9, 0, 1024},
    {"Neoverse V1", {"", {40, 40, SIM_LRU, false}, {2048, 8, SIM_NRU, false}, 4 / 2.6, 6 / 2.6, 12}, 2.6e9, 0, 1024},
    {"POWER9", {"", {64, 64, SIM_LRU, false}, {1024, 4, SIM_LRU, true}, 1.0, 2.5, 12}, 3.8e9, 0, 512},
};
enum { ZEN_3 = 2, ZEN_2 = 3, ZEN_5 = 5 };
enum { OTHER_COUNT = sizeof(OTHERS) / sizeof(OTHERS[0]) };

static const struct sim_conditions QUIET = {.spread = 0.003, .clock_step = 0.005};
static const struct sim_conditions LIVELY = {
    .spread = 0.008, .outlier_share = 0.05, .disturbed = 0.04, .clock_step = 0.03};
/* One and two others of normal weight beside our nice 5, as measured on Linux 6.18. */
static const struct sim_conditions HELD = {
    .spread = 0.006, .outlier_share = 0.03, .disturbed = 0.02, .clock_step = 0.02, .run_ns = 4e6, .off_ns = 12e6};
static const struct sim_conditions HELD_BY_TWO = {
    .spread = 0.006, .outlier_share = 0.03, .disturbed = 0.02, .clock_step = 0.02, .run_ns = 4e6, .off_ns = 24e6};

/* A SMT sibling that another guest keeps busy three quarters of the time, in short spells and in long ones. */
static const struct sim_conditions SHARED_SHORTLY = {
    .spread = 0.005, .clock_step = 0.01, .busy_ns = 3e5, .pause_ns = 1e5};
static const struct sim_conditions SHARED_LONG = {.spread = 0.005, .clock_step = 0.01, .busy_ns = 6e7, .pause_ns = 2e7};
/* It hardly ever pauses. */
static const struct sim_conditions SHARED_ALWAYS = {
    .spread = 0.005, .clock_step = 0.01, .busy_ns = 3e9, .pause_ns = 1e6};

/* Far too busy: slices shorter than a batch come and go, and most batches are cut. */
static const struct sim_conditions HOPELESS = {
    .spread = 0.02, .outlier_share = 0.1, .disturbed = 0.2, .clock_step = 0.05, .run_ns = 0.8e6, .off_ns = 20e6};

static struct session session; /* of the latest measurement */

/* Where the processor counts walks: session.counted_walks, what its counter makes of them, and why it has none. */
static double (*witness)(void *factor);
static double witness_factor;
static struct verdict no_witness;

static struct environment environment; /* no THP, no pools, but where a test adds some */

static void measure(const struct sim_core *core, const struct sim_conditions *conditions, uint64_t seed, int idle_cpu,
                    struct geometry_result *result)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    session = (struct session){.environment = &environment,
                               .base_page_bytes = page,
                               .backings = {{.kind = BACKING_BASE, .page_bytes = page, .name = "base"}},
                               .backing_count = 1,
                               .seed = seed,
                               .numa_node = -1,
                               .memory_bytes = 64u << 20,
                               .deadline = {.end_ns = (uint64_t)(QUICK_SECONDS * 1e9)},
                               .counted_walks = witness,
                               .walks_context = &witness_factor,
                               .walks_verdict = witness == NULL ? no_witness : (struct verdict){.status = STATUS_OK},
                               .cpus = {.count = 1, .bits = {1}}};

    sim_machine_start(core, conditions, seed);
    sim_machine_add_idle_cpu(idle_cpu);
    (void)geometry_measure(&session, result);
}

/* Wherever the kernel maps things, so that what fails fails again. */
static void the_seed_decides(struct harness *h)
{
    struct geometry_result result[2];
    double seconds[2];

    for (unsigned run = 0; run < 2; run++) {
        void *aside = malloc(((size_t)32 << 20) * (run + 1)); /* what comes after it lies elsewhere */

        measure(&OTHERS[ZEN_2], &LIVELY, 1, 0, &result[run]);
        seconds[run] = sim_machine_seconds();
        sim_machine_stop();
        free(aside);
    }
    CHECK(seconds[0] == seconds[1] && result[0].levels.count == result[1].levels.count &&
          memcmp(result[0].levels.items, result[1].levels.items, sizeof(result[0].levels.items)) == 0);
    geometry_result_free(&result[0]);
    geometry_result_free(&result[1]);
}

static const struct tlb_level *measured_level(const struct geometry_result *result, unsigned level)
{
    for (size_t index = 0; index < result->levels.count; index++)
        if (result->levels.items[index].level == level)
            return &result->levels.items[index];
    return NULL;
}

static double hit_cycles(const struct geometry_result *result)
{
    for (size_t index = 0; index < result->penalty_count; index++)
        if (result->penalties[index].level[0] == 'l')
            return result->penalties[index].cycles;
    return NAN;
}

struct expectation {
    bool ways;         /* must be found; else they may be unknown */
    double off_cycles; /* a second-level hit may be off by */
};

static void check_levels(struct harness *h, const struct sim_core *core, uint64_t seed,
                         const struct geometry_result *result, struct expectation expected)
{
    const struct sim_processor *processor = &core->processor;
    const struct tlb_level *first = measured_level(result, 1);
    const struct tlb_level *second = measured_level(result, 2);
    double cycles = processor->second_hit_ns * core->hz / 1e9;
    int ways = processor->first.ways == processor->first.entries ? TLB_WAYS_FULL : (int)processor->first.ways;
    unsigned long long number = seed;

    if (first == NULL || abs((int)first->entries - (int)processor->first.entries) > 2 ||
        first->entries_min > processor->first.entries || first->entries_max < processor->first.entries) {
        harness_fail(h, __FILE__, __LINE__, "%s seed %llu: first level %u [%u, %u]: %s", core->name, number,
                     first == NULL ? 0 : first->entries, first == NULL ? 0 : first->entries_min,
                     first == NULL ? 0 : first->entries_max, result->verdict.reason);
        return;
    }
    if (first->ways != ways && (expected.ways || first->ways != TLB_WAYS_UNKNOWN))
        harness_fail(h, __FILE__, __LINE__, "%s seed %llu: %d ways (%s)", core->name, number, first->ways, first->note);
    if (second == NULL || second->entries_min > processor->second.entries ||
        second->entries_max < processor->second.entries) {
        harness_fail(h, __FILE__, __LINE__, "%s seed %llu: second level %u [%u, %u]: %s", core->name, number,
                     second == NULL ? 0 : second->entries, second == NULL ? 0 : second->entries_min,
                     second == NULL ? 0 : second->entries_max, result->verdict.reason);
    }
    if (second != NULL && second->ways != TLB_WAYS_UNKNOWN && second->ways != (int)processor->second.ways)
        harness_fail(h, __FILE__, __LINE__, "%s seed %llu: %d ways of the second level, not %u", core->name, number,
                     second->ways, processor->second.ways);
    if (!(fabs(hit_cycles(result) - cycles) <= expected.off_cycles)) {
        harness_fail(h, __FILE__, __LINE__, "%s seed %llu: a hit of %.2f cycles, not %.2f", core->name, number,
                     hit_cycles(result), cycles);
    }
    if (sim_machine_seconds() > QUICK_SECONDS)
        harness_fail(h, __FILE__, __LINE__, "%s seed %llu: %.2f s", core->name, number, sim_machine_seconds());
}

static unsigned seeds_of(unsigned seeds)
{
    const char *times = getenv("TLBBENCH_SEEDS");

    if (IS_INSTRUMENTED || harness_is_emulated())
        return (seeds + 9) / 10;
    return times == NULL ? seeds : seeds * (unsigned)strtoul(times, NULL, 10);
}

static void check_core(struct harness *h, const struct sim_core *core, const struct sim_conditions *conditions,
                       unsigned seeds, struct expectation expected)
{
    for (uint64_t seed = 1; seed <= seeds_of(seeds); seed++) {
        struct geometry_result result;

        measure(core, conditions, seed, 0, &result);
        check_levels(h, core, seed, &result, expected);
        if (result.method != (core->shared_line_ns > 0 ? METHOD_DISTINCT_LINES : METHOD_ALIASED))
            harness_fail(h, __FILE__, __LINE__, "%s: method %s", core->name, ALIAS_METHOD_NAMES[result.method]);
        geometry_result_free(&result);
        sim_machine_stop();
    }
}

static const struct expectation ALL = {.ways = true, .off_cycles = 1};
static const struct expectation MOST = {.ways = false, .off_cycles = 1};

static void emerald_rapids(struct harness *h)
{
    check_core(h, &EMERALD_RAPIDS, &LIVELY, 8, ALL);
}

static void emerald_rapids_8_ways(struct harness *h)
{
    check_core(h, &EMERALD_RAPIDS_8_WAYS, &LIVELY, 3, ALL);
}

static void others_quiet(struct harness *h)
{
    for (unsigned index = 0; index < OTHER_COUNT; index++)
        check_core(h, &OTHERS[index], &QUIET, 1, ALL);
}

static void others_lively(struct harness *h)
{
    for (unsigned index = 0; index < OTHER_COUNT; index++)
        check_core(h, &OTHERS[index], &LIVELY, 1, ALL);
}

static void held_core(struct harness *h)
{
    check_core(h, &EMERALD_RAPIDS, &HELD, 3, ALL);
    check_core(h, &OTHERS[ZEN_5], &HELD, 1, ALL);
}

static void core_held_by_two(struct harness *h)
{
    check_core(h, &EMERALD_RAPIDS, &HELD_BY_TWO, 3, MOST);
    check_core(h, &OTHERS[ZEN_5], &HELD_BY_TWO, 1, MOST);
}

/* Nothing may be wrong, whatever is missing, and the time limit holds. */
static void check_nothing_wrong(struct harness *h, const struct sim_core *core, const struct geometry_result *result)
{
    const struct sim_processor *processor = &core->processor;

    for (unsigned number = 1; number <= 2; number++) {
        const struct tlb_level *level = measured_level(result, number);
        unsigned entries = number == 1 ? processor->first.entries : processor->second.entries;

        if (level != NULL && (level->entries_min > entries || level->entries_max < entries)) {
            harness_fail(h, __FILE__, __LINE__, "%s: level %u of %u [%u, %u]", core->name, number, level->entries,
                         level->entries_min, level->entries_max);
        }
    }
    if (sim_machine_seconds() > 1.02 * QUICK_SECONDS)
        harness_fail(h, __FILE__, __LINE__, "%s: %.2f s", core->name, sim_machine_seconds());
    CHECK(result->verdict.status == STATUS_OK || result->verdict.reason[0] != '\0');
}

static void hopeless_core(struct harness *h)
{
    for (uint64_t seed = 1; seed <= (IS_INSTRUMENTED ? 2 : 6); seed++) {
        const struct sim_core *core = seed % 2 == 0 ? &OTHERS[ZEN_5] : &EMERALD_RAPIDS;
        struct sim_conditions conditions = HOPELESS;
        struct geometry_result result;

        conditions.off_ns *= (double)seed;
        measure(core, &conditions, seed, 0, &result);
        check_nothing_wrong(h, core, &result);
        geometry_result_free(&result);
        sim_machine_stop();
    }
}

/* Later sections watch the steal of session->cpu, so it must be the one that is measured on. */
static void the_session_follows_to_another_cpu(struct harness *h)
{
    struct geometry_result result;

    measure(&EMERALD_RAPIDS, &HELD, 1, 3, &result);
    CHECK(sim_machine_cpu() == 3);
    CHECK_I64(session.cpu, sim_machine_cpu());
    geometry_result_free(&result);
    sim_machine_stop();
}

static void shared_core(struct harness *h)
{
    check_core(h, &EMERALD_RAPIDS, &SHARED_SHORTLY, 4, ALL);
    check_core(h, &EMERALD_RAPIDS, &SHARED_LONG, 4, ALL);
    check_core(h, &OTHERS[ZEN_3], &SHARED_SHORTLY, 2, ALL);
    check_core(h, &OTHERS[ZEN_3], &SHARED_LONG, 2, ALL);
}

static void core_always_shared(struct harness *h)
{
    if (!HAS_LEAST_WIDTH) {
        harness_skip(h, "only x86-64 has a least width: elsewhere a sibling that never pauses goes unseen");
        return;
    }
    for (uint64_t seed = 1; seed <= (IS_INSTRUMENTED ? 2 : 6); seed++) {
        const struct sim_core *core = seed % 2 == 0 ? &OTHERS[ZEN_3] : &EMERALD_RAPIDS;
        struct geometry_result result;

        measure(core, &SHARED_ALWAYS, seed, 0, &result);
        check_nothing_wrong(h, core, &result);
        CHECK(result.core_alone_fraction < 0.5);
        geometry_result_free(&result);
        sim_machine_stop();
    }
}

/* Told where a set of the first level holds fewer pages than one of the second, and nowhere else. */
static void ways_of_second_levels(struct harness *h)
{
    for (unsigned index = 0; index < OTHER_COUNT + 2; index++) {
        const struct sim_core *core = index < OTHER_COUNT    ? &OTHERS[index]
                                      : index == OTHER_COUNT ? &EMERALD_RAPIDS
                                                             : &EMERALD_RAPIDS_8_WAYS;
        const struct sim_processor *processor = &core->processor;
        /* A plateau takes three numbers of pages that only the second level holds. */
        bool is_hidden =
            processor->first.ways == processor->first.entries || processor->second.ways < processor->first.ways + 3;
        struct geometry_result result;

        measure(core, &QUIET, 5, 0, &result);
        const struct tlb_level *level = measured_level(&result, 2);

        if (level == NULL || level->ways != (is_hidden ? TLB_WAYS_UNKNOWN : (int)processor->second.ways) ||
            (is_hidden != (strstr(level->note, "ways cannot be told") != NULL)) ||
            (!is_hidden && level->entries != processor->second.entries))
            harness_fail(h, __FILE__, __LINE__, "%s: %u entries in %d ways (%s)", core->name,
                         level == NULL ? 0 : level->entries, level == NULL ? 0 : level->ways,
                         level == NULL ? result.verdict.reason : level->note);
        geometry_result_free(&result);
        sim_machine_stop();
    }
}

/* --- the processor's counter of walks as a witness ---------------------------------------------------------------- */

static struct verdict witnessed(double (*counted)(void *), double factor, enum confidence *confidence)
{
    struct geometry_result result;

    witness = counted;
    witness_factor = factor;
    verdict_set(&no_witness, STATUS_UNSUPPORTED, "no PMU here");
    measure(&EMERALD_RAPIDS, &QUIET, 3, 0, &result);
    witness = NULL;
    struct verdict verdict = result.witness.verdict;

    *confidence = measured_level(&result, 2)->confidence;
    geometry_result_free(&result);
    sim_machine_stop();
    return verdict;
}

static void counted_walks_witness_the_level(struct harness *h)
{
    enum confidence confidence;
    struct verdict verdict = witnessed(sim_machine_walks, 1, &confidence);

    CHECK_TEXT(verdict.reason, "");
    CHECK(verdict.status == STATUS_OK && confidence > CONFIDENCE_LOW);
    verdict = witnessed(sim_machine_walks, 0, &confidence);
    CHECK(verdict.status == STATUS_CANNOT_TELL && strstr(verdict.reason, "no walk at all") != NULL);
    verdict = witnessed(sim_machine_walks, NAN, &confidence);
    CHECK(verdict.status == STATUS_CANNOT_TELL && confidence > CONFIDENCE_LOW);
    /* One walk of ten is seen: the level would hold pages that it cannot hold. */
    verdict = witnessed(sim_machine_walks, 0.1, &confidence);
    CHECK(verdict.status == STATUS_NOISY && confidence == CONFIDENCE_LOW);
    verdict = witnessed(NULL, 1, &confidence);
    CHECK(verdict.status == STATUS_UNSUPPORTED && strcmp(verdict.reason, "no PMU here") == 0);
}

/* --- pages that are larger than base pages ---------------------------------------------------------------------- */

#define KIB_64 (64ull << 10)
#define MIB_2 (2ull << 20)
#define MIB_32 (32ull << 20)
#define MIB_512 (512ull << 20)
#define GIB_1 (1ull << 30)

struct large_case {
    uint64_t base_page_bytes;
    struct sim_level first;
    struct sim_pages pages[SIM_PAGES_MAX];
    enum backing_kind kinds[SIM_PAGES_MAX];
    uint64_t pool_pages;
    struct {
        enum status status;
        uint64_t entry_bytes;
        unsigned first_entries; /* 0 = none may be stated */
        const char *says;       /* in the reason; NULL = anything */
    } expected[SIM_PAGES_MAX];
};

static void check_large_page(struct harness *h, const struct sim_core *core, const struct large_case *large,
                             unsigned index, struct geometry_result *result)
{
    const struct effective_page *page = &result->effective_pages[index + 1];
    const struct tlb_level *level = geometry_find_measured(result, 1, page->backing.page_bytes);
    unsigned entries = level == NULL ? 0 : level->entries;

    if (page->verdict.status != large->expected[index].status ||
        page->entry_bytes != large->expected[index].entry_bytes) {
        harness_fail(h, __FILE__, __LINE__, "%s, pages of %llu: %s, an entry covers %llu: %s", core->name,
                     (unsigned long long)page->backing.page_bytes, STATUS_TEXTS[page->verdict.status].name,
                     (unsigned long long)page->entry_bytes, page->verdict.reason);
    }
    if (large->expected[index].says != NULL && strstr(page->verdict.reason, large->expected[index].says) == NULL)
        harness_fail(h, __FILE__, __LINE__, "%s: no '%s' in '%s'", core->name, large->expected[index].says,
                     page->verdict.reason);
    if (entries != large->expected[index].first_entries)
        harness_fail(h, __FILE__, __LINE__, "%s, pages of %llu: a first level of %u", core->name,
                     (unsigned long long)page->backing.page_bytes, entries);
}

static void check_large(struct harness *h, const char *name, const struct large_case *large)
{
    const struct sim_core core = {
        name, {"", large->first, {1536, 12, SIM_NRU, true}, 5 / 3.0, 7 / 3.0, 8}, 3.0e9, 0, 768};
    unsigned count = 0;

    if (IS_INSTRUMENTED || harness_is_emulated()) {
        harness_skip(h, "sparse mappings of terabytes are the native run's");
        return;
    }
    for (uint64_t seed = 1; seed <= seeds_of(1); seed++) {
        struct geometry_result result;

        memset(&environment, 0, sizeof(environment));
        memset(&session, 0, sizeof(session));
        session = (struct session){.environment = &environment,
                                   .base_page_bytes = large->base_page_bytes,
                                   .backings = {{BACKING_BASE, large->base_page_bytes, "base"}},
                                   .seed = seed,
                                   .numa_node = -1,
                                   .memory_bytes = 4ull << 30,
                                   .deadline = {.end_ns = (uint64_t)(QUICK_SECONDS * 1e9)},
                                   .cpus = {.count = 1, .bits = {1}}};
        for (count = 0; count < SIM_PAGES_MAX && large->pages[count].page_bytes > 0; count++) {
            session.backings[count + 1] =
                (struct backing){large->kinds[count], large->pages[count].page_bytes, "large"};
            (void)snprintf(session.backings[count + 1].name, sizeof(session.backings[0].name), "large %u", count);
            if (large->kinds[count] == BACKING_HUGETLB)
                environment.pools[environment.pool_count++].page_bytes = large->pages[count].page_bytes;
        }
        session.backing_count = count + 1;
        sim_machine_start(&core, &QUIET, seed);
        sim_machine_set_memory(large->base_page_bytes, large->pool_pages, large->pages);
        (void)geometry_measure(&session, &result);
        for (unsigned index = 0; index < count; index++)
            check_large_page(h, &core, large, index, &result);
        if (sim_machine_seconds() > QUICK_SECONDS)
            harness_fail(h, __FILE__, __LINE__, "%s: %.2f s", name, sim_machine_seconds());
        geometry_result_free(&result);
        sim_machine_stop();
    }
    memset(&environment, 0, sizeof(environment));
}

static void small_first_levels(struct harness *h)
{
    static const struct large_case large = {
        4096,
        {64, 4, SIM_LRU, false},
        {{MIB_2, MIB_2, MIB_2, {32, 4, SIM_LRU, false}}, {GIB_1, GIB_1, GIB_1, {4, 4, SIM_LRU, false}}},
        {BACKING_HUGETLB, BACKING_HUGETLB},
        2,
        {{STATUS_OK, MIB_2, 32, NULL}, {STATUS_OK, GIB_1, 4, NULL}}};

    check_large(h, "2M x 32 and 1G x 4", &large);
}

static void host_of_2m_pages(struct harness *h)
{
    static const struct large_case large = {
        4096,
        {96, 6, SIM_LRU, false},
        {{MIB_2, MIB_2, MIB_2, {32, 4, SIM_LRU, false}}, {GIB_1, MIB_2, MIB_2, {32, 4, SIM_LRU, false}}},
        {BACKING_HUGETLB, BACKING_HUGETLB},
        2,
        {{STATUS_OK, MIB_2, 32, NULL}, {STATUS_FRACTURED, MIB_2, 0, NULL}}};

    check_large(h, "1G over a host of 2M", &large);
}

static void large_base_pages(struct harness *h)
{
    static const uint64_t bases[] = {16 << 10, 64 << 10};

    for (unsigned entries = 64; entries <= 96; entries += 32)
        for (unsigned index = 0; index < 2; index++) {
            uint64_t base = bases[index], page = index == 0 ? MIB_32 : MIB_2;
            struct large_case large = {
                base, {entries, entries, SIM_LRU, false}, {{page, base, base, {0}}}, {BACKING_HUGETLB},
                16,   {{STATUS_FRACTURED, base, 0, NULL}}};

            check_large(h, "large base pages, fractured", &large);
            if (entries == 64)
                continue;
            large.pages[0] = (struct sim_pages){page, page, page, {32, 4, SIM_LRU, false}};
            large.expected[0].status = STATUS_OK;
            large.expected[0].entry_bytes = page;
            large.expected[0].first_entries = 32;
            check_large(h, "large base pages, whole", &large);
        }
}

static void one_page_cannot_tell(struct harness *h)
{
    static const struct large_case large = {
        KIB_64, {64, 64, SIM_LRU, false},           {{MIB_2, KIB_64, KIB_64, {0}}}, {BACKING_HUGETLB},
        1,      {{STATUS_CANNOT_TELL, 0, 0, "64K"}}};

    check_large(h, "one page of 2M beside base pages of 64K", &large);
}

static void transparent_pages_in_pieces(struct harness *h)
{
    static const struct large_case large = {
        KIB_64,
        {64, 64, SIM_LRU, false},
        {{MIB_2, MIB_2, MIB_2, {64, 64, SIM_LRU, false}}, {MIB_512, MIB_2, MIB_2, {64, 64, SIM_LRU, false}}},
        {BACKING_HUGETLB, BACKING_THP},
        8,
        {{STATUS_OK, MIB_2, 64, NULL}, {STATUS_FRACTURED, MIB_2, 0, NULL}}};

    check_large(h, "512M THP in pieces of 2M", &large);
}

static void splintered_second_level(struct harness *h)
{
    static const struct large_case large = {
        4096,
        {64, 64, SIM_LRU, false},
        {{MIB_2, MIB_2, MIB_2, {64, 64, SIM_LRU, false}}, {GIB_1, GIB_1, MIB_2, {64, 64, SIM_LRU, false}}},
        {BACKING_HUGETLB, BACKING_HUGETLB},
        2,
        {{STATUS_OK, MIB_2, 64, NULL}, {STATUS_OK, GIB_1, 64, "second level"}}};

    check_large(h, "1G in pieces of 2M in the second level only", &large);
}

static const struct harness_case CASES[] = {
    {"the seed alone decides", the_seed_decides},
    {"first levels of 32 entries of 2M and 4 of 1G", small_first_levels},
    {"1G pages over a host that maps 2M", host_of_2m_pages},
    {"base pages of 16K and 64K", large_base_pages},
    {"one page that cannot show its pieces", one_page_cannot_tell},
    {"transparent pages of 512M in pieces of 2M", transparent_pages_in_pieces},
    {"pieces in the second level only", splintered_second_level},
    {"Emerald Rapids, noise, bursts, dropped batches, a clock that moves", emerald_rapids},
    {"the same with a second level of 8 ways", emerald_rapids_8_ways},
    {"other processors, quiet", others_quiet},
    {"other processors, noise, bursts, dropped batches, a clock that moves", others_lively},
    {"a core of which another task has three quarters", held_core},
    {"a core of which two others have six sevenths", core_held_by_two},
    {"the session follows to another CPU", the_session_follows_to_another_cpu},
    {"a core with a busy sibling thread", shared_core},
    {"ways of the second level, where they can be told", ways_of_second_levels},
    {"counted walks are a witness of the second level", counted_walks_witness_the_level},
    {"a core whose sibling thread hardly pauses: nothing wrong, within the limit", core_always_shared},
    {"a core that is hopelessly busy: nothing wrong, within the limit", hopeless_core},
};

HARNESS_MAIN("geometry", CASES)
