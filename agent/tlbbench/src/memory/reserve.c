/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/reservation.h"

#include "base/tree.h"
#include "memory/backing.h"

#include <fcntl.h>
#include <sys/stat.h>

const struct reserve_paths RESERVE_SYSTEM = {.sysfs = "/sys", .journal_dir = NULL};

#define JOURNAL_PATH "%.240s/journal"

enum { JOURNAL_BYTES_MAX = 8192, OPEN_TRIES = 8 };

/* Pages of the pool without those that the kernel lends beyond its count (surplus), which go by themselves. What is
 * written to nr_hugepages is this count; what is read there has the surplus in it. */
static int64_t read_persistent(const struct reserve_paths *places, uint64_t page_bytes, int node)
{
    int64_t all = pool_read(places->sysfs, node, page_bytes, "nr_hugepages");
    int64_t surplus = pool_read(places->sysfs, node, page_bytes, "surplus_hugepages");

    return all < 0 || surplus < 0 || surplus > all ? all : all - surplus;
}

/* Returns 0 or -1 (errno). The kernel stops at a signal or when it finds no more pages, so the caller reads the count
 * back. */
static int write_pool(const struct reserve_paths *places, const struct reserve_pool *pool, int64_t count)
{
    char path[POOL_PATH_BYTES];
    char text[32];
    int length = snprintf(text, sizeof(text), "%" PRId64 "\n", count);

    pool_path(places->sysfs, pool->node, pool->page_bytes, "nr_hugepages", path);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);

    if (fd < 0)
        return -1;
    ssize_t written = write(fd, text, (size_t)length);
    int error = errno;

    (void)close(fd);
    errno = error;
    return written == length ? 0 : -1;
}

int64_t reserve_restored_count(const struct reserve_pool *pool, int64_t current)
{
    int64_t lowest = pool->noted ? pool->held : pool->previous;

    return current >= lowest && current <= pool->held ? pool->previous : current;
}

/* Returns 1 where the pool was restored, or would be if it `writes`; 0 where it has its count; -1 on failure. */
static int restore_pool(const struct reserve_paths *places, const struct reserve_pool *pool, bool writes)
{
    int64_t current = read_persistent(places, pool->page_bytes, pool->node);
    int64_t count = reserve_restored_count(pool, current);

    if (current < 0)
        return -1;
    /* Pages of a process that is still being torn down come free a moment later, as surplus; the kernel then drops
     * them. */
    if (count == current)
        return 0;
    return writes && write_pool(places, pool, count) != 0 ? -1 : 1;
}

static void note_pool(const struct reserve_pool *pool, struct reserve_pool pools[RESERVE_POOLS_MAX], size_t *count)
{
    for (size_t index = 0; index < *count; index++) {
        if (pools[index].page_bytes == pool->page_bytes && pools[index].node == pool->node) {
            pools[index] = *pool;
            return;
        }
    }
    if (*count < RESERVE_POOLS_MAX)
        pools[(*count)++] = *pool;
}

/* Restores the pools that the journal names which is open and locked as `fd`, if it `writes`. Returns their number, or
 * -1 when one could not be written. */
