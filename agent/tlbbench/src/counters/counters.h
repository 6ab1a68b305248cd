/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page walks of running programs, as their processor counts them: nothing is sampled, so a counted program pays only
 * for the counters that each switch to it loads. Where the groups do not fit the processor's counters together, the
 * kernel counts them in turn; each count is then scaled by time_enabled / time_running (perf_event_open(2)). Shares of
 * cycles are formed within a group, whose events count at the same time.
 */
#pragma once

#include "counters/events.h"
#include "counters/targets.h"

enum count_mode { COUNT_USER, COUNT_KERNEL, COUNT_MODES };

/* The most that counting may cost the counted programs; past it counting stops. */
#define COUNTERS_MOST_OVERHEAD 0.01

struct count_reading {
    uint64_t value, enabled_ns, running_ns;
};

/* The system calls, so that tests can put a processor beneath. */
struct perf_kernel {
    /* Returns the descriptor, or -errno. */
    int (*open)(struct perf_event_attr *attributes, int pid, int cpu, int group_fd, unsigned long flags);
    bool (*enable)(int fd, bool on);
    bool (*read)(int fd, struct count_reading *reading);
    void (*close)(int fd);
};
extern const struct perf_kernel PERF_KERNEL;

/* One event in one mode over all threads. */
struct event_count {
    const struct pmu_event *event;
    enum count_mode mode;
    unsigned group;
    bool is_supported;
    double scaled; /* NAN = not known */
    struct count_reading sum;
    uint64_t ran_enabled_ns; /* of `sum`, by those that the kernel ever counted */
};

/* NAN = not known. */
struct mode_counts {
    double values[COUNT_KINDS];
    double walk_fraction; /* of the mode's cycles; may exceed 1 where walks in progress are added up */
};

enum { COUNTS_MAX = COUNT_MODES * EVENT_GROUPS_MAX * EVENT_GROUP_MAX };

struct counters_result {
    struct verdict verdict;
    const struct event_set *set;
    struct verdict kernel_verdict; /* why the kernel's side is not known */
    size_t threads, threads_counted;
    double seconds;
    double running_fraction;  /* of the time, by the event that was counted least; 1 = no multiplexing */
    double overhead_fraction; /* what counting cost, estimated; NAN = not known */
    struct mode_counts modes[COUNT_MODES], total;
    struct event_count counts[COUNTS_MAX];
    size_t count;
};

/* --- the data walks of the calling thread, for a measurement that runs on it -------------------------------------- */

struct walk_counter {
    const struct perf_kernel *kernel;
    int fds[EVENT_GROUP_MAX];
    size_t count;
};

/* Starts counting in user mode, with the events of this entry of the catalogue. Returns false with the reason, and then
 * needs no close. */
bool walk_counter_open(struct walk_counter *counter, const char *catalogue_id, const struct perf_kernel *kernel,
                       struct verdict *verdict);

/* Walks so far; NAN when they are not known. `counter` is a struct walk_counter. */
double walk_counter_read(void *counter);
void walk_counter_close(struct walk_counter *counter);

/* Counts for request->seconds on the processor of this entry of the catalogue. Always leaves a valid result. */
void counters_measure(const struct counters_request *request, const char *catalogue_id,
                      const struct perf_kernel *kernel, struct counters_result *result);
