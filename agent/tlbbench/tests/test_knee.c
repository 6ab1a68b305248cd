/* SPDX-License-Identifier: Apache-2.0 */
/* Reads simulated processors and sweeps recorded on real ones. */
#include "base/rng.h"
#include "harness.h"
#include "timing/knee.h"
#include "tlb_simulator.h"

#include <math.h>
#include <string.h>

enum { SEEDS = 20, POINTS_MAX = 400 };

/* Geometries of tlb_geometry.json; the costs are typical cycles at 3 GHz. */
static const struct sim_processor PROCESSORS[] = {
    {"Emerald Rapids", {96, 6, SIM_LRU, false}, {2048, 16, SIM_NRU, true}, 1.67, 2.33, 8},
    {"Emerald Rapids, exact LRU", {96, 6, SIM_LRU, false}, {2048, 16, SIM_LRU, false}, 1.67, 2.33, 8},
    {"Ice Lake", {64, 4, SIM_LRU, false}, {2048, 16, SIM_NRU, true}, 1.67, 2.33, 8},
    {"Skylake", {64, 4, SIM_NRU, false}, {1536, 12, SIM_LRU, true}, 1.67, 2.33, 8},
    {"Haswell", {64, 4, SIM_LRU, false}, {1024, 8, SIM_LRU, false}, 1.67, 2.33, 8},
    {"Zen 3", {64, 64, SIM_NRU, false}, {2048, 16, SIM_RANDOM, true}, 1.1, 1.9, 9},
    {"Zen 4", {72, 72, SIM_NRU, false}, {3072, 24, SIM_NRU, true}, 1.1, 1.9, 9},
    {"Zen 5", {96, 96, SIM_LRU, false}, {4096, 16, SIM_NRU, true}, 0.94, 1.65, 10},
    {"Zen 5, random second level", {96, 96, SIM_LRU, false}, {4096, 16, SIM_RANDOM, true}, 0.94, 1.65, 10},
    {"Neoverse N1", {48, 48, SIM_NRU, false}, {1280, 5, SIM_LRU, false}, 1.3, 1.7, 12},
    {"Neoverse N2", {44, 44, SIM_NRU, false}, {1280, 5, SIM_RANDOM, true}, 1.3, 1.7, 12},
    {"Neoverse V2", {48, 48, SIM_LRU, false}, {2048, 8, SIM_NRU, false}, 1.2, 1.8, 12},
};
enum { PROCESSOR_COUNT = sizeof(PROCESSORS) / sizeof(PROCESSORS[0]) };

static const struct sim_noise QUIET = {.spread = 0.002, .outlier_share = 0};
static const struct sim_noise LIVELY = {.spread = 0.008, .outlier_share = 0.03};

static size_t geometric_sweep(const struct sim_processor *processor, double from, double to, double step,
                              const struct sim_noise *noise, struct rng *rng, struct knee_point *points)
{
    size_t count = 0;

    for (double pages = from; pages <= to && count < POINTS_MAX; pages *= step) {
        uint64_t whole = (uint64_t)llround(pages);

        if (count == 0 || points[count - 1].pages != whole)
            points[count++] = sim_point(processor, whole, 1, noise, rng);
    }
    return count;
}

/* Every page count between the coarse neighbours, behind five points of the plateau: as geometry_levels.c does. */
static struct knee read_first_level(const struct sim_processor *processor, const struct sim_noise *noise,
                                    struct rng *rng)
{
    struct knee_point points[POINTS_MAX];
    size_t count = geometric_sweep(processor, 4, 384, 1.122462048, noise, rng, points);
    struct knee coarse = knee_find(points, count, NAN);

