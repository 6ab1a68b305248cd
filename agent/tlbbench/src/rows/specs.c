/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"

static const struct number_list DEFAULT_ROW_BYTES = {{128, 8192, 16384}, 3};
static const struct number_list FULL_WORKERS = {{1, 2, 4, 8, 16, 32, 64, 128}, 8};
static const struct number_list QUICK_WORKERS = {{1, 8, 64}, 3};

static void add_spec(const struct rows_request *request, struct rows_spec spec, struct rows_specs *specs)
{
    if ((request->modes & SET_BIT(spec.mode)) != 0 && (request->keys & SET_BIT(spec.keys)) != 0 &&
        (request->reads & SET_BIT(spec.read)) != 0)
        specs->items[specs->count++] = spec;
}

/* The quick profile varies one thing at a time around a default; explicit lists and the full profile take all
 * combinations at few workers and the sweep of workers for the default. */
static bool is_in_profile(const struct rows_request *request, bool full, const struct rows_spec *spec)
{
    bool is_default = spec->keys == KEYS_UNIFORM && spec->read == READ_INDEX_THEN_ROW;

    if (request->workers.count > 0 || request->row_bytes.count > 0)
        return true;
    if (full)
        return is_default || spec->workers == 1 || spec->workers == 16;
    if (spec->workers != 8)
        return is_default && spec->row_bytes <= 8192;
    return is_default || (spec->keys == KEYS_UNIFORM && spec->row_bytes == 8192) ||
           (spec->read == READ_INDEX_THEN_ROW && spec->row_bytes <= 8192);
}

void rows_plan(const struct rows_request *request, bool full, struct rows_specs *specs)
{
    const struct number_list *widths = request->row_bytes.count > 0 ? &request->row_bytes : &DEFAULT_ROW_BYTES;
    const struct number_list *workers = request->workers.count > 0 ? &request->workers
                                        : full                     ? &FULL_WORKERS
                                                                   : &QUICK_WORKERS;

    specs->count = 0;
    for (size_t width = 0; width < widths->count; width++) {
        for (size_t step = 0; step < workers->count; step++) {
            for (unsigned combination = 0; combination < ROWS_COMBINATIONS; combination++) {
                struct rows_spec spec = {.row_bytes = widths->items[width],
                                         .workers = (unsigned)workers->items[step],
                                         .mode = combination % 2,
                                         .keys = combination / 2 % 2,
                                         .read = combination / 4};

                if (is_in_profile(request, full, &spec))
                    add_spec(request, spec, specs);
            }
        }
    }
}

const char *const ROW_KEYS_NAMES[] = {[KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf"};

const char *const ROW_READ_NAMES[] = {
    [READ_HEADER] = "header", [READ_ROW] = "row", [READ_INDEX_THEN_ROW] = "index_then_row"};

const char *const ROW_MODE_NAMES[] = {[MODE_THREADS] = "threads", [MODE_PROCESSES] = "processes"};
