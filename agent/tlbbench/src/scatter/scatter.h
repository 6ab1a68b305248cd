/* SPDX-License-Identifier: Apache-2.0 */
/* A few hot lines spread over a wide range, one in each huge page: where the entries for large pages run out, huge
 * pages cost more than base pages. */
#pragma once

#include "timing/curve.h"

struct scatter_result {
    struct verdict verdict;
    int64_t crossing_hot_lines; /* -1 = none; then crossing_status is STATUS_NOT_REACHED or why it is unknown */
    enum status crossing_status;
    char crossing_backing[16];
    uint64_t tested_min, tested_max;
    struct curve_list curves;
    uint64_t peak_mapped_bytes;
};

/* Measures on the calling thread, which must be bound to session->cpu. Always leaves a valid result. Returns 0, or -1
 * when memory for the result ran out. Its curves are the caller's. */
int scatter_measure(const struct session *session, struct scatter_result *result);

/* Cost of a hot line, control subtracted. */
struct scatter_point {
    uint64_t hot_lines;
    double ns, mad;
};

/* Smallest number of hot lines from which on huge pages cost more than base pages, at two points in a row and by more
 * than noise; -1 when that is nowhere so. Both sweeps have the same points. */
int64_t scatter_find_crossing(const struct scatter_point *base, const struct scatter_point *huge, size_t count);
