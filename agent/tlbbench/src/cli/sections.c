/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sections.h"

#include "cli/latency_section.h"

/* --- what counts as partial ------------------------------------------------------------------------------------ */

/* A size whose pool was never filled is a fact about the node; one that was requested, by name or by reserving, or
 * whose pool is used up, is missing. */
static bool is_missing(const struct asked *asked, enum status status, uint64_t page_bytes)
{
    const struct pool *pool = environment_pool(asked->environment, page_bytes);

    switch (status) {
    case STATUS_OK:
    case STATUS_FRACTURED:
    case STATUS_NOT_REACHED:
    case STATUS_CPUID_HIDDEN:
        return false;
    case STATUS_THP_NOT_GRANTED: /* the kernel's settings, where nobody requested THP by name */
        return asked->options->thp;
    case STATUS_NO_FREE_HUGEPAGES:
        return asked->options->reserve || asked->options->page_sizes.count > 0 || (pool != NULL && pool->nr > 0);
    default:
        return true;
    }
}

static bool curves_miss(const struct asked *asked, const struct curve_list *curves)
{
    for (size_t index = 0; index < curves->count; index++)
        if (is_missing(asked, curves->items[index].verdict.status, curves->items[index].backing.page_bytes))
            return true;
    return false;
}

static int measure_geometry(struct session *session, const struct options *options, struct run_result *result)
{
    (void)options;
    result->geometry = calloc(1, sizeof(*result->geometry));
    return result->geometry == NULL ? -1 : geometry_measure(session, result->geometry);
}

static bool geometry_is_partial(const struct asked *asked, const struct run_result *result)
{
    const struct geometry_result *geometry = result->geometry;

    for (size_t index = 0; index < geometry->effective_page_count; index++)
        if (is_missing(asked, geometry->effective_pages[index].verdict.status,
                       geometry->effective_pages[index].backing.page_bytes))
            return true;
    return curves_miss(asked, &geometry->curves);
}

static bool latency_is_partial(const struct asked *asked, const struct run_result *result)
{
    enum status pressure = result->pressure->verdict.status;

    /* Without a large page the curves say whose it is; without a size to compare with there was nothing to do. */
    return curves_miss(asked, &result->latency->curves) ||
           (pressure != STATUS_SKIPPED && pressure != STATUS_NO_FREE_HUGEPAGES && pressure != STATUS_THP_NOT_GRANTED &&
            is_missing(asked, pressure, 0));
}

static int measure_rows(struct session *session, const struct options *options, struct run_result *result)
{
    result->rows = calloc(1, sizeof(*result->rows));
    return result->rows == NULL ? -1 : rows_measure(session, &options->rows, result->rows);
}

static bool rows_is_partial(const struct asked *asked, const struct run_result *result)
{
    for (size_t index = 0; index < result->rows->measurement_count; index++) {
        const struct row_measurement *item = &result->rows->measurements[index];

        if (is_missing(asked, item->verdict.status, item->backing.page_bytes))
            return true;
    }
    return false;
}

static int measure_scatter(struct session *session, const struct options *options, struct run_result *result)
{
    (void)options;
    result->scatter = calloc(1, sizeof(*result->scatter));
    return result->scatter == NULL ? -1 : scatter_measure(session, result->scatter);
}

static bool scatter_is_partial(const struct asked *asked, const struct run_result *result)
{
    return curves_miss(asked, &result->scatter->curves);
}

struct verdict *section_verdict(const struct section *section, struct run_result *result)
{
    void *found = NULL;

    memcpy(&found, (const char *)result + section->result, sizeof(found));
    return found;
}

const struct section SECTIONS[SECTION_COUNT] = {
    {"geometry", COMMAND_GEOMETRY, 5, 8, 25, measure_geometry, offsetof(struct run_result, geometry),
     geometry_is_partial},
    {"latency", COMMAND_LATENCY, 20, 18, 145, latency_section_measure, offsetof(struct run_result, latency),
     latency_is_partial},
    {"rows", COMMAND_ROWS, 30, 27, 105, measure_rows, offsetof(struct run_result, rows), rows_is_partial},
    {"scatter", COMMAND_SCATTER, 5, 5, 20, measure_scatter, offsetof(struct run_result, scatter), scatter_is_partial},
};
