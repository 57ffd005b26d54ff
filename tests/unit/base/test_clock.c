/* SPDX-License-Identifier: Apache-2.0 */
/* Waits with a deadline while the time of day is set back, and threads. */
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "tests/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define HOUR_S 3600
/* Upper bound for an operation that does not wait, on a busy machine. */
#define SOON (20000 * MS)

/* How the time of day differs from the kernel's, by which the kernel waits. */
static long ahead_s;

int
clock_gettime(clockid_t clock, struct timespec *time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, time);

	if (r == 0 && clock == CLOCK_REALTIME)
		time->tv_sec += ahead_s;
	return r;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t at_start;
GP_COND_CONSTRUCTOR(at_start);

static void
wait_for_nobody(pthread_cond_t *cond)
{
	uint64_t begin = gp_now_ns(), end = begin + 20 * MS;

	(void)pthread_mutex_lock(&lock);
	while (gp_cond_wait_until(cond, &lock, end))
		;
	(void)pthread_mutex_unlock(&lock);
	assert_true(gp_now_ns() >= end);
	assert_true(gp_now_ns() < begin + SOON);
}

UNIT_TEST(test_time_of_day_is_nothing_to_a_wait)
{
	pthread_cond_t made;

	gp_cond_init(&made);
	for (ahead_s = -HOUR_S; ahead_s <= HOUR_S; ahead_s += HOUR_S) {
		wait_for_nobody(&at_start);
		wait_for_nobody(&made);
	}
	ahead_s = 0;
	(void)pthread_cond_destroy(&made);
}

UNIT_TEST(test_time_of_day_is_nothing_to_a_mutex)
{
	pthread_mutex_t free = PTHREAD_MUTEX_INITIALIZER;

	(void)pthread_mutex_lock(&lock);
	for (ahead_s = -HOUR_S; ahead_s <= HOUR_S; ahead_s += HOUR_S) {
		uint64_t begin = gp_now_ns();

		assert_false(gp_lock_until(&lock, begin + 20 * MS));
		assert_true(gp_now_ns() >= begin + 20 * MS);
		assert_true(gp_now_ns() < begin + SOON);
		assert_true(gp_lock_until(&free, begin));
		(void)pthread_mutex_unlock(&free);
	}
	ahead_s = 0;
	(void)pthread_mutex_unlock(&lock);
}

UNIT_TEST(test_nap)
{
	uint64_t begin = gp_now_ns();

	gp_sleep_ns(20 * MS);
	assert_true(gp_now_ns() >= begin + 20 * MS);
	assert_int_equal(gp_deadline_ms(-1), -1);
	assert_int_equal(gp_remaining_ms(-1), -1);
	assert_int_equal(gp_remaining_ms(gp_now_ms() - 5), 0);
	assert_true(gp_deadline_ns(-1) == GP_FOREVER);
	assert_in_range(gp_remaining_ms(gp_deadline_ms(60000)), 1, 60000);
}

static atomic_int woken;

static void *
wait_long(void *cond)
{
	uint64_t end = gp_now_ns() + HOUR_S * 1000 * MS;

	(void)pthread_mutex_lock(&lock);
	while (gp_cond_wait_until(cond, &lock, end))
		;
	(void)pthread_mutex_unlock(&lock);
	atomic_fetch_add(&woken, 1);
	return NULL;
}

static void *
nap_long(void *unused)
{
	gp_sleep_ns(HOUR_S * 1000 * MS);
	atomic_fetch_add(&woken, 1);
	return unused;
}

UNIT_TEST(test_moved_clock)
{
	uint64_t begin = gp_now_ns();
	pthread_t threads[2];

	gp_clock_advance(0);
	assert_int_equal(gp_thread_start_joinable(&threads[0], "waits", 0, wait_long, &at_start),
			 0);
	assert_int_equal(gp_thread_start_joinable(&threads[1], "naps", 0, nap_long, NULL), 0);
	gp_sleep_ns(30 * MS);
	assert_int_equal(atomic_load(&woken), 0);
	/* More than once: a thread may begin after the first time. */
	gp_clock_advance(HOUR_S * 1000 * MS);
	while (atomic_load(&woken) < 2 && gp_now_ns() - begin < 5 * HOUR_S * 1000 * MS) {
		gp_sleep_ns(30 * MS);
		gp_clock_advance(HOUR_S * 100 * MS);
	}
	assert_int_equal(atomic_load(&woken), 2);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
}

struct seen {
	sigset_t blocked;
	char name[16];
	atomic_bool done;
};

static pthread_mutex_t named = PTHREAD_MUTEX_INITIALIZER;

static void *
look_around(void *arg)
{
	struct seen *seen = arg;

	/* Its name comes a moment after it. */
	(void)pthread_mutex_lock(&named);
	(void)pthread_mutex_unlock(&named);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
	(void)pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	atomic_store(&seen->done, true);
	return NULL;
}

static void
check_seen(struct seen *seen, const char *name)
{
	assert_true(atomic_load(&seen->done));
	assert_string_equal(seen->name, name);
	assert_true(sigismember(&seen->blocked, SIGTERM));
	assert_true(sigismember(&seen->blocked, SIGUSR1));
	assert_false(sigismember(&seen->blocked, SIGSEGV));
}

UNIT_TEST(test_threads)
{
	static struct seen joined, detached;
	sigset_t own;
	pthread_t thread;

	(void)pthread_mutex_lock(&named);
	assert_int_equal(gp_thread_start_joinable(&thread, "joined", 65536, look_around, &joined),
			 0);
	assert_int_equal(gp_thread_start("detached", 0, look_around, &detached), 0);
	(void)pthread_mutex_unlock(&named);
	(void)pthread_join(thread, NULL);
	while (!atomic_load(&detached.done))
		gp_sleep_ns(MS);
	check_seen(&joined, "joined");
	check_seen(&detached, "detached");
	(void)pthread_sigmask(SIG_SETMASK, NULL, &own);
	assert_false(sigismember(&own, SIGUSR1));
	/* More than there is. */
	assert_true(gp_thread_start("large", (size_t)1 << 47, look_around, &joined) < 0);
}

UNIT_TEST(a_nap_is_no_work)
{
	uint64_t begin = gp_now_ns(), worked = gp_thread_cpu_ns();

	gp_sleep_ns(20 * MS);
	assert_true(gp_now_ns() - begin >= 20 * MS);
	assert_true(gp_thread_cpu_ns() - worked < 20 * MS);
	while (gp_thread_cpu_ns() - worked < MS)
		continue;
}

UNIT_TEST_MAIN(NULL, NULL)
