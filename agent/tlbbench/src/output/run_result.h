/* SPDX-License-Identifier: Apache-2.0 */
/* The results of all sections that ran. */
#pragma once

#include "geometry/result.h"
#include "latency/result.h"
#include "memory/reservation.h"
#include "pressure/result.h"
#include "rows/result.h"
#include "scatter/scatter.h"

struct section_result {
    const char *name; /* "info", "geometry", "latency", "rows", "scatter" */
    struct verdict verdict;
    double duration_seconds;
};

#define SECTIONS_MAX 8

/* Of the program. */
enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_PARTIAL = 3 };

struct section_results {
    struct geometry_result geometry;
    struct latency_result latency;
    struct pressure_result pressure;
    struct walks_result walks;
    struct rows_result rows;
    struct scatter_result scatter;
    struct reservation reservation;
};

/* A section that a command did not run is NULL. */
struct run_result {
    struct section_results *own; /* what the pointers to the sections' results point into */
    struct section_result sections[SECTIONS_MAX];
    size_t section_count;
    struct geometry_result *geometry;
    struct latency_result *latency;
    struct pressure_result *pressure; /* beside `latency`, as the next */
    struct walks_result *walks;
    struct rows_result *rows;
    struct scatter_result *scatter;
    struct reservation *reservation; /* NULL without --reserve */
    bool stopped_by_bus;             /* a section ended by SIGBUS; none was measured after it */
    int exit_status;                 /* EXIT_DONE or EXIT_PARTIAL */
    uint64_t rss_outside_bytes;      /* resident memory outside the measured area at its highest; 0 = unknown */
};
