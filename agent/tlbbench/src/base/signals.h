/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: SIGTERM, SIGINT, SIGHUP, SIGQUIT and SIGXCPU ask for an orderly stop (partial document, pools given back);
 * SIGBUS on pages that the kernel had promised becomes a return value. The only process-wide state of tlbbench lives
 * here.
 */
#pragma once

#include "base/std.h"

/* Installs the handlers. Call first in main, before anything that must be undone. Where TLBBENCH_PARENT is the number
 * of the process that started this one, its end is a SIGTERM. Returns 0 or -1 (errno). */
int signals_install(void);

/* True once a stop was requested; measuring loops look at it between batches. */
bool signals_stop_requested(void);

/* The signal that requested the stop, 0 = none. */
int signals_stop_signal(void);

/* Runs body(context). Returns 0, or -1 when a SIGBUS cut it short: a hugetlb or shared page that the kernel had
 * promised was not available. Locals that body changed are lost then; only what it wrote through `context` counts.
 * Nests. */
int signals_guard_bus(void (*body)(void *context), void *context);

/* Why the latest SIGBUS that signals_guard_bus() caught in this thread came. */
const char *signals_bus_reason(void);
