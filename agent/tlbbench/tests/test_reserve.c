/* SPDX-License-Identifier: Apache-2.0 */
/* Reservation and recovery on a made-up /sys in a temporary folder. */
#include "base/verdict.h"
#include "harness.h"
#include "memory/backing.h"
#include "memory/reservation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fake {
    char root[64];
    char sysfs[96];
    char pool[192];
    char journals[96];
    char journal[128];
    struct reserve_paths places;
};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    if (file != NULL) {
        (void)fputs(text, file);
        (void)fclose(file);
    }
}

static long read_count(const struct fake *fake, const char *field)
{
    char path[256];
    long count = -1;

    (void)snprintf(path, sizeof(path), "%s/%s", fake->pool, field);
    FILE *file = fopen(path, "r");

    if (file != NULL) {
        if (fscanf(file, "%ld", &count) != 1)
            count = -1;
        (void)fclose(file);
    }
    return count;
}

static void set_count(const struct fake *fake, const char *field, long count)
{
    char path[256];
    char text[32];

    (void)snprintf(path, sizeof(path), "%s/%s", fake->pool, field);
    (void)snprintf(text, sizeof(text), "%ld\n", count);
    write_text(path, text);
}

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

static bool fake_open(struct fake *fake, long nr, long free_pages)
{
    (void)snprintf(fake->root, sizeof(fake->root), "/tmp/test-reserve-XXXXXX");
    if (mkdtemp(fake->root) == NULL)
        return false;
    (void)snprintf(fake->sysfs, sizeof(fake->sysfs), "%s/sys", fake->root);
    (void)snprintf(fake->pool, sizeof(fake->pool), "%s/kernel/mm/hugepages/hugepages-2048kB", fake->sysfs);
    (void)snprintf(fake->journals, sizeof(fake->journals), "%s/run", fake->root);
    (void)snprintf(fake->journal, sizeof(fake->journal), "%s/journal", fake->journals);
    make_folders(fake->pool);
    set_count(fake, "nr_hugepages", nr);
    set_count(fake, "free_hugepages", free_pages);
    fake->places = (struct reserve_paths){.sysfs = fake->sysfs, .journal_dir = fake->journals};
    return true;
}

static void fake_close(const struct fake *fake)
{
    char command[160];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", fake->root);
    if (system(command) != 0)
        (void)fprintf(stderr, "%s was not removed\n", fake->root);
}

static void restored_counts(struct harness *h)
{
    struct reserve_pool noted = {.previous = 10, .held = 50, .noted = true};
    struct reserve_pool under_way = {.previous = 10, .held = 50};
    struct reserve_pool none = {.previous = 0, .held = 0};

    CHECK_I64(reserve_restored_count(&noted, 50), 10); /* as we left it */
    CHECK_I64(reserve_restored_count(&noted, 30), 30); /* whatever else it is, somebody set it since */
    CHECK_I64(reserve_restored_count(&noted, 60), 60);
    CHECK_I64(reserve_restored_count(&noted, 4), 4);
    CHECK_I64(reserve_restored_count(&noted, 10), 10);
    /* Killed before what the kernel made of it was noted: anything on the way may be the kernel's. */
    CHECK_I64(reserve_restored_count(&under_way, 30), 10);
    CHECK_I64(reserve_restored_count(&under_way, 50), 10);
    CHECK_I64(reserve_restored_count(&under_way, 51), 51);
    CHECK_I64(reserve_restored_count(&under_way, 9), 9);
    CHECK_I64(reserve_restored_count(&none, 0), 0);
}

static void journal_lines(struct harness *h)
{
    struct reserve_pool pool = {.page_bytes = 2097152, .node = 1, .previous = 7, .target = 1007};
    struct reserve_pool parsed;
    char line[RESERVE_LINE_BYTES];

    reserve_format_line(&pool, line);
    CHECK(reserve_parse_line(line, &parsed));
    CHECK_U64(parsed.page_bytes, 2097152);
    CHECK_I64(parsed.node, 1);
    CHECK_I64(parsed.previous, 7);
    CHECK_I64(parsed.target, 1007);
    CHECK(!parsed.noted);
    pool.noted = true;
    pool.held = 900;
    reserve_format_line(&pool, line);
    CHECK(reserve_parse_line(line, &parsed));
    CHECK_I64(parsed.held, 900);
    CHECK(parsed.noted);
    /* Cut anywhere it must not parse: "target=1" would be a wrong count. */
    for (size_t length = strlen(line) - 2; length > 0; length--) {
        line[length] = '\0';
        CHECK(!reserve_parse_line(line, &parsed));
    }
    CHECK(!reserve_parse_line("pool page_bytes=2097152 node=0 former=-1 target=3.", &parsed));
    CHECK(!reserve_parse_line("pool page_bytes=2097152 node=0 former=5 target=3.", &parsed));
    CHECK(!reserve_parse_line("pool page_bytes=0 node=0 former=1 target=3.", &parsed));
    CHECK(!reserve_parse_line("pool page_bytes=2097152 node=0 former=1 other=3.", &parsed));
}

