/* SPDX-License-Identifier: Apache-2.0 */
/* From how many connections on huge pages cost no memory: page tables that they save against memory that they hold. */
#pragma once

#include "rows/result.h"
#include "rows/segment.h"

#include <stddef.h>
#include <stdint.h>

/* Smallest number of connections whose saved tables are more than `held_bytes`; at least 1. `saved_bytes` of a
 * connection must not be 0. */
int64_t rows_break_even_connections(uint64_t held_bytes, uint64_t saved_bytes);

/* Fills result->break_evens for the hugetlb segments that was available. Returns 0, or -1 when memory ran out. */
int rows_find_break_even(struct rows_result *result, const struct rows_segment *segments, size_t segment_count,
                         uint64_t base_page_bytes);
