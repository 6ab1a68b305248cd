/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include "parse.h"
#include "signals.h"
#include "tlb.h"
#include "tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool session_must_stop(const struct session *session, struct verdict *verdict)
{
    if (signals_stop_requested()) {
        verdict_set(verdict, STATUS_STOPPED, "stopped by signal %d", signals_stop_signal());
        return true;
    }
    if (deadline_passed(session->deadline)) {
        verdict_set(verdict, STATUS_STOPPED, "the time limit was reached");
        return true;
    }
    return false;
}

void session_report_progress(const struct session *session, double fraction)
{
    if (session->progress != NULL) {
        session->progress(session->progress_context, fraction);
    }
}

static void name_backing(struct backing *backing)
{
    char text[PAGE_TEXT_BYTES];

    (void)snprintf(backing->name, sizeof(backing->name), "%.15s", page_text(backing->page_bytes, text));
}

size_t session_list_backings(const struct session *session, struct backing backings[SESSION_BACKINGS_MAX])
{
    const struct environment *const environment = session->environment;
    size_t count = 0;

    backings[count] = (struct backing){.kind = BACKING_BASE, .page_bytes = session->base_page_bytes};
    name_backing(&backings[count]);
    count++;
    if (options_want_thp(session->options) && environment->thp.enabled[0] != '\0' && environment->thp_bytes > 0) {
        backings[count++] = (struct backing){.kind = BACKING_THP, .page_bytes = environment->thp_bytes, .name = "THP"};
    }
    for (size_t index = 0; index < environment->pool_count && count < SESSION_BACKINGS_MAX; index++) {
        const uint64_t page_bytes = environment->pools[index].page_bytes;

        if (options_want_page_size(session->options, page_bytes)) {
            backings[count] = (struct backing){.kind = BACKING_HUGETLB, .page_bytes = page_bytes};
            name_backing(&backings[count]);
            count++;
        }
    }
    return count;
}

bool session_allows(const struct session *session, const struct backing *backing, uint64_t mapped_bytes, uint64_t bytes,
                    struct verdict *verdict)
{
    const unsigned long long mib = 1ull << 20;

    if (mapped_bytes <= session->memory_bytes && bytes <= session->memory_bytes - mapped_bytes) {
        return true;
    }
    if (backing->page_bytes > session->memory_bytes) {
        verdict_set(verdict, STATUS_MEMORY_LIMIT, "one %s page is more than the %llu MiB that may be used",
                    backing->name, (unsigned long long)session->memory_bytes / mib);
    } else {
        verdict_set(verdict, STATUS_MEMORY_LIMIT,
                    "%llu MiB in %s pages do not fit: %llu MiB may be used, %llu MiB are taken",
                    (unsigned long long)bytes / mib, backing->name, (unsigned long long)session->memory_bytes / mib,
                    (unsigned long long)mapped_bytes / mib);
    }
    return false;
}

/* Size of the data or unified cache of the highest level up to `level_max`; 0 when the kernel lists none. */
static uint64_t read_cache_bytes(int64_t level_max)
{
    enum { CACHE_INDEXES = 8 };
    uint64_t bytes = 0;
    int64_t best = 0;

    for (int index = 0; index < CACHE_INDEXES; index++) {
        char directory[64];
        char path[96];
        char text[32];
        uint64_t size = 0;

        (void)snprintf(directory, sizeof(directory), "/sys/devices/system/cpu/cpu0/cache/index%d", index);
        (void)snprintf(path, sizeof(path), "%s/level", directory);
        const int64_t level = tree_read_number("", path);

        (void)snprintf(path, sizeof(path), "%s/size", directory);
        if (!tree_read_line("", path, text, sizeof(text)) || !parse_size(text, &size)) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/type", directory);
        (void)tree_read_line("", path, text, sizeof(text)); /* absent = not one of instructions */
        if (level > best && level <= level_max && size > 0 && strcmp(text, "Instruction") != 0) {
            best = level;
            bytes = size;
        }
    }
    return bytes;
}

uint64_t session_l1_data_bytes(void)
{
    const uint64_t bytes = read_cache_bytes(1);

    return bytes > 0 ? bytes : 32u << 10;
}

uint64_t session_last_cache_bytes(void)
{
    const uint64_t bytes = read_cache_bytes(9);

    return bytes > 0 ? bytes : 32u << 20;
}
