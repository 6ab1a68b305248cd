/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are read how: from the request and the profile. */
#pragma once

#include "rows/reader.h"
#include "rows/result.h"

#include <stddef.h>

struct rows_specs {
    struct rows_spec *items; /* free() them */
    size_t count;
};

/* Lists what every page size is measured with. Returns 0, or -1 when there is no memory. */
int rows_plan(const struct rows_request *request, bool full, struct rows_specs *specs);
