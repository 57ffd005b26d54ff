/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time for tests of threads that wait for the clock. Time stands still while any thread of
 * the process runs. When all threads wait, it advances at once to the earliest deadline, so results
 * do not depend on the machine's pace.
 *
 * The linker's --wrap redirects gp_now_ns(), gp_sleep_ns(), threads and condition variables of the
 * tested code (virtual_time_dep in meson.build).
 * Threads: a thread that waits otherwise, for a mutex or in a system call, stops the clock.
 * Units: nanoseconds.
 */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdint.h>

uint64_t virtual_now_ns(void);
void virtual_sleep_until(uint64_t ns);
/* Sets a function that is called each time the clock has advanced, before any thread continues. It
 * must not wait. */
void virtual_time_watch(void (*passed)(uint64_t now_ns));

#endif /* VIRTUAL_TIME_H */