    if (coarse.verdict != KNEE_FOUND)
        return coarse;
    count = 0;
    for (uint64_t eighth = 3; eighth <= 7; eighth++)
        points[count++] = sim_point(processor, coarse.pages * eighth / 8, 1, noise, rng);
    for (uint64_t pages = coarse.pages - 2; pages <= 2 * coarse.next_pages - coarse.pages + 2; pages++)
        if (pages > points[count - 1].pages)
            points[count++] = sim_point(processor, pages, 1, noise, rng);
    return knee_find(points, count, NAN);
}

static void check_first_levels(struct harness *h, const struct sim_noise *noise)
{
    for (unsigned index = 0; index < PROCESSOR_COUNT; index++) {
        const struct sim_processor *processor = &PROCESSORS[index];

        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct rng rng = rng_new(seed, index);
            struct knee knee = read_first_level(processor, noise, &rng);
            uint64_t entries = processor->first.entries;

            if (knee.verdict != KNEE_FOUND || knee.pages + 2 < entries || knee.pages > entries + 2) {
                harness_fail(h, __FILE__, __LINE__, "%s seed %llu: verdict %d, %llu pages, expected %llu +- 2",
                             processor->name, (unsigned long long)seed, (int)knee.verdict,
                             (unsigned long long)knee.pages, (unsigned long long)entries);
            }
        }
    }
}

static void first_level_quiet(struct harness *h)
{
    check_first_levels(h, &QUIET);
}

static void first_level_lively(struct harness *h)
{
    check_first_levels(h, &LIVELY);
}

/* A sweep of the second level that ends at `reach` times its entries. */
static void check_second_level(struct harness *h, unsigned index, uint64_t seed, double reach,
                               const struct sim_noise *noise)
{
    struct knee_point points[POINTS_MAX], whole[POINTS_MAX];
    const struct sim_processor *processor = &PROCESSORS[index];
    double from = 2.0 * processor->first.entries;
    double entries = processor->second.entries;
    struct rng rng = rng_new(seed, 100 + index);
    size_t count = geometric_sweep(processor, from, reach * entries, 1.122462048, noise, &rng, points);
    struct knee_interval found = knee_find_interval(points, NULL, count, (uint64_t)from);

    /* As second_level.c does: finer steps where the coarse ones show the rise. */
    double step = pow((double)found.half_rise_pages / (double)found.soft_start_pages, 1.0 / 9);
    size_t early = 0;

    while (points[early].pages < found.soft_start_pages)
        early++;
    memcpy(whole, points, early * sizeof(*points));
    size_t fine = early + geometric_sweep(processor, (double)found.soft_start_pages, (double)found.half_rise_pages,
                                          step, noise, &rng, whole + early);
    for (size_t point = early; point < count; point++)
        if (points[point].pages > found.half_rise_pages)
            whole[fine++] = points[point];
    found = knee_find_interval(whole, NULL, fine, (uint64_t)from);
    if (found.verdict != KNEE_FOUND || (double)found.soft_start_pages > 1.03 * entries ||
        (double)found.half_rise_pages < entries) {
        harness_fail(h, __FILE__, __LINE__, "%s: verdict %d, interval %llu to %llu lacks %.0f", processor->name,
                     (int)found.verdict, (unsigned long long)found.soft_start_pages,
                     (unsigned long long)found.half_rise_pages, entries);
    }
    if (fabs((double)found.estimate_pages - entries) > 0.05 * entries) {
        harness_fail(h, __FILE__, __LINE__, "%s to %.1f times it: estimate %llu is not within 5 %% of %.0f",
                     processor->name, reach, (unsigned long long)found.estimate_pages, entries);
    }
    if (fabs(found.plateau_ns - processor->hit_ns - processor->second_hit_ns) > 0.1 * processor->second_hit_ns)
        harness_fail(h, __FILE__, __LINE__, "%s: plateau %.3f ns", processor->name, found.plateau_ns);
}

static void second_level_interval(struct harness *h)
{
    for (unsigned index = 0; index < PROCESSOR_COUNT; index++)
        for (uint64_t seed = 1; seed <= 5; seed++)
            check_second_level(h, index, seed, 3, &LIVELY);
}

