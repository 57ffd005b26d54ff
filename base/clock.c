/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
/* Interval at which sleeps poll a clock that a test has advanced. */
#define POLL_NS UINT64_C(1000000)

static atomic_uint_least64_t advanced_ns;
static atomic_bool is_advanced;

uint64_t
gp_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec +
	       atomic_load_explicit(&advanced_ns, memory_order_relaxed);
}

uint64_t
gp_thread_cpu_ns(void)
{
	struct timespec worked;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked);
	return (uint64_t)worked.tv_sec * SECOND_NS + (uint64_t)worked.tv_nsec;
}

int64_t
gp_now_ms(void)
{
	return (int64_t)(gp_now_ns() / 1000000);
}

uint64_t
gp_deadline_ns(int timeout_ms)
{
	return timeout_ms < 0 ? GP_FOREVER : gp_now_ns() + (uint64_t)timeout_ms * 1000000;
}

int64_t
gp_deadline_ms(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : gp_now_ms() + timeout_ms;
}

int
gp_remaining_ms(int64_t deadline)
{
	int64_t left;

	if (deadline < 0)
		return -1;
	left = deadline - gp_now_ms();
	if (left < 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

static void
sleep_real_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / SECOND_NS),
				 .tv_nsec = (long)(ns % SECOND_NS) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

void
gp_sleep_ns(uint64_t ns)
{
	uint64_t end, now;

	if (!gp_clock_is_advanced()) {
		sleep_real_ns(ns);
		return;
	}
	end = gp_now_ns() + ns;
	while ((now = gp_now_ns()) < end)
		sleep_real_ns(end - now < POLL_NS ? end - now : POLL_NS);
}

void
gp_clock_advance(uint64_t ns)
{
	(void)atomic_fetch_add(&advanced_ns, ns);
	atomic_store(&is_advanced, true);
}

bool
gp_clock_is_advanced(void)
{
	return atomic_load_explicit(&is_advanced, memory_order_relaxed);
}
