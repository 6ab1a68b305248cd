/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/early_page.h"

#include "base/clock.h"
#include "base/signals.h"
#include "base/tree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_NANOSECONDS = 2000000, LIST_BYTES = 256 };

static void siblings_of(int cpu, struct cpu_list *siblings)
{
    char path[96];
    char text[LIST_BYTES];

    (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    if (!tree_read_line("", path, text, sizeof(text)) || !parse_cpu_list(text, siblings))
        *siblings = (struct cpu_list){0};
}

/* The cores that may be used and share nothing of the translation hardware with the measured one. */
static bool other_cores(int measured, const struct cpu_list *cpus, cpu_set_t *mask)
{
    struct cpu_list siblings;

    siblings_of(measured, &siblings);
    CPU_ZERO(mask);
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < CPU_LIST_MAX; cpu++)
        if (cpu != measured && cpu_list_has(cpus, cpu) && !cpu_list_has(&siblings, cpu))
            CPU_SET((size_t)cpu, mask);
    return CPU_COUNT(mask) > 0;
}

_Noreturn static void zero_page(const struct early_page *page, const cpu_set_t *mask, int node, pid_t parent)
{
    struct verdict ignored;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || sched_setaffinity(0, sizeof(*mask), mask) != 0)
        _exit(1);
    char *base = backing_map_file(page->fd, (size_t)page->backing.page_bytes, &ignored);

    if (base == NULL)
        _exit(1);
    backing_bind(base, (size_t)page->backing.page_bytes, node);
    (void)signal(SIGBUS, SIG_DFL); /* a promised page that is not there shows when the page is opened */
    *(volatile char *)base = 1;
    _exit(0);
}

void early_page_start(struct early_page *page, const struct backing *backing, int cpu, const struct cpu_list *cpus,
                      int node)
{
    pid_t parent = getpid();
    struct verdict ignored;
    cpu_set_t mask;

    *page = (struct early_page){.backing = *backing, .state = EARLY_NONE};
    if (backing_free_pages(backing->page_bytes, node) < 1 || !other_cores(cpu, cpus, &mask))
        return;
    page->fd = backing_memfd(backing->page_bytes, backing->page_bytes, &ignored);
    if (page->fd < 0)
        return;
    page->process = fork();
    if (page->process == 0)
        zero_page(page, &mask, node, parent);
    if (page->process < 0) {
        (void)close(page->fd);
        return;
    }
    page->state = EARLY_BUSY;
}

/* What the process came to: a page, or nothing that could be used. */
static void note_end(struct early_page *page, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        page->state = EARLY_READY;
        return;
    }
    (void)close(page->fd);
    page->state = EARLY_NONE;
}

enum early_state early_page_wait(struct early_page *page, double seconds)
{
    struct deadline end = deadline_after(seconds);
    struct timespec look = {.tv_nsec = POLL_NANOSECONDS};

    while (page->state == EARLY_BUSY) {
        int status = 0;
        pid_t ended = waitpid(page->process, &status, WNOHANG);

        if (ended == page->process)
            note_end(page, status);
        else if (ended < 0 && errno != EINTR)
            note_end(page, -1);
        else if (deadline_passed(end) || signals_stop_requested())
            break;
        else
            (void)nanosleep(&look, NULL);
    }
    return page->state;
}

int early_page_open(struct early_page *page, struct arena *arena, int node, struct verdict *verdict)
{
    int status = arena_open_file(arena, &page->backing, page->fd, (size_t)page->backing.page_bytes, node, verdict);

    (void)close(page->fd);
    page->state = EARLY_NONE;
    return status;
}

void early_page_end(struct early_page *page)
{
    if (page->state == EARLY_BUSY) {
        (void)kill(page->process, SIGKILL);
        (void)waitpid(page->process, NULL, WNOHANG); /* it may be in the kernel for seconds; init reaps it then */
    }
    if (page->state != EARLY_NONE)
        (void)close(page->fd);
    page->state = EARLY_NONE;
}
