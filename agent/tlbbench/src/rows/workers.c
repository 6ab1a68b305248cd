/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"

#include "base/signals.h"
#include "machine/processes.h"
#include "timing/cpus.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum {
    WORKER_STACK_BYTES = 128 << 10,
    POLL_MILLISECONDS = 50,
    LOWEST_NICE = 19,
};

static const struct sched_param NO_PRIORITY = {.sched_priority = 0};

/* Shared by all workers of a measurement, also by forked ones. */
struct control {
    _Alignas(ROWS_LINE_PAIR_BYTES) atomic_bool stop;
    struct rows_counters counters[];
};

struct worker_group {
    const struct rows_segment *segment;
    const struct rows_spec *spec;
    const struct session *session;
    char *view;
    struct control *control;
    size_t control_bytes;
    int ready_pipe[2]; /* every worker writes a byte when it has touched the segment, then closes its end */
    int start_pipe[2]; /* closing the write end starts all at once */
    pid_t parent;
    int killer; /* signal that ended a worker, not SIGBUS; 0 = none */
};

struct worker {
    const struct worker_group *group;
    unsigned number;
    pthread_t thread;
    pid_t process;
};

static struct rows_counters *counters_of(const struct worker *worker)
{
    return &worker->group->control->counters[worker->number];
}

static void read_rows(void *context)
{
    const struct worker *worker = context;
    const struct worker_group *group = worker->group;
    struct rows_reading reading = {.view = group->view,
                                   .bytes = group->segment->bytes,
                                   .spec = group->spec,
                                   .seed = group->session->seed,
                                   .worker = worker->number,
                                   .stop = &group->control->stop};

    rows_read_until_stopped(&reading, counters_of(worker));
}

/* Reads from the common start to the common end. Not finished: a page was gone. */
static void read_guarded(struct worker *worker)
{
    uint64_t before_ns = clock_thread_cpu_ns();

    counters_of(worker)->finished = signals_guard_bus(read_rows, worker) == 0;
    counters_of(worker)->cpu_ns = clock_thread_cpu_ns() - before_ns;
}

static int touch_segment(const struct worker_group *group, struct rows_counters *counters)
{
    struct touch_request request = {group->view, group->segment->mapped_bytes, (size_t)group->session->base_page_bytes,
                                    false,       group->segment->backing.name, INFINITY};
    struct verdict ignored;
    uint64_t before = process_own_status_bytes("VmPTE");
    uint64_t start_ns = clock_now_ns();
    double start_cpu = (double)clock_thread_cpu_ns() / 1e9;

    if (memory_touch(&request, NULL, &ignored) != 0)
        return -1;
    counters->first_touch_cpu_seconds = (double)clock_thread_cpu_ns() / 1e9 - start_cpu;
    counters->first_touch_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    uint64_t after = process_own_status_bytes("VmPTE");

    counters->page_table_bytes =
        before == UINT64_MAX || after == UINT64_MAX || after < before ? UINT64_MAX : after - before;
    return 0;
}

/* On all CPUs of the session. As many workers as there are connections would take a node from its own work at any
 * ordinary priority: they touch their segment at the lowest one, and then get what is idle. Real-time workers on every
 * core would keep the parent of their own class from ever stopping them. */
static void yield_to_others(const struct session *session)
{
    int policy = sched_getscheduler(0);

    (void)cpus_set_affinity(&session->cpus);
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)sched_setscheduler(0, SCHED_OTHER, &NO_PRIORITY);
    if (!session->keep_priority)
        (void)setpriority(PRIO_PROCESS, 0, LOWEST_NICE);
}

static void take_what_is_idle(const struct session *session)
{
    if (!session->keep_priority)
        (void)sched_setscheduler(0, SCHED_IDLE, &NO_PRIORITY);
}