/* A sweep may end, by the rule of second_level.c, where a fourth of the accesses still hits what replaces at random.
 * Without outliers: the best of several mappings has none. */
static void second_level_wherever_the_sweep_ends(struct harness *h)
{
    static const struct sim_noise noise = {.spread = 0.008, .outlier_share = 0};

    for (unsigned index = 0; index < PROCESSOR_COUNT; index++)
        for (uint64_t seed = 1; seed <= 10; seed++)
            check_second_level(h, index, seed, 2 + 0.1 * (double)seed, &noise);
}

static uint64_t capacity_at_stride(const struct sim_processor *processor, uint64_t stride, struct rng *rng)
{
    struct knee_point points[POINTS_MAX];
    size_t count = 0;

    for (uint64_t pages = 1; pages <= processor->first.entries * 13 / 10; pages++)
        points[count++] = sim_point(processor, pages, stride, &QUIET, rng);
    struct knee knee = knee_find(points, count, NAN);

    return knee.verdict == KNEE_FOUND ? knee.pages : 0;
}

static void ways_of_simulated_processors(struct harness *h)
{
    enum { STRIDES = 8 };

    for (unsigned index = 0; index < PROCESSOR_COUNT; index++) {
        const struct sim_processor *processor = &PROCESSORS[index];
        int full = processor->first.ways == processor->first.entries;
        struct rng rng = rng_new(7, index);
        uint64_t capacity[STRIDES];

        for (unsigned doublings = 0; doublings < STRIDES; doublings++)
            capacity[doublings] = capacity_at_stride(processor, 1u << doublings, &rng);
        int ways = knee_find_ways(capacity, STRIDES);
        int expected = full ? KNEE_WAYS_FULL : (int)processor->first.ways;

        if (ways != expected)
            harness_fail(h, __FILE__, __LINE__, "%s: %d ways, expected %d", processor->name, ways, expected);
    }
}

/* --- sweeps recorded on an Emerald Rapids KVM guest (peer-results.md, own probe, medians) ----------------------- */

static const struct knee_point EMERALD_RAPIDS[] = {
    {64, 1.683},   {88, 1.684},   {92, 1.688},   {96, 1.683},   {98, 1.952},   {100, 2.162},
    {104, 2.443},  {112, 3.485},  {128, 4.045},  {256, 4.051},  {512, 4.046},  {1024, 4.046},
    {1536, 4.073}, {1792, 4.581}, {1920, 4.646}, {1984, 5.170}, {2048, 5.630},
};
/* Longer cycles were recorded over 256 frames, whose data no longer fits the first-level cache. */
static const struct knee_point EMERALD_RAPIDS_LONG[] = {
    {1984, 9.526},  {2016, 9.346},  {2048, 9.245},  {2080, 9.303},  {2112, 9.158},  {2176, 9.896},   {2304, 11.625},
    {2560, 14.589}, {3072, 16.146}, {4096, 16.931}, {6144, 18.339}, {8192, 19.218}, {16384, 20.690},
};
enum {
    RECORDED = sizeof(EMERALD_RAPIDS) / sizeof(EMERALD_RAPIDS[0]),
    RECORDED_LONG = sizeof(EMERALD_RAPIDS_LONG) / sizeof(EMERALD_RAPIDS_LONG[0]),
};
/* Five cycles are an L1 hit there, 1.669 ns. */
static const double EMERALD_RAPIDS_HZ = 5 / 1.669e-9;

static void recorded_first_level(struct harness *h)
{
    struct knee knee = knee_find(EMERALD_RAPIDS, RECORDED, NAN);

    CHECK(knee.verdict == KNEE_FOUND);
    CHECK_U64(knee.pages, 96);
    CHECK_U64(knee.next_pages, 98);
}

