/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that times are told from: monotonic.  Any thread. */
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

/* Less than a second. */
static inline void
gpd_nap(uint64_t ns)
{
	struct timespec time = { .tv_nsec = (long)ns };

	(void)nanosleep(&time, NULL);
}

#endif /* GPD_CLOCK_H */
