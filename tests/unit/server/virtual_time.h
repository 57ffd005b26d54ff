/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time for tests of threads that wait for the clock.
 *
 * Time stands still while any thread of the process runs. When all threads wait, it advances at
 * once to the earliest deadline, so results do not depend on the machine's speed. The linker's
 * --wrap redirects gp_now_ns(), gp_sleep_ns(), threads and condition variables of the tested code
 * to it (virtual_time_dep in meson.build).
 * Threads: any. A thread that waits otherwise, for a mutex or in a system call, counts as running
 * and stops the clock.
 * Errors: aborts if all threads wait and none has a deadline.
 * Units: nanoseconds; the clock starts at 1 s.
 */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdint.h>

/* Returns the virtual time. */
uint64_t virtual_now_ns(void);
/* Waits until the virtual time is at least `ns`. */
void virtual_sleep_until(uint64_t ns);
/* Sets a function that is called each time the clock has advanced, before any thread continues. It
 * is called by the last thread that has begun to wait, under the clock's lock, so it must not wait.
 * NULL: none. */
void virtual_time_watch(void (*passed)(uint64_t now_ns));

#endif /* VIRTUAL_TIME_H */
