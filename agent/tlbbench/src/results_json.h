/* SPDX-License-Identifier: Apache-2.0 */
/* The curves of the document, which every section has. */
#ifndef TLBBENCH_RESULTS_JSON_H
#define TLBBENCH_RESULTS_JSON_H

#include "json.h"
#include "results.h"

/* Writes the array `curves`. */
void curves_to_json(struct json *j, const struct curve_list *curves);

#endif
