/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>

static volatile sig_atomic_t stop_signal;

/* Where a SIGBUS of this thread goes; NULL = not expected, then the default action ends the process. */
static _Thread_local sigjmp_buf *volatile bus_return;

static void handle_stop(int number)
{
    stop_signal = number;
}

/* si_code of the latest SIGBUS of this thread. */
static _Thread_local volatile sig_atomic_t bus_code;

static void handle_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    bus_code = info->si_code;
    if (bus_return != NULL)
        siglongjmp(*bus_return, 1);
    signal(number, SIG_DFL); /* unexpected: returning repeats the access, which now ends the process */
}

int signals_install(void)
{
    /* SIGXCPU: RLIMIT_CPU is used up; what was measured and the pages taken must not be lost to it. */
    static const int stops[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU};
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = handle_stop;
    for (size_t index = 0; index < sizeof(stops) / sizeof(stops[0]); index++)
        if (sigaction(stops[index], &action, NULL) != 0)
            return -1;
    action.sa_handler = SIG_IGN; /* a closed reader must not leave pools reserved; writes report the error instead */
    if (sigaction(SIGPIPE, &action, NULL) != 0 || sigaction(SIGXFSZ, &action, NULL) != 0) /* RLIMIT_FSIZE: EFBIG */
        return -1;
    action.sa_sigaction = handle_bus;
    action.sa_flags = (int)SA_NODEFER | SA_SIGINFO;
    const char *parent = getenv("TLBBENCH_PARENT");

    /* What ended before this line sends no signal any more. It may have started us through another program. */
    if (parent != NULL && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && kill((int)strtol(parent, NULL, 10), 0) != 0 &&
        errno == ESRCH)
        stop_signal = SIGTERM;
    return sigaction(SIGBUS, &action, NULL);
}

bool signals_stop_requested(void)
{
    return stop_signal != 0;
}

int signals_stop_signal(void)
{
    return (int)stop_signal;
}

int signals_guard_bus(void (*body)(void *context), void *context)
{
    sigjmp_buf here;
    sigjmp_buf *outer = bus_return;

    if (sigsetjmp(here, 1) != 0) {
        bus_return = outer;
        return -1;
    }
    bus_return = &here;
    body(context);
    bus_return = outer;
    return 0;
}

const char *signals_bus_reason(void)
{
    return bus_code == BUS_MCEERR_AR || bus_code == BUS_MCEERR_AO
               ? "the memory under it is damaged (a hardware memory error)"
               : "a reserved page was not available";
}
