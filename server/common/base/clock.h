/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that times are told from: monotonic, but for gpd_until().  Any thread. */
#ifndef GPD_CLOCK_H
#define GPD_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
gpd_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline int64_t
gpd_now_ms(void)
{
	return (int64_t)(gpd_now_ns() / 1000000);
}

/* So much later, for waits with a limit: they go by the clock of the day.  Less than a second. */
static inline struct timespec
gpd_until(long ns)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += ns;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

/* Less than a second. */
static inline void
gpd_nap(uint64_t ns)
{
	struct timespec time = { .tv_nsec = (long)ns };

	(void)nanosleep(&time, NULL);
}

#endif /* GPD_CLOCK_H */
