/* SPDX-License-Identifier: Apache-2.0 */
/* When a core counts as shared with a SMT sibling. The probe's figures are scripted: issue_throughput_probe() is
 * replaced by the linker (meson.build). */
#include "harness.h"
#include "timing/smt_watch.h"

#include <math.h>

double __wrap_issue_throughput_probe(void);
double __real_issue_throughput_probe(void);

enum { TAUGHT_LOOKS = 16, ODD_PROBES = 6 };

static double next_width;

double __wrap_issue_throughput_probe(void)
{
    return next_width;
}

static bool look(struct smt_watch *watch, double width)
{
    next_width = width;
    return smt_watch_sample(watch);
}

/* A watch that knows the core alone. */
static struct smt_watch taught(double width)
{
    struct smt_watch watch = {.samples = 0};

    for (unsigned time = 0; time < TAUGHT_LOOKS; time++)
        (void)look(&watch, width);
    return watch;
}

static void narrower_is_shared(struct harness *h)
{
    struct smt_watch watch = taught(3.8);

    CHECK(look(&watch, 3.8));
    CHECK(look(&watch, 3.55));
    CHECK(!look(&watch, 3.3));
    CHECK(!look(&watch, 2.3));
    CHECK(look(&watch, 3.8));
}

static void interrupted_probes_count_as_shared(struct harness *h)
{
    struct smt_watch watch = taught(3.8);

    CHECK(!look(&watch, NAN));
    CHECK(look(&watch, 3.8));
}

/* Probes that went wrong may look very wide: a handful of them must not make the core look shared ever after. */
static void odd_probes_do_no_harm(struct harness *h)
{
    struct smt_watch watch = taught(3.8);

    for (unsigned time = 0; time < ODD_PROBES; time++)
        (void)look(&watch, 200);
    CHECK(look(&watch, 3.8));
    /* Nor do as many for every few thousand. */
    for (unsigned round = 0; round < ODD_PROBES; round++) {
        for (unsigned time = 0; time < 4000; time++)
            (void)look(&watch, time % 100 == 0 ? 3.8 : 2.2);
        (void)look(&watch, 4.3);
        CHECK(look(&watch, 3.8));
    }
}

static void nothing_is_known_at_first(struct harness *h)
{
    struct smt_watch watch = {.samples = 0};

    CHECK(isnan(smt_watch_idle_share(&watch)));
    CHECK(look(&watch, NAN));
    CHECK(look(&watch, 0.5));
    CHECK(smt_watch_idle_share(&watch) == 1);
}

static void share_of_the_looks(struct harness *h)
{
    struct smt_watch watch = taught(3.8);

    for (unsigned time = 0; time < 3 * TAUGHT_LOOKS; time++)
        (void)look(&watch, 2.2);
    CHECK(smt_watch_idle_share(&watch) == 0.25);
}

/* Every x86 server core is wider than this, so that a sibling that never pauses shows, too. */
static void always_narrow(struct harness *h)
{
    struct smt_watch watch = taught(2.2);

#if defined(__x86_64__)
    CHECK(!look(&watch, 2.2));
#else
    CHECK(look(&watch, 2.2));
#endif
}

static void the_probe_gives_a_width(struct harness *h)
{
    unsigned known = 0;

    for (unsigned time = 0; time < 1000; time++) {
        double width = __real_issue_throughput_probe();

        known += width > 0 && isfinite(width) ? 1 : 0;
    }
    if (known == 0)
        harness_skip(h, "no probe of 1000 went through undisturbed (an emulator?)");
}

static const struct harness_case CASES[] = {
    {"narrower is shared", narrower_is_shared},
    {"interrupted probes count as shared", interrupted_probes_count_as_shared},
    {"odd probes do no harm", odd_probes_do_no_harm},
    {"nothing is known at first", nothing_is_known_at_first},
    {"share of the looks", share_of_the_looks},
    {"a core that is always narrow", always_narrow},
    {"the probe gives a width", the_probe_gives_a_width},
};
HARNESS_MAIN("smt_watch", CASES)