static void wait_for_start(const struct worker_group *group)
{
    char byte = 0;

    while (read(group->start_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
}

static void tell_ready(const struct worker_group *group)
{
    char byte = 1;

    while (write(group->ready_pipe[1], &byte, 1) < 0 && errno == EINTR) {
    }
}

static void *run_thread(void *context)
{
    struct worker *worker = context;

    yield_to_others(worker->group->session);
    take_what_is_idle(worker->group->session);
    tell_ready(worker->group);
    wait_for_start(worker->group);
    read_guarded(worker);
    return NULL;
}

_Noreturn static void run_process(struct worker *worker)
{
    const struct worker_group *group = worker->group;

    /* No worker outlives a measuring process that was killed. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != group->parent)
        _exit(1);
    (void)close(group->start_pipe[1]);
    (void)close(group->ready_pipe[0]);
    yield_to_others(group->session);
    if (touch_segment(group, counters_of(worker)) == 0) {
        take_what_is_idle(group->session);
        tell_ready(group);
        (void)close(group->ready_pipe[1]);
        wait_for_start(group);
        read_guarded(worker);
    }
    _exit(0);
}

static int group_open(struct worker_group *group, struct verdict *verdict)
{
    group->control_bytes = sizeof(struct control) + group->spec->workers * sizeof(struct rows_counters);
    group->control = mmap(NULL, group->control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group->control == MAP_FAILED)
        return backing_explain_errno(errno, "mapping the workers' counters", group->control_bytes, verdict);
    bool has_ready = pipe(group->ready_pipe) == 0;

    if (has_ready && pipe(group->start_pipe) == 0)
        return 0;
    (void)backing_explain_errno(errno, "pipe", 0, verdict);
    for (int end = 0; has_ready && end < 2; end++)
        (void)close(group->ready_pipe[end]);
    (void)munmap(group->control, group->control_bytes);
    return -1;
}

static void group_close(struct worker_group *group)
{
    (void)close(group->ready_pipe[0]);
    (void)close(group->start_pipe[0]);
    (void)munmap(group->control, group->control_bytes);
}

static unsigned start_workers(struct worker_group *group, struct worker *workers, struct verdict *verdict)
{
    unsigned started = 0;
    pthread_attr_t attributes;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    for (; started < group->spec->workers && !signals_stop_requested(); started++) {
        struct worker *worker = &workers[started];
        int error = 0;

        *worker = (struct worker){.group = group, .number = started};
        if (group->spec->mode == MODE_THREADS) {
            error = pthread_create(&worker->thread, &attributes, run_thread, worker);
        } else {
            worker->process = fork();
            if (worker->process == 0)
                run_process(worker);
            error = worker->process < 0 ? errno : 0;
        }
        if (error != 0) {
            (void)backing_explain_errno(error == EAGAIN ? ENOMEM : error, "starting a worker", WORKER_STACK_BYTES,
                                        verdict);
            break;
        }
    }
    (void)pthread_attr_destroy(&attributes);
    return started;
}

/* Waits until every started worker is ready or dead, or it is too late for them to read: workers of the idle class
 * start only when the node's own work leaves a CPU. Returns how many are ready. */
static unsigned await_ready(struct worker_group *group, unsigned started, double seconds)
{
    unsigned ready = 0;

    if (group->spec->mode == MODE_PROCESSES) {
        (void)close(group->ready_pipe[1]);
        group->ready_pipe[1] = -1;
    }
    while (ready < started && !signals_stop_requested() &&
           deadline_remaining_seconds(group->session->deadline) >= seconds) {
        struct pollfd waiting = {.fd = group->ready_pipe[0], .events = POLLIN};
        char bytes[ROWS_WORKERS_MAX];

        if (poll(&waiting, 1, POLL_MILLISECONDS) <= 0)
            continue;
        ssize_t received = read(group->ready_pipe[0], bytes, sizeof(bytes));

        if (received == 0)
            break; /* all ends closed: the rest died */
        ready += received > 0 ? (unsigned)received : 0;
    }
    return ready;
}

static double run_for(struct worker_group *group, double seconds)
{
    struct timespec length = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    uint64_t start_ns = clock_now_ns();

    (void)close(group->start_pipe[1]);
    (void)nanosleep(&length, NULL); /* a signal that asks for a stop cuts it short */
    atomic_store(&group->control->stop, true);
    return (double)(clock_now_ns() - start_ns) / 1e9;
}

static unsigned join_workers(struct worker_group *group, struct worker *workers, unsigned started)
{
    unsigned bad = 0;

    for (unsigned number = 0; number < started; number++) {
        int status = 0;

        if (group->spec->mode == MODE_THREADS) {
            (void)pthread_join(workers[number].thread, NULL);
        } else {
            while (waitpid(workers[number].process, &status, 0) < 0 && errno == EINTR) {
            }
            group->killer = WIFSIGNALED(status) && WTERMSIG(status) != SIGBUS ? WTERMSIG(status) : group->killer;
        }
        bad += status != 0 || !group->control->counters[number].finished ? 1 : 0;
    }
    return bad;
}

static unsigned usable_cpus(const struct worker_group *group)
{
    unsigned cpus = group->session->cpus.count > 0 ? (unsigned)group->session->cpus.count : 1;

    return group->spec->workers < cpus ? group->spec->workers : cpus;
}

static void collect_figures(const struct worker_group *group, double elapsed_seconds,
                            struct row_measurement *measurement, struct rows_round *round)
{
    const struct rows_counters *all = group->control->counters;
    unsigned workers = group->spec->workers;
    unsigned touching = group->spec->mode == MODE_THREADS || workers == 0 ? 1 : workers; /* a divisor */
    uint64_t rows = 0, cpu_ns = 0, tables = 0;
    double touch_seconds = 0;
    double touch_cpu_seconds = 0;

    for (unsigned number = 0; number < workers; number++) {
        rows += all[number].rows;
        cpu_ns += all[number].cpu_ns;
    }
    for (unsigned number = 0; number < touching; number++) {
        const struct rows_counters *counters = &all[number];

        tables = tables == UINT64_MAX || counters->page_table_bytes == UINT64_MAX ? UINT64_MAX
                                                                                  : tables + counters->page_table_bytes;
        touch_seconds += counters->first_touch_seconds;
        touch_cpu_seconds += counters->first_touch_cpu_seconds;
    }
    if (rows == 0)
        verdict_set(&measurement->verdict, STATUS_NOISY, "no worker read a row in %.0f ms: others had the CPUs",
                    elapsed_seconds * 1e3);
    *round = (struct rows_round){
        .rows_per_second = rows == 0 ? NAN : (double)rows / elapsed_seconds,
        .ns_p50 = rows_quantile_ns(all, workers, 0.5),
        .ns_p90 = rows_quantile_ns(all, workers, 0.9),
        .ns_p99 = rows_quantile_ns(all, workers, 0.99),
        .cpu_share = fmin(1, (double)cpu_ns / 1e9 / elapsed_seconds / usable_cpus(group)),
    };
    measurement->vm_pte_bytes_total = tables;
    measurement->vm_pte_bytes_per_process = tables == UINT64_MAX ? UINT64_MAX : tables / touching;
    measurement->first_touch_seconds = touch_seconds / touching;
    measurement->first_touch_cpu_seconds = touch_cpu_seconds / touching;
}

/* Gives workers the CPU to end: of the idle class they may wait for long, and the program with them. Forked ones that
 * are `late`, and still touching the segment, are killed; threads have touched it and end by the flag. */
static void end_workers(const struct worker_group *group, const struct worker *workers, unsigned started, bool late)
{
    for (unsigned number = 0; number < started; number++) {
        if (group->spec->mode == MODE_THREADS)
            (void)pthread_setschedparam(workers[number].thread, SCHED_OTHER, &NO_PRIORITY);
        else
            (void)sched_setscheduler(workers[number].process, SCHED_OTHER, &NO_PRIORITY);
        if (late && group->spec->mode == MODE_PROCESSES)
            (void)kill(workers[number].process, SIGKILL);
    }
}

static void run_group(struct worker_group *group, struct worker *workers, double seconds,
                      struct row_measurement *measurement, struct rows_round *round)
{
    /* Threads share one set of page tables: the first touch is the process's, before they start. */
    if (group->spec->mode == MODE_THREADS && touch_segment(group, &group->control->counters[0]) != 0) {
        verdict_set(&measurement->verdict, STATUS_SIGBUS, "SIGBUS: a reserved page of %s was not available",
                    group->segment->backing.name);
        (void)close(group->start_pipe[1]);
        (void)close(group->ready_pipe[1]);
        return;
    }
    unsigned started = start_workers(group, workers, &measurement->verdict);
    unsigned ready = await_ready(group, started, seconds);
    bool complete = ready == group->spec->workers && !signals_stop_requested();
    bool late = !complete && deadline_remaining_seconds(group->session->deadline) < seconds;

    double elapsed = run_for(group, complete ? seconds : 0);

    end_workers(group, workers, started, late);
    unsigned bad = join_workers(group, workers, started);

    if (group->ready_pipe[1] >= 0)
        (void)close(group->ready_pipe[1]);
    if (signals_stop_requested()) {
        verdict_set(&measurement->verdict, STATUS_STOPPED, "stopped by signal %d", signals_stop_signal());
    } else if (late) {
        verdict_set(&measurement->verdict, STATUS_NOISY, "%u of %u workers were ready in time: others had the CPUs",
                    ready, group->spec->workers);
    } else if (group->killer != 0) {
        verdict_set(&measurement->verdict, STATUS_FAILED, "%u of %u workers were ended by signal %d%s", bad, started,
                    group->killer, group->killer == SIGKILL ? ": memory ran out, or somebody killed them" : "");
    } else if (started == group->spec->workers && (bad > 0 || !complete)) {
        verdict_set(&measurement->verdict, STATUS_SIGBUS, "%u of %u workers died while they read the segment", bad,
                    started);
    } else if (complete) {
        collect_figures(group, elapsed, measurement, round);
    }
}

int workers_run(const struct rows_segment *segment, double seconds, const struct session *session,
                struct row_measurement *measurement, struct rows_round *round)
{
    struct worker_group group = {
        .segment = segment, .spec = &measurement->spec, .session = session, .parent = getpid()};
    struct worker *workers = calloc(group.spec->workers, sizeof(*workers));

    if (workers == NULL) {
        verdict_set(&measurement->verdict, STATUS_NO_MEMORY, "no memory for %u workers", group.spec->workers);
        return 0;
    }
    group.view = rows_segment_map(segment, &measurement->verdict);
    if (group.view != NULL && group_open(&group, &measurement->verdict) == 0) {
        run_group(&group, workers, seconds, measurement, round);
        group_close(&group);
    }
    rows_segment_unmap(segment, group.view);
    free(workers);
    return measurement->verdict.status == STATUS_STOPPED ? -1 : 0;
}
