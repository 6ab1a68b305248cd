/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>

static bool join(const char *root, const char *path, char joined[TREE_PATH_BYTES])
{
    int length = snprintf(joined, TREE_PATH_BYTES, "%s%s", root, path);

    if (length < 0 || length >= TREE_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

/* A captured tree may hold a FIFO: do not wait for its other end. */
static int open_file(const char *root, const char *path)
{
    char joined[TREE_PATH_BYTES];

    return join(root, path, joined) ? open(joined, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
}

FILE *tree_open(const char *root, const char *path)
{
    int fd = open_file(root, path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (file == NULL && fd >= 0)
        (void)close(fd);
    return file;
}

ssize_t tree_read(const char *root, const char *path, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    int fd = open_file(root, path);

    if (fd < 0)
        return -1;
    ssize_t n;

    do {
        n = read(fd, text + used, size - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && used < size - 1) || (n < 0 && errno == EINTR));
    int error = errno;

    (void)close(fd);
    errno = error;
    text[n < 0 ? 0 : used] = '\0';
    return n < 0 ? -1 : (ssize_t)used;
}

bool tree_read_line(const char *root, const char *path, char *text, size_t size)
{
    char raw[TREE_PATH_BYTES];

    text[0] = '\0';
    if (tree_read(root, path, raw, sizeof(raw)) < 0)
        return false;
    raw[strcspn(raw, "\n")] = '\0';
    (void)parse_trimmed(raw, text, size);
    text_clean(text);
    return true;
}

void pool_path(const char *sysfs, int node, uint64_t page_bytes, const char *file, char path[POOL_PATH_BYTES])
{
    char place[48] = "kernel/mm";

    if (node >= 0)
        (void)snprintf(place, sizeof(place), "devices/system/node/node%d", node);
    (void)snprintf(path, POOL_PATH_BYTES, "%s/%s/hugepages/hugepages-%" PRIu64 "kB/%s", sysfs, place, page_bytes / 1024,
                   file);
}

int64_t tree_read_number(const char *root, const char *path)
{
    char text[64];
    uint64_t value = 0;

    if (!tree_read_line(root, path, text, sizeof(text)) || !parse_u64(text, &value) || value > INT64_MAX)
        return -1;
    return (int64_t)value;
}

int64_t pool_read(const char *sysfs, int node, uint64_t page_bytes, const char *file)
{
    char path[POOL_PATH_BYTES];

    pool_path(sysfs, node, page_bytes, file, path);
    return tree_read_number("", path);
}

bool tree_list(const char *root, const char *path, void (*visit)(const char *name, void *context), void *context)
{
    char joined[TREE_PATH_BYTES];

    if (!join(root, path, joined))
        return false;
    DIR *directory = opendir(joined);

    if (directory == NULL)
        return false;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        if (entry->d_name[0] != '.')
            visit(entry->d_name, context);
    (void)closedir(directory);
    return true;
}
