/* SPDX-License-Identifier: Apache-2.0 */
/* Counting page walks on a processor that is simulated beneath perf_event_open: what is opened, how counts are scaled
 * and joined, and what is said where something is missing. */
#include "base/clock.h"
#include "counters/counters.h"
#include "counters/events.h"
#include "harness.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FDS_MAX = 512, FIRST_FD = 1000 };

static struct {
    struct perf_event_attr attributes;
    int pid, cpu, leader;
    unsigned long flags;
    bool is_open, is_on;
} fds[FDS_MAX];
static int fd_count, most_fds;
/* The simulated processor: what an event of this type, config and mode counts; the errno of opening it. */
static int (*refuse)(const struct perf_event_attr *attributes);
static struct count_reading (*count)(const struct perf_event_attr *attributes, int pid);

static int fake_open(struct perf_event_attr *attributes, int pid, int cpu, int group_fd, unsigned long flags)
{
    int error = refuse != NULL ? refuse(attributes) : 0;

    if (error == 0 && fd_count >= most_fds)
        error = EMFILE;
    if (error != 0)
        return -error;
    fds[fd_count].attributes = *attributes;
    fds[fd_count].pid = pid;
    fds[fd_count].cpu = cpu;
    fds[fd_count].leader = group_fd;
    fds[fd_count].flags = flags;
    fds[fd_count].is_open = true;
    return FIRST_FD + fd_count++;
}

static bool fake_enable(int fd, bool on)
{
    fds[fd - FIRST_FD].is_on = on;
    return true;
}

static bool fake_read(int fd, struct count_reading *reading)
{
    *reading = count(&fds[fd - FIRST_FD].attributes, fds[fd - FIRST_FD].pid);
    return true;
}

static void fake_close(int fd)
{
    fds[fd - FIRST_FD].is_open = false;
}

static const struct perf_kernel FAKE = {fake_open, fake_enable, fake_read, fake_close};

static bool is_software(const struct perf_event_attr *attributes)
{
    return attributes->type == PERF_TYPE_SOFTWARE;
}

/* A Skylake server of which user code has 8e9 cycles, 10 % of them with walks of loads, 2 % of stores and 1 % of
 * fetches; the kernel 2e9 cycles and 5 % of loads. Each group was on the processor half of the time. */
static struct count_reading skylake(const struct perf_event_attr *attributes, int pid)
{
    double scale = attributes->exclude_kernel ? 8e9 : 2e9;
    double load = attributes->exclude_kernel ? 0.10 : 0.05;
    double value = 0.0;

    (void)pid;
    if (is_software(attributes))
        return (struct count_reading){attributes->config == PERF_COUNT_SW_TASK_CLOCK ? 4000000000U : 100, 1, 1};
    if (attributes->type == PERF_TYPE_HARDWARE)
        value = attributes->config == PERF_COUNT_HW_CPU_CYCLES ? scale : 1.5 * scale;
    else if (attributes->config == 0x1001008)
        value = load * scale;
    else if (attributes->config == 0x1001049)
        value = attributes->exclude_kernel ? 0.02 * scale : 0.0;
    else if (attributes->config == 0x1001085)
        value = attributes->exclude_kernel ? 0.01 * scale : 0.0;
    else
        value = 1000.0 + 2.0 * (double)(attributes->config & 0xff);
    return (struct count_reading){(uint64_t)(value / 2.0), 4000, 2000};
}

static void simulate(int (*refused)(const struct perf_event_attr *),
                     struct count_reading (*counted)(const struct perf_event_attr *, int))
{
    memset(fds, 0, sizeof(fds));
    fd_count = 0;
    most_fds = FDS_MAX;
    refuse = refused;
    count = counted;
}

static struct counters_result measure_on(const char *processor)
{
    static struct counters_result result;
    struct counters_request request = {.pid = getpid(), .seconds = 0.02};

    counters_measure(&request, processor, &FAKE, &result);
    return result;
}

static bool near(double actual, double expected)
{
    return fabs(actual - expected) <= 1e-6 * fabs(expected) + 1e-12;
}

static void all_is_closed_and_off(struct harness *h)
{
    for (int i = 0; i < fd_count; i++)
        CHECK(!fds[i].is_open && !fds[i].is_on);
}

