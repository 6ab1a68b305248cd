/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of the core clock. */
#ifndef TLBBENCH_ENGINE_CORE_CLOCK_H
#define TLBBENCH_ENGINE_CORE_CLOCK_H

/* Core cycles per second from a chain of dependent additions, one cycle each; NAN when every try was disturbed. The
 * time stamp counter runs at another rate and says nothing about it. */
double core_clock_hz(void);

#endif
