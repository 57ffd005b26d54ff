/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
/* Longest interval at which waits poll an advanced clock or a mutex. */
#define POLL_NS UINT64_C(1000000)
#define POLL_MIN_NS UINT64_C(20000)

void
gp_lock_init_adaptive(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;

	(void)pthread_mutexattr_init(&attributes);
	(void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	(void)pthread_mutex_init(lock, &attributes);
	(void)pthread_mutexattr_destroy(&attributes);
}

void
gp_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

static bool
cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)(ns / SECOND_NS);
	at.tv_nsec += (long)(ns % SECOND_NS);
	if (at.tv_nsec >= (long)SECOND_NS) {
		at.tv_sec++;
		at.tv_nsec -= (long)SECOND_NS;
	}
	return pthread_cond_timedwait(cond, lock, &at) != ETIMEDOUT;
}

bool
gp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at_ns)
{
	uint64_t now;

	if (at_ns == GP_FOREVER) {
		(void)pthread_cond_wait(cond, lock);
		return true;
	}
	while ((now = gp_now_ns()) < at_ns) {
		uint64_t left = at_ns - now;

		if (gp_clock_is_advanced() && left > POLL_NS)
			left = POLL_NS;
		if (cond_wait_ns(cond, lock, left))
			return true;
	}
	return false;
}

bool
gp_lock_until(pthread_mutex_t *lock, uint64_t at_ns)
{
	uint64_t nap = POLL_MIN_NS;

	while (pthread_mutex_trylock(lock)) {
		uint64_t now = gp_now_ns();

		if (now >= at_ns)
			return false;
		gp_sleep_ns(nap < at_ns - now ? nap : at_ns - now);
		nap = 2 * nap < POLL_NS ? 2 * nap : POLL_NS;
	}
	return true;
}
