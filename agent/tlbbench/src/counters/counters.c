/* SPDX-License-Identifier: Apache-2.0 */
#include "counters/counters.h"

#include "base/clock.h"
#include "base/signals.h"
#include "base/tree.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

enum {
    SLICE_NS = 100000000,     /* between looks at the clock, the signals and what counting costs */
    ROTATION_NS = 4000000,    /* how often groups that wait get their turn (perf's default) */
    CALIBRATION_PAIRS = 50,   /* of turning a group on and off */
    FILTERED_MIN = 100000000, /* instructions after which not one walk and not one hit is not believed */
    OWN_DESCRIPTORS = 64,     /* beside the counters */
};

/* --- the system calls --------------------------------------------------------------------------------------------- */

static int open_event(struct perf_event_attr *attributes, int pid, int cpu, int group_fd, unsigned long flags)
{
    long fd = syscall(SYS_perf_event_open, attributes, pid, cpu, group_fd, flags);

    return fd >= 0 ? (int)fd : -errno;
}

static bool enable_event(int fd, bool on)
{
    return ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) == 0;
}

static bool read_event(int fd, struct count_reading *reading)
{
    return read(fd, reading, sizeof(*reading)) == (ssize_t)sizeof(*reading);
}

static void close_event(int fd)
{
    (void)close(fd);
}

const struct perf_kernel PERF_KERNEL = {open_event, enable_event, read_event, close_event};

/* --- opening ------------------------------------------------------------------------------------------------------ */

static const struct pmu_event CYCLES = {COUNT_CYCLES,      "cycles", PERF_COUNT_HW_CPU_CYCLES, 0, 0, 0, 1,
                                        PERF_TYPE_HARDWARE};
static const struct pmu_event INSTRUCTIONS = {
    COUNT_INSTRUCTIONS, "instructions", PERF_COUNT_HW_INSTRUCTIONS, 0, 0, 0, 1, PERF_TYPE_HARDWARE};
