/* SPDX-License-Identifier: Apache-2.0 */
/* A journal is read as root and its numbers are written to the pools: what parses must be sane and must survive
 * writing. */
#include "fuzz.h"
#include "memory/reservation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct reserve_pool pool;
    struct reserve_pool again;
    char line[RESERVE_LINE_BYTES];

    if (reserve_parse_line(text, &pool)) {
        PROMISE(pool.page_bytes > 0 && pool.node >= -1 && pool.previous >= 0 && pool.target >= pool.previous);
        reserve_format_line(&pool, line);
        PROMISE(strlen(line) < sizeof(line));
        PROMISE(reserve_parse_line(line, &again));
        PROMISE(again.page_bytes == pool.page_bytes && again.node == pool.node && again.previous == pool.previous &&
                again.target == pool.target);
        PROMISE(reserve_restored_count(&pool, pool.held) == pool.previous);
    }
    free(text);
    return 0;
}
