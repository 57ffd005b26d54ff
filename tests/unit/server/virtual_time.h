/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time for tests of threads that wait by the clock: it passes only while all threads of the
 * process wait, and then at once to the first deadline.  So no result depends on the machine's
 * pace.
 *
 * The linker's --wrap lets the tested code use it (virtual_time_dep): gp_now_ns(), gp_sleep_ns(),
 * threads and condition variables.  Threads that wait otherwise, for a mutex or the kernel, stop
 * the clock.
 */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdint.h>

uint64_t virtual_now_ns(void);
void virtual_sleep_until(uint64_t ns);
/* Called whenever time has passed, before any thread goes on.  Must not wait. */
void virtual_time_watch(void (*passed)(uint64_t now_ns));

#endif /* VIRTUAL_TIME_H */