/* What the counted programs ran, and how often they were switched: these cost no counter. */
static const struct pmu_event SOFTWARE[] = {
    {0, "task-clock", PERF_COUNT_SW_TASK_CLOCK, 0, 0, 0, 1, PERF_TYPE_SOFTWARE},
    {0, "context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0, 0, 1, PERF_TYPE_SOFTWARE},
};
enum { SOFTWARE_EVENTS = 2 };

struct counting {
    const struct perf_kernel *kernel;
    struct counters_result *result;
    struct count_targets targets;
    int *fds;      /* of each target: result->count events, then the software events; -1 = none */
    size_t stride; /* descriptors of a target */
};

static bool leads(const struct event_count *count)
{
    return count->event == &CYCLES;
}

static void add_count(struct counters_result *result, const struct pmu_event *event, enum count_mode mode,
                      unsigned group)
{
    if (result->count < COUNTS_MAX)
        result->counts[result->count++] =
            (struct event_count){.event = event, .mode = mode, .group = group, .is_supported = true, .scaled = NAN};
}

/* Every group leads with cycles of its own. */
static void list_counts(struct counters_result *result)
{
    for (enum count_mode mode = COUNT_USER; mode < COUNT_MODES; mode++) {
        for (unsigned group = 0; group < EVENT_GROUPS_MAX; group++) {
            bool is_first = true;

            for (size_t i = 0; i < result->set->count; i++) {
                if (result->set->events[i].group != group)
                    continue;
                if (is_first) {
                    add_count(result, &CYCLES, mode, group);
                    add_count(result, &INSTRUCTIONS, mode, group);
                }
                is_first = false;
                add_count(result, &result->set->events[i], mode, group);
            }
        }
    }
}

/* A member starts and stops with its leader. */
static int open_one(const struct counting *c, const struct count_target *target, const struct pmu_event *event,
                    int mode, int leader)
{
    bool is_cgroup = target->cpu >= 0;
    struct perf_event_attr attributes = {.type = event->type,
                                         .size = sizeof(attributes),
                                         .config = pmu_event_config(event),
                                         .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                                         .disabled = leader < 0,
                                         .inherit = !is_cgroup,
                                         .exclude_hv = mode != COUNT_MODES,
                                         .exclude_user = mode == COUNT_KERNEL,
                                         .exclude_kernel = mode == COUNT_USER};

    return c->kernel->open(&attributes, target->pid, target->cpu, leader,
                           PERF_FLAG_FD_CLOEXEC | (is_cgroup ? PERF_FLAG_PID_CGROUP : 0UL));
}

static void explain(struct verdict *verdict, int error)
{
    int64_t paranoid = tree_read_number("", "/proc/sys/kernel/perf_event_paranoid");

    switch (error) {
    case EACCES:
    case EPERM:
        verdict_set(verdict, STATUS_NOT_PERMITTED,
                    "run as root or with CAP_PERFMON (perf_event_paranoid is %" PRId64
                    "); in a container seccomp must allow perf_event_open too",
                    paranoid);
        return;
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        verdict_set(verdict, STATUS_UNSUPPORTED,
                    "no PMU here: ask the provider for a virtual PMU (QEMU/KVM pmu=on, VMware virtualized CPU "
                    "performance counters, Hyper-V Perfmon) or use a bare-metal size");
        return;
    case ENOSYS:
        verdict_set(verdict, STATUS_UNSUPPORTED, "this kernel was built without perf events (CONFIG_PERF_EVENTS)");
        return;
    case ESRCH:
        verdict_set(verdict, STATUS_FAILED, "the process has ended");
        return;
    case EMFILE:
    case ENFILE:
        verdict_set(verdict, STATUS_FAILED, "too few descriptors: raise RLIMIT_NOFILE, or count a cgroup");
        return;
    default:
        verdict_set(verdict, STATUS_FAILED, "perf_event_open: %s", strerror(error));
    }
}

static bool is_kernels_side_refused(const struct event_count *count, int error)
{
    return count->mode == COUNT_KERNEL && (error == EACCES || error == EPERM);
}

/* Opens the events of a target. Returns 0, or the errno that ends the counting of it. What the processor does not know
 * is taken out for all; so is the kernel's side where it may not be counted. */
static int open_target(struct counting *c, size_t index)
{
    const struct count_target *target = &c->targets.items[index];
    int *fds = &c->fds[index * c->stride];
    int leader = -1;

    for (size_t i = 0; i < c->result->count; i++) {
        struct event_count *count = &c->result->counts[i];

        if (leads(count))
            leader = -1;
        if (!count->is_supported || (!leads(count) && leader < 0))
            continue;
        fds[i] = open_one(c, target, count->event, (int)count->mode, leader);
        if (leads(count) && is_kernels_side_refused(count, -fds[i])) {
            explain(&c->result->kernel_verdict, -fds[i]);
            count->is_supported = false;
        } else if (fds[i] < 0 && (leads(count) || (fds[i] != -ENOENT && fds[i] != -EINVAL && fds[i] != -EOPNOTSUPP))) {
            return -fds[i];
        } else if (fds[i] < 0) {
            count->is_supported = false;
        }
        leader = leads(count) ? fds[i] : leader;
    }
    for (int i = 0, software = -1; i < SOFTWARE_EVENTS; i++) {
        fds[c->result->count + (size_t)i] = open_one(c, target, &SOFTWARE[i], COUNT_MODES, software);
        software = software < 0 ? fds[c->result->count] : software;
    }
    return 0;
}

static void close_target(struct counting *c, size_t index)
{
    for (size_t i = 0; i < c->stride; i++) {
        int *fd = &c->fds[index * c->stride + i];

        if (*fd >= 0)
            c->kernel->close(*fd);
        *fd = -1;
    }
}

static void allow_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A thread that has ended meanwhile is none; the others are counted as far as there are descriptors. */
static void open_all(struct counting *c)
{
    struct counters_result *result = c->result;
    int error = 0;

    allow_descriptors();
    result->threads = c->targets.cgroup_fd >= 0 ? 0 : c->targets.count;
    for (size_t i = 0; i < c->targets.count; i++) {
        int failed = open_target(c, i);

        if (failed != 0) {
            close_target(c, i);
            error = error == 0 || error == ESRCH ? failed : error;
            if (failed != ESRCH)
                break;
            continue;
        }
        result->threads_counted++;
    }
    if (result->threads_counted == 0)
        explain(&result->verdict, error);
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

static void enable_all(const struct counting *c, bool on)
{
    for (size_t target = 0; target < c->targets.count; target++) {
        const int *fds = &c->fds[target * c->stride];

        for (size_t i = 0; i < c->stride; i++) {
            bool is_leader = i == c->result->count || (i < c->result->count && leads(&c->result->counts[i]));

            if (is_leader && fds[i] >= 0)
                (void)c->kernel->enable(fds[i], on);
        }
    }
}

static void sum_readings(const struct counting *c)
{
    struct counters_result *result = c->result;

    for (size_t i = 0; i < result->count; i++) {
        struct event_count *count = &result->counts[i];

        count->sum = (struct count_reading){0};
        count->ran_enabled_ns = 0;
        count->scaled = 0.0;
        for (size_t target = 0; target < c->targets.count; target++) {
            int fd = c->fds[target * c->stride + i];
            struct count_reading one;

            if (fd < 0 || !c->kernel->read(fd, &one))
                continue;
            count->sum.value += one.value;
            count->sum.enabled_ns += one.enabled_ns;
            count->sum.running_ns += one.running_ns;
            if (one.running_ns > 0) {
                count->ran_enabled_ns += one.enabled_ns;
                count->scaled += (double)one.value * (double)one.enabled_ns / (double)one.running_ns;
            }
        }
        /* Threads that ran and were never counted are taken to be like the others. */
        if (!count->is_supported || (count->sum.enabled_ns > 0 && count->ran_enabled_ns == 0))
            count->scaled = NAN;
        else if (count->ran_enabled_ns > 0)
            count->scaled *= (double)count->sum.enabled_ns / (double)count->ran_enabled_ns;
    }
}

/* Groups that were on the processor at the same time, on average. */
static double groups_at_once(const struct counters_result *result, bool *is_multiplexed)
{
    double groups = 0.0;

    *is_multiplexed = false;
    for (size_t i = 0; i < result->count; i++) {
        const struct count_reading *sum = &result->counts[i].sum;

        if (!leads(&result->counts[i]) || sum->enabled_ns == 0)
            continue;
        groups += (double)sum->running_ns / (double)sum->enabled_ns;
        *is_multiplexed = *is_multiplexed || sum->running_ns < sum->enabled_ns;
    }
    return groups;
}

/* Nanoseconds to load and unload the counters of a group, with two system calls: more than a switch pays. */
static double pair_ns(const struct counting *c)
{
    const struct count_target here = {0, -1};
    int fds[EVENT_GROUP_MAX] = {-1};
    size_t count = 0;
    uint64_t best = UINT64_MAX;

    for (size_t i = 0; i < c->result->count && count < EVENT_GROUP_MAX && (i == 0 || !leads(&c->result->counts[i]));
         i++) {
        fds[count] = open_one(c, &here, c->result->counts[i].event, COUNT_USER, count > 0 ? fds[0] : -1);
        if (fds[count] >= 0)
            count++;
        else if (count == 0)
            return NAN;
    }
    for (int pair = 0; pair < CALIBRATION_PAIRS; pair++) {
        uint64_t start = clock_now_ns();

        (void)c->kernel->enable(fds[0], true);
        (void)c->kernel->enable(fds[0], false);
        uint64_t took = clock_now_ns() - start;

        best = took < best ? took : best;
    }
    for (size_t i = 0; i < count; i++)
        c->kernel->close(fds[i]);
    return (double)best;
}

/* Each switch to or away from a counted thread, and each turn of the groups, loads the counters anew. */
static double overhead(const struct counting *c, double ns_per_pair)
{
    double sums[SOFTWARE_EVENTS] = {0};
    bool is_multiplexed;

    for (size_t target = 0; target < c->targets.count; target++) {
        for (size_t i = 0; i < SOFTWARE_EVENTS; i++) {
            int fd = c->fds[target * c->stride + c->result->count + i];
            struct count_reading one;

            if (fd >= 0 && c->kernel->read(fd, &one))
                sums[i] += (double)one.value;
        }
    }
    double groups = groups_at_once(c->result, &is_multiplexed);
    double turns = is_multiplexed ? sums[0] / ROTATION_NS : 0.0;

    return sums[0] > 0.0 ? (sums[1] + turns) * ns_per_pair * groups / sums[0] : NAN;
}

static void count_for(const struct counting *c, double seconds)
{
    struct counters_result *result = c->result;
    double ns_per_pair = pair_ns(c);
    uint64_t start = clock_now_ns();
    struct deadline end = deadline_after(seconds);
    struct deadline look = deadline_after(seconds / 10.0);

    enable_all(c, true);
    while (!deadline_passed(end) && !signals_stop_requested()) {
        double left = deadline_remaining_seconds(end);
        struct timespec slice = {0, left < SLICE_NS / 1e9 ? (long)(left * 1e9) : SLICE_NS};

        (void)nanosleep(&slice, NULL);
        if (!deadline_passed(look) || deadline_passed(end))
            continue;
        sum_readings(c);
        result->overhead_fraction = overhead(c, ns_per_pair);
        if (result->overhead_fraction > COUNTERS_MOST_OVERHEAD)
            break;
        look = deadline_after(seconds / 10.0);
    }
    enable_all(c, false);
    result->seconds = (double)(clock_now_ns() - start) / 1e9;
    sum_readings(c);
    result->overhead_fraction = overhead(c, ns_per_pair);
    if (result->overhead_fraction > COUNTERS_MOST_OVERHEAD)
        verdict_set(&result->verdict, STATUS_STOPPED,
                    "stopped after %.1f s: counting costs %.1f %% of the counted time, the bound is 1 %%",
                    result->seconds, 100.0 * result->overhead_fraction);
    else if (signals_stop_requested())
        verdict_set(&result->verdict, STATUS_STOPPED, "stopped by a signal after %.1f s", result->seconds);
}

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

/* Sum of the group's walk cycles over the same group's cycles. */
static void fill_mode(const struct counters_result *result, enum count_mode mode, struct mode_counts *into)
{
    double walk_cycles_base = NAN;
    double group_cycles = NAN;
    bool has[COUNT_KINDS] = {false};

    for (size_t i = 0; i < result->count; i++) {
        const struct event_count *count = &result->counts[i];
        enum count_kind kind = count->event->count;

        if (count->mode != mode)
            continue;
        if (kind == COUNT_CYCLES)
            group_cycles = count->scaled;
        if (kind == COUNT_WALK_CYCLES)
            walk_cycles_base = group_cycles;
        if (kind > COUNT_INSTRUCTIONS) /* one event that is not known leaves the sum unknown */
            into->values[kind] = (has[kind] ? into->values[kind] : 0.0) + count->event->sign * count->scaled;
        else if (isnan(into->values[kind])) /* each group has its own: the first that was counted */
            into->values[kind] = count->scaled;
        has[kind] = true;
    }
    if (into->values[COUNT_L2_HITS] < 0.0) /* of a difference of two estimates */
        into->values[COUNT_L2_HITS] = 0.0;
    into->walk_fraction = walk_cycles_base > 0.0 ? into->values[COUNT_WALK_CYCLES] / walk_cycles_base : NAN;
}

/* A hypervisor that filters events lets them read zero, which is not "no walks". */
static bool is_filtered(const struct counters_result *result)
{
    bool has_walks = false;
    double instructions = result->modes[COUNT_USER].values[COUNT_INSTRUCTIONS];

    for (size_t i = 0; i < result->count; i++)
        has_walks =
            has_walks || (result->counts[i].event->count > COUNT_INSTRUCTIONS && result->counts[i].sum.value > 0);
    return !has_walks && instructions >= FILTERED_MIN;
}

static void forget_walks(struct mode_counts *mode)
{
    for (int kind = COUNT_INSTRUCTIONS + 1; kind < COUNT_KINDS; kind++)
        mode->values[kind] = NAN;
    mode->walk_fraction = NAN;
}

static void conclude(struct counters_result *result)
{
    const struct mode_counts *user = &result->modes[COUNT_USER], *kernel = &result->modes[COUNT_KERNEL];

    result->running_fraction = 1.0;
    for (size_t i = 0; i < result->count; i++) {
        const struct count_reading *sum = &result->counts[i].sum;
        double share = sum->enabled_ns > 0 ? (double)sum->running_ns / (double)sum->enabled_ns : 1.0;

        if (result->counts[i].is_supported)
            result->running_fraction = fmin(result->running_fraction, share);
    }
    for (enum count_mode mode = COUNT_USER; mode < COUNT_MODES; mode++)
        fill_mode(result, mode, &result->modes[mode]);
    for (int kind = 0; kind < COUNT_KINDS; kind++)
        result->total.values[kind] = user->values[kind] + kernel->values[kind];
    /* The two shares by the cycles of each side: what is known of both is known of the whole. */
    double cycles = result->total.values[COUNT_CYCLES];
    double kernel_part = kernel->values[COUNT_CYCLES] > 0.0 ? kernel->walk_fraction * kernel->values[COUNT_CYCLES]
                                                            : kernel->values[COUNT_CYCLES];

    result->total.walk_fraction =
        cycles > 0.0 ? (user->walk_fraction * user->values[COUNT_CYCLES] + kernel_part) / cycles : NAN;
    if (is_filtered(result)) {
        verdict_set(&result->verdict, STATUS_CANNOT_TELL,
                    "cycles are counted here, but every event of walks reads zero: the hypervisor filters them; "
                    "ask the provider for an unfiltered virtual PMU");
        forget_walks(&result->modes[COUNT_USER]);
        forget_walks(&result->modes[COUNT_KERNEL]);
        forget_walks(&result->total);
    } else if (result->verdict.status == STATUS_OK && !(cycles > 0.0 || user->values[COUNT_CYCLES] > 0.0)) {
        verdict_set(&result->verdict, STATUS_CANNOT_TELL, "it did not run during the %.1f s", result->seconds);
    }
}

static void forget_all(struct mode_counts *mode)
{
    forget_walks(mode);
    mode->values[COUNT_CYCLES] = mode->values[COUNT_INSTRUCTIONS] = NAN;
}

void counters_measure(const struct counters_request *request, const char *catalogue_id,
                      const struct perf_kernel *kernel, struct counters_result *result)
{
    struct counting counting = {.kernel = kernel, .result = result, .targets = {.cgroup_fd = -1}};

    *result = (struct counters_result){
        .set = event_set_find(catalogue_id), .running_fraction = NAN, .overhead_fraction = NAN};
    for (int mode = 0; mode < COUNT_MODES; mode++)
        forget_all(&result->modes[mode]);
    forget_all(&result->total);
    list_counts(result);
    targets_read(request, &counting.targets, &result->verdict);
    counting.stride = result->count + SOFTWARE_EVENTS;
    counting.fds = calloc(counting.targets.count * counting.stride + 1, sizeof(int));
    if (counting.fds == NULL)
        verdict_set(&result->verdict, STATUS_NO_MEMORY, "no memory for %zu counters", counting.targets.count);
    for (size_t i = 0; counting.fds != NULL && i < counting.targets.count * counting.stride; i++)
        counting.fds[i] = -1;
    if (result->verdict.status == STATUS_OK && counting.fds != NULL)
        open_all(&counting);
    if (result->verdict.status == STATUS_OK && counting.fds != NULL) {
        count_for(&counting, request->seconds);
        conclude(result);
    }
    for (size_t i = 0; counting.fds != NULL && i < counting.targets.count; i++)
        close_target(&counting, i);
    free(counting.fds);
    targets_free(&counting.targets);
}

/* --- the calling thread ------------------------------------------------------------------------------------------- */

bool walk_counter_open(struct walk_counter *counter, const char *catalogue_id, const struct perf_kernel *kernel,
                       struct verdict *verdict)
{
    const struct event_set *set = event_set_find(catalogue_id);
    const struct count_target here = {0, -1};
    const struct counting counting = {.kernel = kernel};

    *counter = (struct walk_counter){.kernel = kernel};
    for (size_t i = 0; i < set->count; i++) {
        if (set->events[i].count != COUNT_DATA_WALKS)
            continue;
        int fd = open_one(&counting, &here, &set->events[i], COUNT_USER, -1);

        if (fd < 0) {
            explain(verdict, -fd);
            walk_counter_close(counter);
            return false;
        }
        counter->fds[counter->count++] = fd;
        (void)kernel->enable(fd, true);
    }
    if (counter->count == 0)
        verdict_set(verdict, STATUS_UNSUPPORTED, "no event of data walks is known for this processor");
    return counter->count > 0;
}

double walk_counter_read(void *counter)
{
    const struct walk_counter *walks = counter;
    double sum = 0;

    for (size_t i = 0; i < walks->count; i++) {
        struct count_reading one;

        if (!walks->kernel->read(walks->fds[i], &one) || one.running_ns == 0)
            return NAN;
        sum += (double)one.value * (double)one.enabled_ns / (double)one.running_ns;
    }
    return sum;
}

void walk_counter_close(struct walk_counter *counter)
{
    for (size_t i = 0; i < counter->count; i++)
        counter->kernel->close(counter->fds[i]);
    counter->count = 0;
}
