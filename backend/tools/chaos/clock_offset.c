/* Adds the seconds that stand in the file CLOCK_OFFSET_FILE (8 bytes, mapped) to the wall clock of one process.
 *
 * LD_PRELOAD. The monotonic clock stays, so that only the wall clock steps, as with settimeofday. libfaketime cannot be
 * used for this: it stands before epoll_wait too, and version 0.9.10 makes an asyncio loop wait for ever there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_seconds;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("CLOCK_OFFSET_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_seconds, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        offset_seconds = mapped;
    if (file >= 0)
        close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && offset_seconds && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset_seconds;
    return failed;
}

/* PostgreSQL's clock. */
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    if (!failed) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *now) {
    struct timespec precise;
    time_t seconds = clock_gettime(CLOCK_REALTIME, &precise) ? (time_t)-1 : precise.tv_sec;
    if (now)
        *now = seconds;
    return seconds;
}