static void recorded_second_level(struct harness *h)
{
    struct knee_point points[RECORDED + RECORDED_LONG];
    /* What the data cost more: the mean difference at the two lengths that both series have. */
    double data_ns = (9.526 - 5.170 + 9.245 - 5.630) / 2;
    size_t count = 0;

    for (unsigned index = 0; index < RECORDED; index++)
        points[count++] = EMERALD_RAPIDS[index];
    for (unsigned index = 3; index < RECORDED_LONG; index++) {
        points[count] = EMERALD_RAPIDS_LONG[index];
        points[count++].ns -= data_ns;
    }
    struct knee_interval found = knee_find_interval(points, NULL, count, 128);
    double cycles = (found.plateau_ns - 1.683) * 1e-9 * EMERALD_RAPIDS_HZ;

    CHECK(found.verdict == KNEE_FOUND);
    CHECK(found.soft_start_pages <= 2048 && found.half_rise_pages >= 2048);
    CHECK(found.half_rise_pages <= 2560);
    CHECK(found.estimate_pages >= 1843 && found.estimate_pages <= 2253);
    CHECK(fabs(cycles - 7) < 0.5);
}

/* The same model a day later, alone on its core (SCHED_FIFO), less the control. The rise is softer and begins earlier.
 */
static void recorded_soft_rise(struct harness *h)
{
    static const struct knee_point points[] = {
        {192, 3.641},  {216, 3.641},  {242, 3.641},  {272, 3.631},  {305, 3.631},  {342, 3.631},  {384, 3.631},
        {431, 3.631},  {484, 3.651},  {543, 3.651},  {610, 3.651},  {684, 3.651},  {768, 3.651},  {862, 3.651},
        {968, 3.641},  {1086, 3.651}, {1219, 3.651}, {1368, 3.711}, {1440, 3.761}, {1516, 3.771}, {1536, 3.871},
        {1596, 4.071}, {1680, 4.171}, {1724, 4.301}, {1769, 4.601}, {1862, 4.781}, {1935, 4.931}, {1960, 5.491},
        {2063, 5.461}, {2172, 5.941}, {2438, 8.111}, {2737, 8.611}, {3072, 8.811}, {3448, 8.821}, {3870, 8.891}};
    struct knee_interval found = knee_find_interval(points, NULL, sizeof(points) / sizeof(points[0]), 192);

    CHECK(found.verdict == KNEE_FOUND);
    CHECK(found.least_pages <= 2048 && found.most_pages >= 2048);
    CHECK(found.most_pages <= 2560); /* 2,048 and a quarter */
}

/* Zen 4 under KVM (3,072 entries), less the control: every access misses from 3,072 pages on, and from 4,096 on the
 * table entries no longer fit the first-level data cache. The second rise is none of the TLB's. */
static void recorded_rise_with_a_shelf(struct harness *h)
{
    static const struct knee_point points[] = {
        {144, 6.77},   {162, 6.77},   {181, 6.77},   {204, 6.77},   {229, 6.77},   {257, 6.77},   {288, 6.77},
        {323, 6.50},   {363, 6.63},   {407, 6.50},   {457, 6.49},   {513, 6.64},   {576, 6.66},   {647, 6.53},
        {726, 6.47},   {815, 6.55},   {914, 6.69},   {1026, 6.45},  {1152, 6.62},  {1293, 6.47},  {1451, 6.74},
        {1629, 6.72},  {1829, 6.57},  {2053, 6.57},  {2304, 6.82},  {2457, 6.77},  {2586, 7.08},  {2620, 7.30},
        {2793, 8.83},  {2903, 9.56},  {2978, 10.15}, {3176, 10.42}, {3259, 10.82}, {3386, 10.53}, {3611, 10.61},
        {3658, 10.77}, {3850, 11.18}, {4105, 11.81}, {4608, 13.89}, {5173, 15.81}, {5806, 16.07}, {6517, 16.26}};
    struct knee_interval found = knee_find_interval(points, NULL, sizeof(points) / sizeof(points[0]), 144);

    CHECK(found.verdict == KNEE_FOUND && found.shelf_pages >= 2950 && found.shelf_pages <= 3226);
    CHECK(found.least_pages <= 3072 && found.most_pages >= 3072);
    CHECK((double)found.most_pages <= 1.25 * (double)found.least_pages); /* it was 2,328 to 4,105 */
    CHECK((double)found.estimate_pages >= 0.95 * 3072 && (double)found.estimate_pages <= 1.05 * 3072);
}

