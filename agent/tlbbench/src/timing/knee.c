/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/knee.h"

#include "base/statistics.h"

/* Constants that name no source were set by hand on the simulated processors of tests/test_knee.c and
 * tests/test_geometry.c and on sweeps recorded on Emerald Rapids, which those tests hold; guests on Zen 3 and Zen 5
 * confirmed them (docs/method-results.md). */
enum {
    PLATEAU_POINTS = 3,        /* fewer points are no plateau */
    PLATEAU_MEDIAN_POINTS = 5, /* the level is the lower median of these, so that two disturbed ones do not lift it */
    LASTING_POINTS = 3,        /* a rise that lasts this long is no outlier */
    SHELF_POINTS_MAX = 32,
};

/* A rise below 5 % is within what placement and frequency do to a latency on a quiet core. */
#define RISE_SHARE 0.05
/* Points of one plateau that differ by more than this are no plateau. */
#define PLATEAU_SPREAD 0.10
/* A hit of the second level takes at least twice a hit of the first on every core in the catalogue; clocks change by
 * less than half between the calibration and a sweep. */
#define PLATEAU_HIT_MAX 1.5
/* A second level is worth a name when missing it costs at least this much more than hitting it. */
#define SECOND_RISE_SHARE 0.25
/* Walks grow with the page tables, so "the top" is read no further than this factor past the soft start. */
#define TOP_FACTOR 8
/* Where TLBs of their real size stand on the rise. Exact LRU and its approximations rise at their size and steeply: at
 * 15 % of the rise they are 1 to 3 % past it, half way 2 to 11 %. Guests on real processors lose entries to others and
 * rise early: at 15 % they are 3 to 12 % short of it, half way 8 to 30 % past. A geometric mean of both crossings that
 * counts the first three times is within 5 % of all of these (tests/test_knee.c). */
#define EARLY_SHARE 0.15
#define LATE_SHARE 0.8
#define EARLY_WEIGHT 0.75
/* Half the width of the interval. The estimate is within 5 % of the real number on every simulated processor; the
 * interval allows twice that. */
#define ESTIMATE_ERROR 0.10
/* Half the rise this far past its start is softer than any simulated level with the policies above: something takes
 * entries all the time, or they are not spread evenly over the sets. Both bring the estimate down, by up to 14 % on
 * Emerald Rapids, and neither moves the half of the rise below the real number. */
#define SOFT_WIDTH 1.35
/* Random replacement rises at its size too, and then slowly: of a share m of misses over x times the entries, 1 - m =
 * exp(-mx). A sweep may end where m is 76 % (1.5 times its half) and takes that for the top: 15 % of it lies 1.04 times
 * as far as 5 %, half 1.15 (LRU: 1.1 at most), 80 % 1.17 times as far as half (others at work: 1.12). */
#define RANDOM_TAIL_MIN 1.12
#define RANDOM_START_MAX 1.1
#define RANDOM_LATE_MIN 1.14
#define RANDOM_EARLY_EXCESS 1.072

/* A rise that rests over this factor of pages, within this share of itself, and then goes on by nearly as much again,
 * has two causes: that of random replacement flattens, and has less left by then. Where it rests every access misses
 * the level; what comes later is no TLB's. On Zen 4 it comes at 4,096 pages, whose table entries fill the first-level
 * data cache. */
#define SHELF_FACTOR 1.18
#define SHELF_SPREAD 0.3
#define SHELF_GOES_ON 0.8
/* Whoever takes entries makes the rise begin early, and moves hardly where it ends: with as many pages as entries,
 * every set that holds one foreign entry misses all of its pages. There the median of a point counts. Its minimum is
 * that of the access permutation and mapping that lost least, which at the end of a rise is luck: on Zen 4 with 3,072
 * entries minima reach this share of the rise anywhere between 2,960 and 3,480 pages, medians between 2,970 and 3,140.
 */
#define SHELF_SHARE 0.9
/* Where nothing takes entries, the whole rise is that of one page too many in every set. Second levels with a shelf
 * have so many ways at least; a rise as short as that is read where it begins. */
#define SHELF_WAYS 8

/* Level of the plateau at the head of the sweep, or NAN when its points disagree. */
static double plateau_level(const struct knee_point *points, size_t count)
{
    size_t looked = count < PLATEAU_MEDIAN_POINTS ? count : PLATEAU_MEDIAN_POINTS;
    double levels[PLATEAU_MEDIAN_POINTS];
    size_t near = 0;

    if (looked < PLATEAU_POINTS)
        return NAN;
    for (size_t index = 0; index < looked; index++)
        levels[index] = points[index].ns;
    statistics_sort(levels, looked);
    double level = levels[(looked - 1) / 2];

    for (size_t index = 0; index < looked; index++)
        near += fabs(levels[index] - level) <= PLATEAU_SPREAD * level ? 1 : 0;
    return near >= PLATEAU_POINTS ? level : NAN;
}

