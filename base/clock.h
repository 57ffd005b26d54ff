/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Monotonic clock for timeouts, deadlines and ages. Setting the system time does not affect it.
 * Calendar times (of certificates, tokens, files) use time() instead. A deadline is an absolute
 * time of this clock, in the unit that the function's name ends with.
 *
 * Threads: any; only gp_sleep_ns() waits.
 * Errors: none.
 */
#ifndef GP_CLOCK_H
#define GP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A deadline that never passes. */
#define GP_FOREVER UINT64_MAX

/* Return the current time of the clock since an arbitrary start, in nanoseconds or milliseconds. */
uint64_t gp_now_ns(void);
int64_t gp_now_ms(void);

/* Returns the deadline that is timeout_ms from now; GP_FOREVER if timeout_ms is negative. */
uint64_t gp_deadline_ns(int timeout_ms);
/* Returns the deadline that is timeout_ms from now, in milliseconds; -1 (no limit) if timeout_ms is
 * negative. */
int64_t gp_deadline_ms(int timeout_ms);
/* Returns the milliseconds until a deadline of gp_deadline_ms(), as a timeout for poll(): 0 if the
 * deadline has passed, -1 (no limit) if it is negative, and at most INT_MAX. */
int gp_remaining_ms(int64_t deadline);

/* Returns the CPU time that the calling thread has consumed, in nanoseconds. A thread that sleeps
 * in proportion to its work measures the work with this clock, because on a busy machine elapsed
 * time includes the time of other threads. */
uint64_t gp_thread_cpu_ns(void);

/* Sleeps for at least ns nanoseconds; signals do not end the sleep early. */
void gp_sleep_ns(uint64_t ns);

/* For tests: advances the clock by ns. Waits with a deadline that are in progress (gp_sleep_ns(),
 * gp_cond_wait_until() in lock.h) notice this within a millisecond if they began after an earlier
 * call of this function; that may have been a call with 0. */
void gp_clock_advance(uint64_t ns);
/* Returns whether gp_clock_advance() was called in this process. */
bool gp_clock_is_advanced(void);

#endif /* GP_CLOCK_H */