/* The same processor, another day: the minima do not rest, the medians do. */
static void recorded_shelf_of_medians(struct harness *h)
{
    static const struct knee_point points[] = {
        {647, 9.45},   {726, 9.39},   {815, 9.38},   {914, 9.57},   {1026, 9.54},  {1152, 9.53},  {1293, 9.61},
        {1451, 9.39},  {1629, 9.41},  {1829, 9.61},  {2053, 9.37},  {2304, 9.81},  {2395, 9.87},  {2489, 9.88},
        {2586, 10.04}, {2688, 11.18}, {2794, 12.03}, {2903, 12.53}, {3017, 12.53}, {3136, 13.02}, {3259, 13.76},
        {3658, 14.20}, {4105, 15.42}, {4608, 17.68}, {5173, 18.81}, {5806, 19.20}, {6517, 19.34}};
    static const double medians[] = {9.76,  9.75,  9.76,  9.76,  9.76,  9.75,  9.76,  9.76,  9.75,
                                     9.79,  9.80,  9.89,  9.96,  11.00, 11.23, 11.30, 12.16, 12.84,
                                     13.71, 14.00, 14.01, 14.57, 15.60, 18.81, 19.18, 19.26, 19.40};
    struct knee_interval found = knee_find_interval(points, medians, sizeof(points) / sizeof(points[0]), 600);

    CHECK(knee_find_interval(points, NULL, sizeof(points) / sizeof(points[0]), 600).shelf_pages == 0);
    CHECK(found.verdict == KNEE_FOUND && found.shelf_pages > 0);
    CHECK((double)found.estimate_pages >= 0.95 * 3072 &&
          (double)found.estimate_pages <= 1.05 * 3072);                      /* it was 2,586 */
    CHECK((double)found.least_pages >= 0.89 * (double)found.estimate_pages); /* it was 2,328 to 4,105 */
    CHECK((double)found.most_pages <= 1.11 * (double)found.estimate_pages);
}

/* Share of the sets that miss every access to `pages` pages, where others hold a Poisson number of entries of each. */
static double missing_share(unsigned entries, unsigned ways, double foreign, double pages)
{
    double sets = (double)entries / ways;
    double in_set = floor(pages / sets);
    double fuller = pages / sets - in_set; /* share of the sets that have a page more */
    double share[2] = {0, 0};

    for (unsigned more = 0; more < 2; more++) {
        double likely = exp(-foreign);
        double fits = 0;

        for (unsigned taken = 0; in_set + more + taken <= ways; taken++) {
            fits += likely;
            likely *= foreign / (taken + 1);
        }
        share[more] = 1 - fits;
    }
    return (1 - fuller) * share[0] + fuller * share[1];
}

/* Levels that others take entries of, before a second rise: the end of the first one tells their size, however early it
 * begins. Where few sets hold a foreign entry the end is that of one page too many in a set: up to a way more. */
