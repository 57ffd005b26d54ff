/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits with a limit, by the clock of base/clock.h: for a condition variable and for a mutex.
 *
 * A condition variable goes by the clock that it was made for, so all are made here, and
 * pthread_cond_init(), PTHREAD_COND_INITIALIZER and pthread_cond_timedwait() are nobody else's.
 * All of this works with a C library that has no pthread_cond_clockwait().
 */
#ifndef GP_LOCK_H
#define GP_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void gp_cond_init(pthread_cond_t *cond);

/* For one of static storage, it is made before main() begins. */
#define GP_COND_AT_START(cond) GP_COND_AT_START_(cond, __LINE__)
#define GP_COND_AT_START_(cond, line) GP_COND_AT_START__(cond, line)
#define GP_COND_AT_START__(cond, line)                                                             \
	static void __attribute__((constructor)) gp_cond_at_start_##line(void)                     \
	{                                                                                          \
		gp_cond_init(&(cond));                                                             \
	}                                                                                          \
	struct gp_cond_at_start

/* Until somebody signals or the time is at_ns; GP_FOREVER: no limit.  false: the time is over. */
bool gp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at_ns);

/* Whether it is the caller's before the time is at_ns.  For one that others have for long: who
 * waits looks a thousand times a second. */
bool gp_lock_until(pthread_mutex_t *lock, uint64_t at_ns);

#endif /* GP_LOCK_H */