static int replay_journal(const struct reserve_paths *places, int fd, bool writes)
{
    char text[JOURNAL_BYTES_MAX];
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    char head[RESERVE_HEAD_BYTES];
    struct reserve_pool pools[RESERVE_POOLS_MAX];
    size_t count = 0;
    char *rest = NULL;
    int restored = 0;

    text[length > 0 ? length : 0] = '\0';
    reserve_journal_head(head);
    if (strncmp(text, head, strlen(head)) != 0)
        return 0; /* of another boot, or nothing was taken yet */
    for (char *line = strtok_r(text + strlen(head), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct reserve_pool pool;

        if (reserve_parse_line(line, &pool))
            note_pool(&pool, pools, &count);
    }
    for (size_t index = count; index > 0; index--) {
        int changed = restore_pool(places, &pools[index - 1], writes);

        restored = changed < 0 || restored < 0 ? -1 : restored + changed;
    }
    return restored;
}

static int recover_journal(const struct reserve_paths *places, const char *path, bool writes)
{
    int fd = reserve_journal_lock(path, 0);

    if (fd < 0)
        return 0; /* none, or its owner lives */
    int restored = replay_journal(places, fd, writes);

    if (restored >= 0 && writes)
        reserve_journal_remove(path);
    (void)close(fd);
    return restored;
}

int reservation_recover(const struct reserve_paths *places, bool writes)
{
    int total = 0;

    for (unsigned number = 0; number < RESERVE_JOURNAL_DIRECTORIES; number++) {
        char directory[RESERVE_PATH_BYTES];
        char path[RESERVE_PATH_BYTES];

        if (!reserve_journal_directory(places, number, directory) || !reserve_journal_is_private(directory))
            continue;
        (void)snprintf(path, sizeof(path), JOURNAL_PATH, directory);
        int restored = recover_journal(places, path, writes);

        if (restored < 0)
            return -1;
        total += restored;
    }
    return total;
}

static int open_new_journal(struct reservation *reservation)
{
    for (unsigned number = 0; number < RESERVE_JOURNAL_DIRECTORIES; number++) {
        char directory[RESERVE_PATH_BYTES];

        if (!reserve_journal_directory(&reservation->places, number, directory))
            continue;
        (void)snprintf(reservation->journal_path, RESERVE_PATH_BYTES, JOURNAL_PATH, directory);
        for (unsigned try = 0; try < OPEN_TRIES && reservation->journal_fd < 0; try++) {
            if ((mkdir(directory, 0700) != 0 && errno != EEXIST) || !reserve_journal_is_private(directory))
                break;
            reservation->journal_fd = reserve_journal_lock(reservation->journal_path, O_CREAT);
            if (reservation->journal_fd < 0 && errno != ENOENT)
                break; /* ENOENT: the last owner removed the directory between the two */
        }
        if (reservation->journal_fd >= 0)
            return 0;
        if (errno == EWOULDBLOCK)
            return FAILED(&reservation->verdict, STATUS_SKIPPED, "--reserve: another program holds huge pages (%s)",
                          reservation->journal_path);
    }
    return FAILED(
        &reservation->verdict, STATUS_NOT_PERMITTED,
        "--reserve: no directory for the journal: /run/tlbbench, $XDG_RUNTIME_DIR and $TMPDIR are not writable");
}

int reservation_begin(struct reservation *reservation, const struct reserve_paths *places)
{
    char head[RESERVE_HEAD_BYTES];

    *reservation = (struct reservation){.places = *places, .journal_fd = -1};
    if (open_new_journal(reservation) != 0)
        return -1;
    /* Its owner may have died between our start, when it was still locked, and now. */
    if (replay_journal(places, reservation->journal_fd, true) < 0) {
        verdict_set(&reservation->verdict, STATUS_FAILED,
                    "--reserve: the pages that a killed run left cannot be given back (%s)", reservation->journal_path);
        (void)close(reservation->journal_fd);
        reservation->journal_fd = -1;
        return -1;
    }
    reserve_journal_head(head);
    if (ftruncate(reservation->journal_fd, 0) != 0 || reserve_journal_append(reservation->journal_fd, head) != 0) {
        verdict_set(&reservation->verdict, STATUS_FAILED, "--reserve: the journal cannot be written: %s",
                    strerror(errno));
        (void)reservation_end(reservation);
        return -1;
    }
    return 0;
}

/* Writes the pool that stands in the journal by now, and notes there what the kernel made of it. */
static void raise_pool(struct reservation *reservation, struct reserve_pool *pool)
{
    char line[RESERVE_LINE_BYTES];

    if (write_pool(&reservation->places, pool, pool->target) != 0) {
        verdict_set(&reservation->verdict,
                    errno == EACCES || errno == EPERM || errno == EROFS ? STATUS_NOT_PERMITTED : STATUS_FAILED,
                    "--reserve: the pool of %" PRIu64 " KiB pages cannot be written: %s", (pool->page_bytes / 1024),
                    strerror(errno));
    }
    pool->got = read_persistent(&reservation->places, pool->page_bytes, pool->node);
    if (pool->got < pool->previous)
        return;
    pool->held = pool->got;
    pool->noted = true;
    reserve_format_line(pool, line);
    (void)reserve_journal_append(reservation->journal_fd, line); /* without it the target counts, as before the write */
}

void reservation_take(struct reservation *reservation, uint64_t page_bytes, int node, int64_t free_pages)
{
    const struct reserve_paths *places = &reservation->places;
    int64_t previous = read_persistent(places, page_bytes, node);
    int64_t all = pool_read(places->sysfs, node, page_bytes, "nr_hugepages");
    int64_t free_now = backing_free_pages(places->sysfs, page_bytes, node);
    char line[RESERVE_LINE_BYTES];

    if (reservation->journal_fd < 0 || previous < 0 || all < 0 || free_now < 0 || free_now >= free_pages ||
        reservation->pool_count == RESERVE_POOLS_MAX)
        return;
    struct reserve_pool *pool = &reservation->pools[reservation->pool_count];
    int64_t target = all + (free_pages - free_now);

    *pool = (struct reserve_pool){.page_bytes = page_bytes,
                                  .node = node,
                                  .previous = previous,
                                  .target = target,
                                  .got = previous,
                                  .held = target};
    reserve_format_line(pool, line);
    if (reserve_journal_append(reservation->journal_fd, line) != 0) {
        verdict_set(&reservation->verdict, STATUS_FAILED, "--reserve: the journal cannot be written: %s",
                    strerror(errno));
        return;
    }
    reservation->pool_count++;
    raise_pool(reservation, pool);
}

int reservation_end(struct reservation *reservation)
{
    int status = 0;

    if (reservation->journal_fd < 0)
        return 0;
    for (size_t index = reservation->pool_count; index > 0; index--) {
        if (restore_pool(&reservation->places, &reservation->pools[index - 1], true) < 0) {
            verdict_set(&reservation->verdict, STATUS_FAILED,
                        "--reserve: a pool could not be given back; the next start tries again");
            status = -1;
        }
    }
    if (status == 0)
        reserve_journal_remove(reservation->journal_path);
    (void)close(reservation->journal_fd);
    reservation->journal_fd = -1;
    return status;
}
