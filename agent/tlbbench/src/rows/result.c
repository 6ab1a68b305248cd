/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/result.h"

#include <stdlib.h>

const char *row_keys_name(enum row_keys keys)
{
    static const char *const names[] = {[KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf"};

    return names[keys];
}

const char *row_read_name(enum row_read read)
{
    static const char *const names[] = {
        [READ_HEADER] = "header", [READ_ROW] = "row", [READ_INDEX_THEN_ROW] = "index_then_row"};

    return names[read];
}

const char *row_mode_name(enum row_mode mode)
{
    static const char *const names[] = {[MODE_THREADS] = "threads", [MODE_PROCESSES] = "processes"};

    return names[mode];
}

void rows_result_free(struct rows_result *result)
{
    free(result->measurements);
    free(result->break_evens);
    *result = (struct rows_result){0};
}
