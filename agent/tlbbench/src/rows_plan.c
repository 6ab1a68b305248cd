/* SPDX-License-Identifier: Apache-2.0 */
#include "rows_plan.h"

#include <stdlib.h>

enum { SPECS_MAX = 4096 };

static const uint64_t DEFAULT_ROW_BYTES[] = {128, 8192, 16384};
static const unsigned FULL_WORKERS[] = {1, 2, 4, 8, 16, 32, 64, 128};
static const unsigned QUICK_WORKERS[] = {1, 8, 64};

static void add_spec(const struct session *session, struct rows_spec spec, struct rows_specs *specs)
{
    const struct options *const options = session->options;

    if (specs->count < SPECS_MAX && (options->modes & OPTION_BIT(spec.mode)) != 0 &&
        (options->keys & OPTION_BIT(spec.keys)) != 0 && (options->reads & OPTION_BIT(spec.read)) != 0) {
        specs->items[specs->count++] = spec;
    }
}

/* The quick profile varies one thing at a time around a default; explicit lists and the full profile take all
 * combinations at few workers and the ladder of workers for the default. */
static bool is_in_profile(const struct session *session, const struct rows_spec *spec)
{
    const bool is_default = spec->keys == KEYS_UNIFORM && spec->read == READ_INDEX_THEN_ROW;

    if (session->options->workers_count > 0 || session->options->row_bytes_count > 0) {
        return true;
    }
    if (session->options->profile == PROFILE_FULL) {
        return is_default || spec->workers == 1 || spec->workers == 16;
    }
    if (spec->workers != 8) {
        return is_default && spec->row_bytes <= 8192;
    }
    return is_default || (spec->keys == KEYS_UNIFORM && spec->row_bytes == 8192) ||
           (spec->read == READ_INDEX_THEN_ROW && spec->row_bytes <= 8192);
}

int rows_plan(const struct session *session, struct rows_specs *specs)
{
    const struct options *const options = session->options;
    const bool full = options->profile == PROFILE_FULL;
    const unsigned *const workers = options->workers_count > 0 ? options->workers : full ? FULL_WORKERS : QUICK_WORKERS;
    const size_t worker_steps = options->workers_count > 0 ? options->workers_count
                                : full                     ? sizeof(FULL_WORKERS) / sizeof(FULL_WORKERS[0])
                                                           : sizeof(QUICK_WORKERS) / sizeof(QUICK_WORKERS[0]);
    const uint64_t *const widths = options->row_bytes_count > 0 ? options->row_bytes : DEFAULT_ROW_BYTES;
    const size_t width_steps = options->row_bytes_count > 0 ? options->row_bytes_count
                                                            : sizeof(DEFAULT_ROW_BYTES) / sizeof(DEFAULT_ROW_BYTES[0]);

    specs->count = 0;
    specs->items = calloc(SPECS_MAX, sizeof(*specs->items));
    if (specs->items == NULL) {
        return -1;
    }
    for (size_t width = 0; width < width_steps; width++) {
        for (size_t step = 0; step < worker_steps; step++) {
            for (unsigned combination = 0; combination < 12; combination++) {
                const struct rows_spec spec = {.row_bytes = widths[width],
                                               .workers = workers[step],
                                               .mode = combination % 2,
                                               .keys = combination / 2 % 2,
                                               .read = combination / 4};

                if (is_in_profile(session, &spec)) {
                    add_spec(session, spec, specs);
                }
            }
        }
    }
    return 0;
}