static void takes_and_gives_back(struct harness *h)
{
    struct fake fake;
    struct reservation reservation;

    if (!fake_open(&fake, 3, 1)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    CHECK(reservation_begin(&reservation, &fake.places) == 0);
    reservation_take(&reservation, 2097152, -1, 100);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 102); /* one was free, two are in use */
    CHECK(access(fake.journal, F_OK) == 0);
    reservation_take(&reservation, 2097152, -1, 1); /* enough are free already */
    CHECK_U64(reservation.pool_count, 1);
    CHECK(reservation_end(&reservation) == 0);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 3);
    CHECK(access(fake.journals, F_OK) != 0);
    CHECK(reservation_end(&reservation) == 0);
    fake_close(&fake);
}

static void second_run_is_refused(struct harness *h)
{
    struct fake fake;
    struct reservation first, second;

    if (!fake_open(&fake, 0, 0)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    CHECK(reservation_begin(&first, &fake.places) == 0);
    CHECK(reservation_begin(&second, &fake.places) == -1);
    CHECK(second.verdict.status == STATUS_SKIPPED);
    CHECK_I64(reservation_recover(&fake.places, true), 0); /* a living run is left alone */
    CHECK(reservation_end(&second) == 0);
    CHECK(access(fake.journal, F_OK) == 0);
    CHECK(reservation_end(&first) == 0);
    fake_close(&fake);
}

/* Ends as a kill would: nothing is given back. */
static void run_and_die(const struct fake *fake, int64_t pages)
{
    pid_t child = fork();

    if (child == 0) {
        struct reservation reservation;

        if (reservation_begin(&reservation, &fake->places) == 0)
            reservation_take(&reservation, 2097152, -1, pages);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

/* A database that starts has pages promised that it has not touched yet: they are not free. */
static void promised_pages_are_left_alone(struct harness *h)
{
    struct fake fake;
    struct reservation reservation;

    if (!fake_open(&fake, 100, 100)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    set_count(&fake, "resv_hugepages", 90);
    CHECK_I64(backing_free_pages(fake.places.sysfs, 2097152, -1), 10);
    CHECK(reservation_begin(&reservation, &fake.places) == 0);
    reservation_take(&reservation, 2097152, -1, 30);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 120);
    CHECK(reservation_end(&reservation) == 0);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 100);
    set_count(&fake, "resv_hugepages", 500);
    CHECK_I64(backing_free_pages(fake.places.sysfs, 2097152, -1), 0);
    fake_close(&fake);
}

/* The lock of a killed run can come free between the look for such runs at the start and the reservation. */
static void next_reservation_mends_too(struct harness *h)
{
    struct fake fake;
    struct reservation reservation;

    if (!fake_open(&fake, 4, 0)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    run_and_die(&fake, 60);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 64);
    CHECK(reservation_begin(&reservation, &fake.places) == 0);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 4);
    reservation_take(&reservation, 2097152, -1, 10);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 14);
    CHECK(reservation_end(&reservation) == 0);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 4);
    fake_close(&fake);
}

/* Pages lent beyond the count go by themselves: they are not part of what is written back. */
static void surplus_is_not_kept(struct harness *h)
{
    struct fake fake;
    struct reservation reservation;

    if (!fake_open(&fake, 5, 0)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    set_count(&fake, "surplus_hugepages", 5);
    CHECK(reservation_begin(&reservation, &fake.places) == 0);
    reservation_take(&reservation, 2097152, -1, 10);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 15); /* five in use, ten free */
    CHECK_I64(reservation.pools[0].previous, 0);
    /* The kernel counts the five in while there is room, which the folder here does not. */
    reservation.pools[0].held = 15;
    set_count(&fake, "surplus_hugepages", 0);
    CHECK(reservation_end(&reservation) == 0);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 0);
    fake_close(&fake);
}

static void write_journal(struct fake *fake, const char *lines)
{
    char head[RESERVE_HEAD_BYTES];
    char text[512];

    reserve_journal_head(head);
    (void)snprintf(text, sizeof(text), "%s%s", head, lines);
    make_folders(fake->journals);
    write_text(fake->journal, text);
}