static void shares_and_scaling(struct harness *h)
{
    simulate(NULL, skylake);
    struct counters_result result = measure_on("intel-skylake-sp");

    CHECK_TEXT(result.verdict.reason, "");
    CHECK(near(result.modes[COUNT_USER].values[COUNT_CYCLES], 8e9));
    CHECK(near(result.modes[COUNT_USER].walk_fraction, 0.13));
    CHECK(near(result.modes[COUNT_KERNEL].walk_fraction, 0.05));
    CHECK(near(result.total.walk_fraction, (0.13 * 8e9 + 0.05 * 2e9) / 10e9));
    CHECK(near(result.total.values[COUNT_INSTRUCTIONS], 15e9));
    CHECK(near(result.running_fraction, 0.5));
    CHECK(near(result.modes[COUNT_USER].values[COUNT_DATA_WALKS], 2.0 * (1000.0 + 0x08 + 0x49)));
    CHECK(near(result.modes[COUNT_USER].values[COUNT_L2_HITS], 3.0 * 1000.0 + 2.0 * (0x08 + 0x49 + 0x85)));
    all_is_closed_and_off(h);
}

/* Members start with their leader, threads that start later are counted, user and kernel apart. */
static void what_is_opened(struct harness *h)
{
    simulate(NULL, skylake);
    struct counters_result result = measure_on("intel-skylake-sp");
    int leaders[2] = {0, 0};

    CHECK_U64(result.count, 2 * 3 * 5);
    for (size_t i = 0; i < result.count; i++) {
        const struct perf_event_attr *attributes = &fds[i].attributes;

        CHECK_I64(fds[i].pid, getpid());
        CHECK_I64(fds[i].cpu, -1);
        CHECK(attributes->inherit && fds[i].flags == PERF_FLAG_FD_CLOEXEC && attributes->sample_period == 0);
        CHECK(attributes->exclude_user != attributes->exclude_kernel);
        CHECK(attributes->disabled == (fds[i].leader < 0));
        leaders[attributes->exclude_user] += fds[i].leader < 0 ? 1 : 0;
    }
    CHECK_I64(leaders[0], 3);
    CHECK_I64(leaders[1], 3);
}

static int no_pmu(const struct perf_event_attr *attributes)
{
    return is_software(attributes) ? 0 : ENOENT;
}

static int denied(const struct perf_event_attr *attributes)
{
    (void)attributes;
    return EACCES;
}

static int kernel_denied(const struct perf_event_attr *attributes)
{
    return attributes->exclude_kernel ? 0 : EACCES;
}

static int stores_unknown(const struct perf_event_attr *attributes)
{
    return attributes->type == PERF_TYPE_RAW && (attributes->config & 0xff) == 0x49 ? EINVAL : 0;
}

static void absence_and_permission_differ(struct harness *h)
{
    simulate(no_pmu, skylake);
    struct counters_result result = measure_on("intel-skylake-sp");

    CHECK_I64(result.verdict.status, STATUS_UNSUPPORTED);
    CHECK(strstr(result.verdict.reason, "no PMU") != NULL && strstr(result.verdict.reason, "pmu=on") != NULL);
    CHECK(isnan(result.total.walk_fraction));
    all_is_closed_and_off(h);
    simulate(denied, skylake);
    result = measure_on("intel-skylake-sp");
    CHECK_I64(result.verdict.status, STATUS_NOT_PERMITTED);
    CHECK(strstr(result.verdict.reason, "CAP_PERFMON") != NULL && strstr(result.verdict.reason, "paranoid") != NULL);
    simulate(kernel_denied, skylake);
    result = measure_on("intel-skylake-sp");
    CHECK_I64(result.verdict.status, STATUS_OK);
    CHECK(near(result.modes[COUNT_USER].walk_fraction, 0.13));
    CHECK(isnan(result.modes[COUNT_KERNEL].walk_fraction) && isnan(result.total.walk_fraction));
    CHECK_I64(result.kernel_verdict.status, STATUS_NOT_PERMITTED);
}

static void an_unknown_event_leaves_its_sum_unknown(struct harness *h)
{
    simulate(stores_unknown, skylake);
    struct counters_result result = measure_on("intel-skylake-sp");

    CHECK(isnan(result.modes[COUNT_USER].walk_fraction) && isnan(result.modes[COUNT_USER].values[COUNT_DATA_WALKS]));
    CHECK(near(result.modes[COUNT_USER].values[COUNT_INSTRUCTION_WALKS], 1000.0 + 2.0 * 0x85));
}

static struct count_reading filtered(const struct perf_event_attr *attributes, int pid)
{
    struct count_reading reading = skylake(attributes, pid);

    reading.value = attributes->type == PERF_TYPE_RAW ? 0 : reading.value;
    return reading;
}

static struct count_reading never_counted(const struct perf_event_attr *attributes, int pid)
{
    (void)pid;
    return (struct count_reading){0, 4000, is_software(attributes) ? 4000 : 0};
}