static void shelf_of_simulated_levels(struct harness *h)
{
    static const unsigned levels[][2] = {{1024, 8}, {1536, 12}, {2048, 8}, {2048, 16}, {3072, 12}, {3072, 24}};
    static const double foreign[] = {0, 0.5, 1, 1.5, 2, 2.5, 3};

    for (unsigned level = 0; level < sizeof(levels) / sizeof(levels[0]); level++) {
        for (unsigned mean = 0; mean < sizeof(foreign) / sizeof(foreign[0]); mean++) {
            struct knee_point points[POINTS_MAX];
            double medians[POINTS_MAX];
            struct rng rng = rng_new(level, mean);
            double entries = levels[level][0];
            size_t count = 0;

            for (double pages = entries / 6; pages < 2.2 * entries; pages *= pages < 0.7 * entries ? 1.12 : 1.03) {
                double rise = 4 * missing_share(levels[level][0], levels[level][1], foreign[mean], round(pages)) +
                              5 * fmin(1, fmax(0, (pages - 1.4 * entries) / (0.2 * entries)));
                double luck = 0.05 * fabs(sim_normal(&rng)) * (rise > 0.5 && rise < 4.5 ? 5 : 1);

                medians[count] = 10 + rise + 0.02 * sim_normal(&rng);
                points[count] = (struct knee_point){(uint64_t)round(pages), medians[count] - luck};
                count++;
            }
            struct knee_interval found = knee_find_interval(points, medians, count, 1);
            double error = (double)found.estimate_pages / entries - 1;
            bool is_told = foreign[mean] == 0 || foreign[mean] >= 2;

            if (found.shelf_pages == 0 || (double)found.least_pages > entries || (double)found.most_pages < entries ||
                fabs(error) > (is_told ? 0.05 : fmax(0.06, 1.0 / levels[level][1])))
                harness_fail(h, __FILE__, __LINE__, "%u entries, %u ways, %.1f taken: %llu (%llu to %llu)",
                             levels[level][0], levels[level][1], foreign[mean],
                             (unsigned long long)found.estimate_pages, (unsigned long long)found.least_pages,
                             (unsigned long long)found.most_pages);
        }
    }
}

#define KNEE_OF(points) knee_find(points, sizeof(points) / sizeof((points)[0]), NAN).pages

static void recorded_ways(struct harness *h)
{
    static const struct knee_point stride_2[] = {{8, 1.669},  {16, 1.669}, {24, 1.669}, {32, 1.669}, {40, 1.654},
                                                 {44, 1.669}, {46, 1.669}, {48, 1.669}, {50, 2.070}, {52, 2.421},
                                                 {56, 3.224}, {64, 4.030}, {72, 4.022}, {80, 4.020}};
    static const struct knee_point stride_4[] = {{8, 1.669},  {16, 1.669}, {20, 1.671}, {22, 1.669}, {24, 1.694},
                                                 {26, 2.464}, {28, 2.873}, {32, 4.036}, {40, 4.031}, {44, 4.036}};
    static const struct knee_point stride_8[] = {{3, 1.669},  {4, 1.669},  {5, 1.669},  {6, 1.655},  {7, 1.669},
                                                 {8, 1.672},  {9, 1.669},  {10, 1.669}, {11, 1.669}, {12, 1.669},
                                                 {13, 2.419}, {14, 2.946}, {16, 4.030}, {24, 4.029}, {32, 4.029}};
    static const struct knee_point stride_16[] = {{3, 1.669}, {4, 1.669}, {5, 1.669}, {6, 1.669},
                                                  {7, 3.067}, {8, 4.030}, {9, 4.039}, {10, 4.033}};
    static const struct knee_point stride_32[] = {{3, 1.669}, {4, 1.686}, {5, 1.669}, {6, 1.669},
                                                  {7, 2.881}, {8, 4.044}, {9, 4.047}, {10, 4.032}};
    static const struct knee_point stride_64[] = {{3, 1.669}, {4, 1.662}, {5, 1.669}, {6, 1.669},
                                                  {7, 2.985}, {8, 4.028}, {9, 4.028}, {10, 4.026}};
    const uint64_t capacity[] = {96,
                                 KNEE_OF(stride_2),
                                 KNEE_OF(stride_4),
                                 KNEE_OF(stride_8),
                                 KNEE_OF(stride_16),
                                 KNEE_OF(stride_32),
                                 KNEE_OF(stride_64)};

    CHECK_U64(capacity[1], 48);
    CHECK_U64(capacity[2], 24);
    CHECK_U64(capacity[3], 12);
    CHECK_U64(capacity[4], 6);
    CHECK_I64(knee_find_ways(capacity, 7), 6);
}

