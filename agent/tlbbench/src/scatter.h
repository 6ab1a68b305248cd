/* SPDX-License-Identifier: Apache-2.0 */
/* A few hot lines spread over a wide range, one in each huge page: where the entries for large pages run out, huge
 * pages cost more than base pages. */
#ifndef TLBBENCH_SCATTER_H
#define TLBBENCH_SCATTER_H

#include "json.h"
#include "results.h"
#include "session.h"

#include <stddef.h>
#include <stdint.h>

/* Measures on the calling thread, which must be bound to session->cpu. Always leaves a valid result. Returns 0, or -1
 * when memory for the result ran out. Free with scatter_result_free(). */
int scatter_measure(const struct session *session, struct scatter_result *result);
void scatter_result_free(struct scatter_result *result);

void scatter_to_json(struct json *j, const char *key, const struct scatter_result *result);

/* Cost of a hot line, control subtracted. */
struct scatter_point {
    uint64_t hot_lines;
    double ns, mad;
};

/* Smallest number of hot lines from which on huge pages cost more than base pages, at two points in a row and by more
 * than noise; -1 when that is nowhere so. Both ladders have the same points. */
int64_t scatter_find_crossing(const struct scatter_point *base, const struct scatter_point *huge, size_t count);

#endif