static struct count_reading asleep(const struct perf_event_attr *attributes, int pid)
{
    (void)attributes;
    (void)pid;
    return (struct count_reading){0, 0, 0};
}

static struct count_reading switching(const struct perf_event_attr *attributes, int pid)
{
    if (is_software(attributes)) /* a billion switches per second of processor time cost more than the bound anywhere */
        return (struct count_reading){attributes->config == PERF_COUNT_SW_TASK_CLOCK ? 1000000 : 1000000, 1, 1};
    return skylake(attributes, pid);
}

static void zero_is_not_believed(struct harness *h)
{
    simulate(NULL, filtered);
    struct counters_result result = measure_on("intel-skylake-sp");

    CHECK_I64(result.verdict.status, STATUS_CANNOT_TELL);
    CHECK(strstr(result.verdict.reason, "filter") != NULL);
    CHECK(isnan(result.total.walk_fraction) && isnan(result.total.values[COUNT_DATA_WALKS]));
    CHECK(near(result.total.values[COUNT_CYCLES], 10e9));
    simulate(NULL, never_counted);
    result = measure_on("intel-skylake-sp");
    CHECK(isnan(result.total.values[COUNT_CYCLES]) && isnan(result.total.walk_fraction));
    simulate(NULL, asleep);
    result = measure_on("intel-skylake-sp");
    CHECK_I64(result.verdict.status, STATUS_CANNOT_TELL);
    CHECK(isnan(result.total.walk_fraction));
}

static void too_dear_stops(struct harness *h)
{
    struct counters_request request = {.pid = getpid(), .seconds = 20.0};
    static struct counters_result result;

    simulate(NULL, switching);
    counters_measure(&request, "intel-skylake-sp", &FAKE, &result);
    CHECK_I64(result.verdict.status, STATUS_STOPPED);
    CHECK(result.overhead_fraction > COUNTERS_MOST_OVERHEAD && result.seconds < 15.0);
    CHECK(near(result.modes[COUNT_USER].walk_fraction, 0.13));
}

static sem_t may_end;

static void *wait_for_end(void *unused)
{
    (void)sem_wait(&may_end);
    return unused;
}

/* The main thread was counted half of its time, the others a quarter: each is scaled by its own part. */
static struct count_reading two_threads(const struct perf_event_attr *attributes, int pid)
{
    uint64_t part = pid == getpid() ? 2 : 4;

    (void)attributes;
    return (struct count_reading){1000, 1000, 1000 / part};
}

static void threads_and_children(struct harness *h)
{
    pthread_t thread;
    int ends[2];
    char byte;

    (void)sem_init(&may_end, 0, 0);
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, wait_for_end, NULL) != 0) {
        harness_fail(h, __FILE__, __LINE__, "no pipe or thread");
        return;
    }
    pid_t child = fork();

    if (child == 0) {
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(ends[0]);
    simulate(NULL, two_threads);
    struct counters_result result = measure_on("amd-zen4-genoa");

    CHECK_U64(result.threads, 3);
    CHECK_U64(result.threads_counted, 3);
    CHECK(near(result.modes[COUNT_USER].values[COUNT_CYCLES], 2000.0 + 4000.0 + 4000.0));
    simulate(NULL, two_threads);
    most_fds = 20; /* a thread of Zen has 14 */
    result = measure_on("amd-zen4-genoa");
    CHECK_U64(result.threads_counted, 1);
    CHECK_U64(result.threads, 3);
    CHECK(near(result.modes[COUNT_USER].values[COUNT_CYCLES], 2000.0));
    all_is_closed_and_off(h);
    (void)close(ends[1]);
    (void)waitpid(child, NULL, 0);
    (void)sem_post(&may_end);
    (void)pthread_join(thread, NULL);
}

static struct count_reading neoverse(const struct perf_event_attr *attributes, int pid)
{
    uint64_t value = attributes->config == 0x2f   ? 900
                     : attributes->config == 0x2d ? 300
                     : attributes->config >> 8    ? 50
                                                  : 1000;

    (void)pid;
    return (struct count_reading){value, 10, 10};
}

static void differences_and_processors_without_walk_cycles(struct harness *h)
{
    simulate(NULL, neoverse);
    struct counters_result result = measure_on("arm-neoverse-n1");

    CHECK(near(result.modes[COUNT_USER].values[COUNT_L2_HITS], 600.0));
    CHECK(isnan(result.modes[COUNT_USER].walk_fraction));
    simulate(NULL, neoverse);
    result = measure_on("arm-neoverse-v3");
    CHECK(near(result.modes[COUNT_USER].walk_fraction, 0.1));
    CHECK_I64(result.set->walk_cycles, WALK_CYCLES_PENDING);
    simulate(NULL, neoverse);
    result = measure_on(NULL);
    CHECK_TEXT(result.set->id, "generic");
    CHECK_I64(fds[2].attributes.type, PERF_TYPE_HW_CACHE);
    CHECK_U64(fds[2].attributes.config, 0x10003);
}

