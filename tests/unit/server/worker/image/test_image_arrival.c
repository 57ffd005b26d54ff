/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/clock.h"
#include "server/worker/image/image_arrival.h"
#include "server/worker/session/session.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define WAITING 3

static const uint8_t ONE[32] = "one", OTHER[32] = "another";
static struct gpd_session first, second, more[WAITING];

static int
setup(void **state)
{
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	memset(more, 0, sizeof(more));
	gpd_image_arrival_stall_ns = 60000 * MS;
	gpd_image_arrival_wait_ns = 60000 * MS;
	return 0;
}

static int
teardown(void **state)
{
	gpd_image_arrival_end(&first);
	gpd_image_arrival_end(&second);
	for (int i = 0; i < WAITING; i++)
		gpd_image_arrival_end(&more[i]);
	return 0;
}

/* Until the session brings it or it is there; how often it was brought by another one. */
static uintptr_t
rounds(struct gpd_session *session, const uint8_t *sha256)
{
	uintptr_t count = 0;

	while (!gpd_image_arrival_begin(session, sha256))
		count++;
	return count;
}

static _Atomic unsigned int bringing, most, all;

static void *
bring_one(void *arg)
{
	uintptr_t count = rounds(arg, ONE);
	unsigned int now = atomic_fetch_add(&bringing, 1) + 1;

	if (now > most)
		most = now;
	atomic_fetch_add(&all, 1);
	gpd_nap(20 * MS);
	atomic_fetch_sub(&bringing, 1);
	gpd_image_arrival_end(arg);
	return (void *)count;
}

static void
nobody_waits_for_another_image(void **state)
{
	assert_int_equal(rounds(&first, ONE), 0);
	assert_int_equal(rounds(&second, OTHER), 0);
	/* Nor for itself, and there is one of each session at a time. */
	assert_int_equal(rounds(&first, ONE), 0);
	assert_int_equal(rounds(&second, OTHER), 0);
	gpd_image_arrival_end(&first);
	assert_int_equal(rounds(&second, ONE), 0);
	assert_int_equal(rounds(&first, OTHER), 0);
}

static void
one_after_another_brings_it_if_it_does_not_come(void **state)
{
	pthread_t threads[WAITING];
	uintptr_t sum = 0;

	assert_int_equal(rounds(&first, ONE), 0);
	for (int i = 0; i < WAITING; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, bring_one, &more[i]), 0);
	gpd_nap(100 * MS);
	assert_int_equal(bringing, 0);
	gpd_image_arrival_end(&first);
	for (int i = 0; i < WAITING; i++) {
		void *count;

		(void)pthread_join(threads[i], &count);
		sum += (uintptr_t)count;
	}
	assert_int_equal(all, WAITING);
	assert_int_equal(most, 1);
	/* One has waited for the first, and another one for both, at most. */
	assert_in_range(sum, 0, WAITING * (WAITING + 1) / 2);
}

static void
who_stalls_is_not_waited_for(void **state)
{
	uint64_t begin = gpd_now_ns();

	gpd_image_arrival_stall_ns = 1500 * MS;
	assert_int_equal(rounds(&first, ONE), 0);
	gpd_nap(200 * MS);
	gpd_image_arrival_goes_on(&first);
	assert_int_equal(rounds(&second, ONE), 1);
	assert_true(gpd_now_ns() - begin >= 1700 * MS);
	/* Both bring it then. */
	assert_int_not_equal(first.arrival.ns, 0);
}

static void
nobody_waits_longer_than_told_or_than_his_session(void **state)
{
	uint64_t begin = gpd_now_ns(), waited;

	gpd_image_arrival_wait_ns = 200 * MS;
	assert_int_equal(rounds(&first, ONE), 0);
	assert_int_equal(rounds(&second, ONE), 0);
	assert_true(gpd_now_ns() - begin >= 200 * MS);
	/* That was all it does, for whatever image. */
	waited = second.arrival.waited_ns;
	gpd_image_arrival_end(&second);
	assert_int_equal(rounds(&more[1], OTHER), 0);
	assert_int_equal(rounds(&second, OTHER), 0);
	assert_int_equal(second.arrival.waited_ns, waited);
	gpd_image_arrival_wait_ns = 60000 * MS;
	atomic_store(&more[0].closing, true);
	assert_int_equal(rounds(&more[0], ONE), 0);
	assert_true(gpd_now_ns() - begin < 30000 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_waits_for_another_image),
		TEST(one_after_another_brings_it_if_it_does_not_come),
		TEST(who_stalls_is_not_waited_for),
		TEST(nobody_waits_longer_than_told_or_than_his_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
