/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/reservation.h"

#include "base/tree.h"

#include <fcntl.h>
#include <mntent.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { LOCK_TRIES = 8 };

void reserve_format_line(const struct reserve_pool *pool, char line[RESERVE_LINE_BYTES])
{
    (void)snprintf(line, RESERVE_LINE_BYTES, "pool page_bytes=%" PRIu64 " node=%d former=%" PRId64 " %s=%" PRId64 ".\n",
                   pool->page_bytes, pool->node, pool->previous, pool->noted ? "held" : "target",
                   (pool->noted ? pool->held : pool->target));
}

bool reserve_parse_line(const char *line, struct reserve_pool *pool)
{
    struct reserve_pool read = {0};
    char word[8], end = 0;

    if (sscanf(line, "pool page_bytes=%" SCNu64 " node=%d former=%" SCNd64 " %7[a-z]=%" SCNd64 "%c", &read.page_bytes,
               &read.node, &read.previous, word, &read.target, &end) != 6 ||
        end != '.' || read.previous < 0 || read.target < read.previous || read.node < -1 || read.page_bytes == 0)
        return false;
    read.noted = strcmp(word, "held") == 0;
    read.got = read.held = read.target;
    if (!read.noted && strcmp(word, "target") != 0)
        return false;
    *pool = read;
    return true;
}

void reserve_journal_head(char head[RESERVE_HEAD_BYTES])
{
    char boot_id[40];

    (void)tree_read_line("", "/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
    (void)snprintf(head, RESERVE_HEAD_BYTES, "tlbbench reservation 1, boot %s\n", boot_id);
}

bool reserve_journal_directory(const struct reserve_paths *places, unsigned number, char path[RESERVE_PATH_BYTES])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");

    if (places->journal_dir != NULL) {
        (void)snprintf(path, RESERVE_PATH_BYTES, "%s", places->journal_dir);
        return number == 0;
    }
    switch (number) {
    case 0:
        (void)snprintf(path, RESERVE_PATH_BYTES, "/run/tlbbench");
        return true;
    case 1:
        (void)snprintf(path, RESERVE_PATH_BYTES, "%.200s/tlbbench", runtime != NULL ? runtime : "");
        return runtime != NULL && runtime[0] == '/';
    default:
        (void)snprintf(path, RESERVE_PATH_BYTES, "%.200s/tlbbench-%u",
                       temporary != NULL && temporary[0] == '/' ? temporary : "/tmp", (unsigned)geteuid());
        return true;
    }
}

/* Of a mount of FUSE the owner is what the user who serves it says, and it may never answer: nothing is asked of it. */
static bool is_fuse_mount(const char *path)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    bool found = false;

    for (const struct mntent *one; mounts != NULL && (one = getmntent(mounts)) != NULL;)
        if (strcmp(one->mnt_dir, path) == 0)
            found = strncmp(one->mnt_type, "fuse", strlen("fuse")) == 0;
    if (mounts != NULL)
        (void)endmntent(mounts);
    return found;
}

bool reserve_journal_is_private(const char *path)
{
    struct stat found;

    return !is_fuse_mount(path) && lstat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
           (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int reserve_journal_lock(const char *path, int flags)
{
    for (unsigned try = 0; try < LOCK_TRIES; try++) {
        struct stat opened, named;
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);

        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            int error = errno;

            /* A file system without locks: the file that was just made is of no use. */
            if (error != EWOULDBLOCK && fstat(fd, &opened) == 0 && opened.st_size == 0)
                reserve_journal_remove(path);
            (void)close(fd);
            errno = error;
            return -1;
        }
        /* Its last owner may have removed it between our open and our lock: then this file is nobody's journal. */
        if (fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
            opened.st_dev == named.st_dev)
            return fd;
        (void)close(fd);
    }
    errno = EWOULDBLOCK;
    return -1;
}

void reserve_journal_remove(const char *path)
{
    char directory[RESERVE_PATH_BYTES];

    (void)unlink(path);
    (void)snprintf(directory, sizeof(directory), "%s", path);
    char *slash = strrchr(directory, '/');

    if (slash != NULL) {
        *slash = '\0';
        (void)rmdir(directory); /* stays when somebody else's file is in it */
    }
}

int reserve_journal_append(int fd, const char *text)
{
    off_t end = lseek(fd, 0, SEEK_END);
    size_t length = strlen(text);

    errno = ENOSPC; /* what a short write means; others set their own */
    if (end < 0 || (write(fd, text, length) == (ssize_t)length && fsync(fd) == 0))
        return end < 0 ? -1 : 0;
    int error = errno;
    int cut = ftruncate(fd, end); /* half a line would spoil the next one */

    errno = cut == 0 ? error : errno;
    return -1;
}