/* Index of the first point of a lasting rise over `limit`, or `count`. */
static size_t first_lasting_rise(const struct knee_point *points, size_t count, double limit)
{
    for (size_t start = 0; start < count; start++) {
        size_t length = 0;

        while (length < LASTING_POINTS && start + length < count && points[start + length].ns > limit)
            length++;
        if (length == LASTING_POINTS || (length > 0 && start + length == count))
            return start;
    }
    return count;
}

struct knee knee_find(const struct knee_point *points, size_t count, double hit_ns)
{
    struct knee knee = {.verdict = KNEE_UNCLEAR, .plateau_ns = NAN};
    double level = plateau_level(points, count);

    if (isnan(level) || level > PLATEAU_HIT_MAX * hit_ns)
        return knee;
    size_t risen = first_lasting_rise(points, count, (1 + RISE_SHARE) * level);

    knee.plateau_ns = level;
    if (risen == count) {
        knee.verdict = KNEE_NONE;
        knee.pages = points[count - 1].pages;
        return knee;
    }
    if (risen < PLATEAU_POINTS)
        return knee;
    knee.verdict = KNEE_FOUND;
    knee.pages = points[risen - 1].pages;
    knee.next_pages = points[risen].pages;
    return knee;
}

/* Pages at which the sweep crosses `level` upward for good, between two points on a logarithmic scale. */
static uint64_t crossing_pages(const struct knee_point *points, size_t count, double level)
{
    size_t above = first_lasting_rise(points, count, level);

    if (above == 0 || above == count)
        return points[above == 0 ? 0 : count - 1].pages;
    const struct knee_point *low = &points[above - 1];
    const struct knee_point *high = &points[above];
    double rise = high->ns - low->ns;
    double share = rise > 0 ? fmin(fmax((level - low->ns) / rise, 0), 1) : 1;

    return (uint64_t)llround((double)low->pages * pow((double)high->pages / (double)low->pages, share));
}

static uint64_t estimate_pages(const struct knee_point *points, size_t count, double level, double rise)
{
    double start = (double)crossing_pages(points, count, level + RISE_SHARE * rise);
    double early = (double)crossing_pages(points, count, level + EARLY_SHARE * rise);
    double half = (double)crossing_pages(points, count, level + 0.5 * rise);
    double late = (double)crossing_pages(points, count, level + LATE_SHARE * rise);

    if (half > RANDOM_TAIL_MIN * early && early < RANDOM_START_MAX * start && late > RANDOM_LATE_MIN * half)
        return (uint64_t)llround(early / RANDOM_EARLY_EXCESS);
    return (uint64_t)llround(pow(early, EARLY_WEIGHT) * pow(half, 1 - EARLY_WEIGHT));
}

/* Highest level that two neighbouring points reach, so that one disturbed point is no top. */
static double lasting_top(const struct knee_point *points, size_t count, size_t risen, uint64_t pages_max)
{
    double top = points[risen].ns;

    if (risen + 1 < count)
        top = fmin(points[risen].ns, points[risen + 1].ns);
    for (size_t index = risen + 1; index < count && points[index].pages <= pages_max; index++)
        top = fmax(top, fmin(points[index - 1].ns, points[index].ns));
    return top;
}

/* Median of the points from `start` over SHELF_FACTOR of pages at least, and their spread; NAN when the sweep ends
 * before. */
static double rest_of_rise(const struct knee_point *points, size_t count, size_t start, double *spread)
{
    double levels[SHELF_POINTS_MAX];
    size_t taken = 0;
    bool whole = false;

    for (; start + taken < count && taken < SHELF_POINTS_MAX && !whole; taken++) {
        const struct knee_point *point = &points[start + taken];

        levels[taken] = point->ns;
        whole = (double)point->pages >= SHELF_FACTOR * (double)points[start].pages;
    }
    if (!whole || taken < PLATEAU_POINTS)
        return NAN;
    double median = statistics_median(levels, taken);

    *spread = levels[taken - 1] - levels[0];
    return median;
}

/* What the points of the flattest rest in a rise from `level` cost that goes on behind it; NAN = it does not rest. */
static double find_shelf(const struct knee_point *points, size_t count, size_t risen, double level)
{
    double shelf = NAN;
    double flattest = SHELF_SPREAD;

    for (size_t start = risen; start < count; start++) {
        double spread = INFINITY;
        double median = rest_of_rise(points, count, start, &spread);
        double rise = median - level;

        if (isnan(median) || rise < SECOND_RISE_SHARE * level || spread > flattest * rise)
            continue;
        size_t on = first_lasting_rise(points + start, count - start, median + SHELF_GOES_ON * rise);

        if (on + 1 < count - start) { /* two points at least */
            flattest = spread / rise;
            shelf = median;
        }
    }
    return shelf;
}