static void nobody_there(struct harness *h)
{
    static struct counters_result result;
    struct counters_request request = {.pid = 0x7fffffff, .seconds = 0.01};

    simulate(NULL, skylake);
    counters_measure(&request, NULL, &FAKE, &result);
    CHECK_TEXT(result.verdict.reason, "--pid: there is no process 2147483647");
    request = (struct counters_request){.cgroup = "/no/such/group", .seconds = 0.01};
    counters_measure(&request, NULL, &FAKE, &result);
    CHECK(strstr(result.verdict.reason, "/sys/fs/cgroup/no/such/group") != NULL);
    CHECK_I64(fd_count, 0);
}

/* --- the published tables ------------------------------------------------------------------------------------------
 */

/* The published encoding of an event within the text of its set: "NAME": ["code", "unit mask", "counter mask"]. */
static bool published(const char *events, const char *name, unsigned long fields[3])
{
    char wanted[96];
    int length = snprintf(wanted, sizeof(wanted), "\"%s\": [", name);
    const char *found = strstr(events, wanted);

    for (int i = 0; found != NULL && i < 3; i++) {
        found = i == 0 ? found + length + 1 : strchr(found, ',') + 3;
        fields[i] = strtoul(found, NULL, 0);
    }
    return found != NULL;
}

/* AMD publishes a unit mask per page size and result: "all" of a result is their union. */
static void published_union(char *events, const char *ending, unsigned long fields[3])
{
    char *end = events;

    fields[0] = fields[1] = fields[2] = 0;
    for (char *line = strtok_r(events, "\n", &end); line != NULL; line = strtok_r(NULL, "\n", &end)) {
        const char *quote = strchr(line + strspn(line, " \""), '"');
        size_t length = strlen(ending);
        unsigned long one[3];
        char name[96];

        if (strstr(line, "\"ls_l1_d_tlb_miss.") == NULL || quote == NULL ||
            strncmp(quote - length, ending, length) != 0)
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(quote - line - (long)strspn(line, " \"")),
                       line + strspn(line, " \""));
        if (published(line, name, one)) {
            fields[0] = one[0];
            fields[1] |= one[1];
        }
    }
}

static const char *const PROCESSORS[] = {
    "intel-skylake-sp",     "intel-cascade-lake-sp", "intel-icelake-sp",    "intel-sapphire-rapids",
    "intel-emerald-rapids", "intel-granite-rapids",  "intel-sierra-forest", "amd-zen1-naples",
    "amd-zen2-rome",        "amd-zen3-milan",        "amd-zen4-genoa",      "amd-zen5-turin",
    "arm-neoverse-n1",      "arm-neoverse-v1",       "arm-neoverse-n2",     "arm-neoverse-v2",
    "arm-neoverse-n3",      "arm-neoverse-v3",       "ampere-one",          "ibm-power9",
    "ibm-power10"};

static void check_processor(struct harness *h, const char *tables, const char *id)
{
    const struct event_set *set = event_set_find(id);
    char wanted[64];
    char events[4096];

    (void)snprintf(wanted, sizeof(wanted), "\"%s\": {", id);
    const char *found = strstr(tables, wanted);

    CHECK_TEXT(set->id, id);
    CHECK(found != NULL && set->source[0] != '\0' && strlen(set->date) == 10);
    for (size_t i = 0; found != NULL && i < set->count; i++) {
        const struct pmu_event *event = &set->events[i];
        const char *all = strstr(event->name, ".all_l2_");
        unsigned long fields[3] = {0, 0, 0};

        (void)snprintf(events, sizeof(events), "%.*s", (int)(strstr(found, "\n  }") - found), found);
        if (all != NULL)
            published_union(events, strcmp(all, ".all_l2_hit") == 0 ? "_hit" : "_miss", fields);
        else if (!published(events, event->name, fields))
            harness_fail(h, __FILE__, __LINE__, "%s: %s is not published", id, event->name);
        if (pmu_event_config(event) != (fields[0] | fields[1] << 8 | fields[2] << 24))
            harness_fail(h, __FILE__, __LINE__, "%s: %s is %#lx, not what is published", id, event->name,
                         (unsigned long)pmu_event_config(event));
    }
}

