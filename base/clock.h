/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that waits and ages are told from: monotonic, so nobody who sets the time of day makes
 * a wait longer or shorter.  What has a date (certificates, tokens, files) goes by time().  A
 * deadline is a time of this clock.  Any thread.
 */
#ifndef GP_CLOCK_H
#define GP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* No deadline. */
#define GP_FOREVER UINT64_MAX

uint64_t gp_now_ns(void);
int64_t gp_now_ms(void);

/* A negative timeout is none. */
uint64_t gp_deadline_ns(int timeout_ms);
/* The same in milliseconds, for who polls; negative: no limit. */
int64_t gp_deadline_ms(int timeout_ms);
int gp_remaining_ms(int64_t deadline);

/* How long the calling thread has had a processor: who rests in proportion to its work does so on a
 * machine that is busy, too. */
uint64_t gp_thread_cpu_ns(void);

/* Signals do not end it. */
void gp_sleep_ns(uint64_t ns);

/* For tests: so much time has passed.  Waits that have begun notice it within a millisecond, if
 * the clock was moved (by nothing, too) before they began. */
void gp_clock_advance(uint64_t ns);
bool gp_clock_is_advanced(void);

#endif /* GP_CLOCK_H */