/* Height of a rise that rests, NAN of others. Notes where half of it is done, and where it comes to rest. */
static double rise_to_shelf(const struct knee_point *points, size_t count, double level, struct knee_interval *found)
{
    size_t risen = first_lasting_rise(points, count, (1 + RISE_SHARE) * level);
    double rise = find_shelf(points, count, risen, level) - level;

    if (isnan(rise))
        return NAN;
    found->shelf_pages = crossing_pages(points, count, level + SHELF_SHARE * rise);
    found->half_rise_pages = crossing_pages(points, count, level + 0.5 * rise);
    return rise;
}

/* The same by the medians; by the points where those do not rest. */
static double rise_of_medians(const struct knee_point *points, const double *medians, size_t count, double level,
                              struct knee_interval *found)
{
    struct knee_point middle[KNEE_POINTS_MAX] = {{0, 0}};
    double rise = NAN;

    for (size_t index = 0; medians != NULL && index < count; index++)
        middle[index] = (struct knee_point){points[index].pages, medians[index]};
    if (medians != NULL)
        rise = rise_to_shelf(middle, count, level, found);
    return isnan(rise) ? rise_to_shelf(points, count, level, found) : rise;
}

struct knee_interval knee_find_interval(const struct knee_point *points, const double *medians, size_t count,
                                        uint64_t from_pages)
{
    struct knee_interval found = {.verdict = KNEE_UNCLEAR, .plateau_ns = NAN, .top_ns = NAN};
    size_t first = 0;

    while (first < count && points[first].pages < from_pages)
        first++;
    const struct knee_point *rest = points + first;
    size_t rest_count = count - first;
    double level = plateau_level(rest, rest_count);

    if (isnan(level))
        return found;
    found.plateau_ns = level;
    size_t risen = first_lasting_rise(rest, rest_count, (1 + RISE_SHARE) * level);

    if (risen == rest_count) {
        found.verdict = KNEE_NONE;
        found.soft_start_pages = rest[rest_count - 1].pages;
        return found;
    }
    if (risen < PLATEAU_POINTS)
        return found;
    found.soft_start_pages = rest[risen - 1].pages;
    found.top_ns = lasting_top(rest, rest_count, risen, TOP_FACTOR * found.soft_start_pages);
    if (found.top_ns - level < SECOND_RISE_SHARE * level) {
        found.verdict = KNEE_NONE;
        return found;
    }
    found.verdict = KNEE_FOUND;
    double rise = rise_of_medians(rest, medians != NULL ? medians + first : NULL, rest_count, level, &found);

    if (isnan(rise)) {
        rise = found.top_ns - level;
        size_t half = first_lasting_rise(rest, rest_count, level + 0.5 * rise);

        found.half_rise_pages = rest[half < rest_count ? half : rest_count - 1].pages;
    }
    found.estimate_pages = estimate_pages(rest, rest_count, level, rise);
    if (found.shelf_pages * SHELF_WAYS > found.soft_start_pages * (SHELF_WAYS + 1))
        found.estimate_pages = found.shelf_pages;
    if (found.estimate_pages < found.soft_start_pages)
        found.estimate_pages = found.soft_start_pages;
    double estimate = (double)found.estimate_pages;
    bool soft = found.shelf_pages == 0 && (double)found.half_rise_pages > SOFT_WIDTH * (double)found.soft_start_pages;

    found.least_pages = (uint64_t)ceil((1 - ESTIMATE_ERROR) * estimate);
    found.most_pages = (uint64_t)((1 + ESTIMATE_ERROR) * estimate);
    if (soft && found.half_rise_pages > found.most_pages)
        found.most_pages = found.half_rise_pages;
    return found;
}

/* Knees of small sweeps are exact to one page; larger ones to a few percent. */
static int is_near(uint64_t left, uint64_t right)
{
    double difference = fabs((double)left - (double)right);

    return difference <= fmax(1, 0.06 * (double)right);
}

int knee_find_ways(const uint64_t *capacity, size_t count)
{
    enum { SAME_FOR_STRIDES = 3, FULL_STRIDES = 6 };
    size_t same = 1;

    while (same < count && is_near(capacity[same], capacity[0]))
        same++;
    if (same == count)
        return count > FULL_STRIDES ? KNEE_WAYS_FULL : KNEE_WAYS_UNKNOWN;
    if (same > 1)
        return KNEE_WAYS_UNKNOWN; /* the index is not made of the low page-number bits */
    size_t halved = 1;

    while (halved < count && is_near(2 * capacity[halved], capacity[halved - 1]))
        halved++;
    uint64_t ways = capacity[halved - 1];

    for (size_t index = halved - 1; index < halved - 1 + SAME_FOR_STRIDES; index++)
        if (index >= count || !is_near(capacity[index], ways))
            return KNEE_WAYS_UNKNOWN;
    return (int)ways;
}