/* What a kill leaves at each step, and the count that the next start makes of it: the previous one, 5, unless somebody
 * set another since. */
static void killed_at_each_step(struct harness *h)
{
#define POOL "pool page_bytes=2097152 node=-1 former=5 "
    static const struct {
        const char *lines;
        int64_t current, restored;
    } cases[] = {
        {"", 5, 5},                                                         /* before anything was written */
        {POOL "target=50.\n", 5, 5},                                        /* before the pool was */
        {POOL "target=50.\n", 30, 5},                                       /* while the kernel looked for pages */
        {POOL "target=50.\n", 50, 5},                                       /* before that was noted */
        {POOL "target=50.\n" POOL "held", 50, 5},                           /* while it was noted */
        {POOL "target=50.\n", 51, 51},                                      /* somebody set it since */
        {POOL "target=50.\n" POOL "held=30.\n", 30, 5},                     /* while it measured */
        {POOL "target=50.\n" POOL "held=30.\n", 320, 320},                  /* somebody set it since */
        {POOL "target=50.\n" POOL "held=30.\n", 20, 20},                    /* and lower */
        {POOL "target=50.\n" POOL "held=30.\n" POOL "target=80.\n", 60, 5}, /* while it took more */
        {POOL "target=50.\n" POOL "target=30.\n", 30, 5},                   /* as the version before wrote it */
    };
#undef POOL

    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        struct fake fake;

        if (!fake_open(&fake, cases[index].current, 0)) {
            harness_skip(h, "no temporary folder");
            return;
        }
        write_journal(&fake, cases[index].lines);
        bool is_raised = cases[index].restored != cases[index].current;

        CHECK_I64(reservation_recover(&fake.places, false), is_raised ? 1 : 0);
        CHECK_I64(reservation_recover(&fake.places, true), is_raised ? 1 : 0);
        CHECK_I64(read_count(&fake, "nr_hugepages"), cases[index].restored);
        CHECK(access(fake.journal, F_OK) != 0);
        fake_close(&fake);
    }
}

static void killed_run_is_recovered(struct harness *h)
{
    struct fake fake;

    if (!fake_open(&fake, 4, 0)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    run_and_die(&fake, 60);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 64);
    CHECK_I64(reservation_recover(&fake.places, true), 1);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 4);
    CHECK(access(fake.journals, F_OK) != 0);
    CHECK_I64(reservation_recover(&fake.places, true), 0);
    fake_close(&fake);
}

static void journal_of_another_boot_is_dropped(struct harness *h)
{
    struct fake fake;

    if (!fake_open(&fake, 50, 50)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    make_folders(fake.journals);
    write_text(fake.journal, "tlbbench reservation 1, boot 00000000-0000-0000-0000-000000000000\n"
                             "pool page_bytes=2097152 node=-1 former=1 target=60.\n");
    CHECK_I64(reservation_recover(&fake.places, true), 0);
    CHECK_I64(read_count(&fake, "nr_hugepages"), 50);
    CHECK(access(fake.journal, F_OK) != 0);
    fake_close(&fake);
}

static void planted_journal_is_not_obeyed(struct harness *h)
{
    struct fake fake;

    if (!fake_open(&fake, 50, 50)) {
        harness_skip(h, "no temporary folder");
        return;
    }
    make_folders(fake.journals);
    (void)chmod(fake.journals, 0777); /* others may write here */
    write_text(fake.journal, "anything\n");
    CHECK_I64(reservation_recover(&fake.places, true), 0);
    CHECK(access(fake.journal, F_OK) == 0);
    struct reservation reservation;

    CHECK(reservation_begin(&reservation, &fake.places) == -1);
    CHECK(reservation.verdict.status == STATUS_NOT_PERMITTED);
    fake_close(&fake);
}

static const struct harness_case CASES[] = {
    {"counts to restore", restored_counts},
    {"journal lines", journal_lines},
    {"takes and gives back", takes_and_gives_back},
    {"promised pages are left alone", promised_pages_are_left_alone},
    {"a second run is refused", second_run_is_refused},
    {"a killed run is recovered", killed_run_is_recovered},
    {"the next reservation mends too", next_reservation_mends_too},
    {"surplus is not kept", surplus_is_not_kept},
    {"a kill at each step", killed_at_each_step},
    {"a journal of another boot is dropped", journal_of_another_boot_is_dropped},
    {"a planted journal is not obeyed", planted_journal_is_not_obeyed},
};

HARNESS_MAIN("reserve", CASES)