/* --- sweeps that must not yield a number ------------------------------------------------------------------------ */

static void flat_sweep_has_no_knee(struct harness *h)
{
    struct knee_point points[20];

    for (unsigned index = 0; index < 20; index++)
        points[index] = (struct knee_point){index + 1, 1.0 + 0.001 * (index % 3)};
    CHECK(knee_find(points, 20, NAN).verdict == KNEE_NONE);
    CHECK(knee_find_interval(points, NULL, 20, 1).verdict == KNEE_NONE);
}

static void single_outlier_is_no_knee(struct harness *h)
{
    struct knee_point points[20];

    for (unsigned index = 0; index < 20; index++)
        points[index] = (struct knee_point){index + 1, index == 9 ? 3.0 : index < 15 ? 1.0 : 2.0};
    struct knee knee = knee_find(points, 20, NAN);

    CHECK(knee.verdict == KNEE_FOUND);
    CHECK_U64(knee.pages, 15);
}

static void chaos_is_unclear(struct harness *h)
{
    static const double levels[] = {1.0, 1.6, 2.4, 1.3, 3.1, 2.0, 1.1, 2.8, 1.7, 3.3};
    struct knee_point points[10];

    for (unsigned index = 0; index < 10; index++)
        points[index] = (struct knee_point){index + 1, levels[index]};
    CHECK(knee_find(points, 10, NAN).verdict == KNEE_UNCLEAR);
    CHECK(knee_find_interval(points, NULL, 10, 1).verdict == KNEE_UNCLEAR);
    CHECK(knee_find(points, 2, NAN).verdict == KNEE_UNCLEAR);
    CHECK(knee_find(points, 0, NAN).verdict == KNEE_UNCLEAR);
}

static void odd_capacities_give_no_ways(struct harness *h)
{
    const uint64_t wandering[] = {96, 80, 50, 31, 20, 17, 9, 8};
    const uint64_t short_look[] = {96, 96, 96};
    const uint64_t failed[] = {96, 0, 0, 0, 0, 0, 0, 0};

    CHECK_I64(knee_find_ways(wandering, 8), KNEE_WAYS_UNKNOWN);
    CHECK_I64(knee_find_ways(short_look, 3), KNEE_WAYS_UNKNOWN);
    CHECK_I64(knee_find_ways(failed, 8), KNEE_WAYS_UNKNOWN);
}

static const struct harness_case CASES[] = {
    {"first level of simulated processors, quiet", first_level_quiet},
    {"first level of simulated processors, noise and outliers", first_level_lively},
    {"second level of simulated processors", second_level_interval},
    {"second level of simulated processors, wherever the sweep ends", second_level_wherever_the_sweep_ends},
    {"ways of simulated processors", ways_of_simulated_processors},
    {"recorded Emerald Rapids ladder: first level", recorded_first_level},
    {"recorded Emerald Rapids ladder: second level and penalty", recorded_second_level},
    {"recorded Emerald Rapids, alone on its core: a soft rise", recorded_soft_rise},
    {"a recorded rise with a shelf", recorded_rise_with_a_shelf},
    {"a recorded shelf that the medians show", recorded_shelf_of_medians},
    {"a shelf behind entries that others take", shelf_of_simulated_levels},
    {"recorded Emerald Rapids ladders: ways", recorded_ways},
    {"a flat ladder has no knee", flat_sweep_has_no_knee},
    {"a single outlier is no knee", single_outlier_is_no_knee},
    {"chaos is unclear, not a number", chaos_is_unclear},
    {"odd capacities give no ways", odd_capacities_give_no_ways},
};

HARNESS_MAIN("knee", CASES)
