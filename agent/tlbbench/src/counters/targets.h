/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be counted: the threads of a process and of its descendants, or a cgroup on every CPU. */
#pragma once

#include "base/verdict.h"

struct counters_request {
    int pid;            /* with its threads, its descendants, and what they start; 0 = a cgroup */
    const char *cgroup; /* below /sys/fs/cgroup, or the whole path of its directory */
    double seconds;
};

struct count_target {
    int pid; /* a thread; of a cgroup its descriptor */
    int cpu; /* -1 = wherever the thread runs */
};

struct count_targets {
    struct count_target *items;
    size_t count;
    int cgroup_fd; /* -1 = threads */
};

struct count_parent {
    int pid, parent;
    bool is_wanted;
    int queued; /* of targets_mark() alone */
};

/* Marks a process and its descendants, and puts all in order of their parents: n log n for any tree. */
void targets_mark(struct count_parent *all, size_t count, int pid);

/* Fills in `targets`, which targets_free() gives back; without any, `verdict` says why. */
void targets_read(const struct counters_request *request, struct count_targets *targets, struct verdict *verdict);
void targets_free(struct count_targets *targets);