static void encodings_are_the_published_ones(struct harness *h)
{
    static char tables[65536];
    FILE *file = fopen(FIXTURES "/perf_events.json", "r");
    size_t length = file != NULL ? fread(tables, 1, sizeof(tables) - 1, file) : 0;

    if (file != NULL)
        (void)fclose(file);
    CHECK(length > 1000 && length < sizeof(tables) - 1);
    for (size_t i = 0; i < sizeof(PROCESSORS) / sizeof(PROCESSORS[0]) && length > 0; i++)
        check_processor(h, tables, PROCESSORS[i]);
}

static void walks_of_the_calling_thread(struct harness *h)
{
    struct verdict verdict = {.status = STATUS_OK};
    struct walk_counter counter;

    simulate(NULL, skylake);
    CHECK(walk_counter_open(&counter, "intel-skylake-sp", &FAKE, &verdict));
    CHECK(fd_count == 2); /* loads and stores, each by itself, in user mode */
    for (int i = 0; i < fd_count; i++)
        CHECK(fds[i].is_on && fds[i].pid == 0 && fds[i].cpu == -1 && fds[i].leader < 0 &&
              fds[i].attributes.exclude_kernel);
    /* Each was on the processor half of the time. */
    CHECK(walk_counter_read(&counter) == 1000 + 2 * 0x08 + 1000 + 2 * 0x49);
    simulate(NULL, never_counted);
    CHECK(walk_counter_open(&counter, "intel-skylake-sp", &FAKE, &verdict));
    CHECK(isnan(walk_counter_read(&counter)));
    walk_counter_close(&counter);
    CHECK(!fds[0].is_open && !fds[1].is_open);
    simulate(no_pmu, skylake);
    CHECK(!walk_counter_open(&counter, NULL, &FAKE, &verdict));
    CHECK(verdict.status == STATUS_UNSUPPORTED && strstr(verdict.reason, "no PMU here") != NULL);
    simulate(denied, skylake);
    CHECK(!walk_counter_open(&counter, NULL, &FAKE, &verdict));
    CHECK(verdict.status == STATUS_NOT_PERMITTED);
}

enum { MANY = 60000, FIRST_PID = 1000 };

static unsigned marked(struct count_parent *all, int pid)
{
    unsigned found = 0;

    targets_mark(all, MANY, pid);
    for (int i = 0; i < MANY; i++)
        found += all[i].is_wanted;
    return found;
}

/* Trees that any user makes; the processor time of the worst is that of sorting. */
static void descendants_of_many_processes(struct harness *h)
{
    static struct count_parent all[MANY];
    uint64_t begun_ns = clock_thread_cpu_ns();

    for (int i = 0; i < MANY; i++) /* each the parent of the one before it */
        all[i] = (struct count_parent){.pid = FIRST_PID + i, .parent = FIRST_PID + i + 1};
    CHECK_U64(marked(all, FIRST_PID + MANY - 1), MANY);
    CHECK_U64(marked(all, FIRST_PID + 9), 10);
    for (int i = 0; i < MANY; i++) /* all of one, and two of the last of them */
        all[i] =
            (struct count_parent){.pid = FIRST_PID + i, .parent = i == 0 || i > 2 ? FIRST_PID : FIRST_PID + MANY - 1};
    CHECK_U64(marked(all, FIRST_PID), MANY); /* its own parent: the list was read while processes ended */
    CHECK_U64(marked(all, FIRST_PID + MANY - 1), 3);
    CHECK_U64(marked(all, FIRST_PID + 1), 1);
    CHECK_U64(marked(all, FIRST_PID - 1), 0);
    CHECK(clock_thread_cpu_ns() - begun_ns < UINT64_C(2000000000)); /* 0.05 s; in pairs it is 3 s for each, and more */
}

static const struct harness_case cases[] = {
    {"encodings are the published ones", encodings_are_the_published_ones},
    {"shares and scaling", shares_and_scaling},
    {"what is opened", what_is_opened},
    {"absence and permission differ", absence_and_permission_differ},
    {"an unknown event leaves its sum unknown", an_unknown_event_leaves_its_sum_unknown},
    {"zero is not believed", zero_is_not_believed},
    {"counting that is too dear stops", too_dear_stops},
    {"threads and children", threads_and_children},
    {"differences, and processors without walk cycles", differences_and_processors_without_walk_cycles},
    {"nobody there", nobody_there},
    {"walks of the calling thread", walks_of_the_calling_thread},
    {"descendants of many processes", descendants_of_many_processes},
};
HARNESS_MAIN("counters", cases)
