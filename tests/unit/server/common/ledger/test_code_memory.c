/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/code_memory.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 20000

static struct gpd_code_memory memory;

static int
setup(void **state)
{
	memset(&memory, 0, sizeof(memory));
	return gpd_code_init(&memory);
}

static void
all_workers_have_one_limit(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10), *b = gpd_code_enter(&memory, 11);

	memory.max = 1000;
	assert_true(gpd_code_take(&memory, a, 600, 0));
	assert_false(gpd_code_take(&memory, b, 401, 0));
	assert_true(gpd_code_take(&memory, b, 400, 0));
	assert_int_equal(gpd_code_used(&memory), 1000);
	gpd_code_give(a, 1);
	assert_true(gpd_code_take(&memory, b, 1, 0));
	assert_false(gpd_code_take(&memory, b, UINT64_MAX, 0));
	assert_int_equal(gpd_code_used(&memory), 1000);
}

static void
what_is_more_than_the_limit_is_limited_as_well(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10);

	memory.max = 1000;
	assert_true(gpd_code_take(&memory, a, 1000, 0));
	assert_true(gpd_code_take(&memory, a, 50, 60));
	assert_false(gpd_code_take(&memory, a, 11, 60));
	memory.max = GPD_CODE_NO_LIMIT;
	assert_true(gpd_code_take(&memory, a, 1 << 20, UINT64_MAX));
}

static void
a_worker_that_is_gone_has_nothing(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10), *b = gpd_code_enter(&memory, 11);

	memory.max = 1000;
	assert_true(gpd_code_take(&memory, a, 600, 0));
	assert_true(gpd_code_take(&memory, b, 300, 0));
	gpd_code_leave(&memory, 10);
	gpd_code_leave(&memory, 12);
	assert_int_equal(gpd_code_used(&memory), 300);
	assert_ptr_equal(gpd_code_enter(&memory, 13), a);
	assert_true(gpd_code_take(&memory, a, 700, 0));
}

/* By the whole of a refused request, which is not there for anybody else. */
static void *
ask_in_vain(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (gpd_code_take(&memory, arg, 900, 0))
			return "it was let in";
	}
	return NULL;
}

static void
what_is_refused_is_in_nobodys_way(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10), *b = gpd_code_enter(&memory, 11);
	unsigned int refused = 0;
	pthread_t thread;
	void *wrong;

	memory.max = 1000;
	assert_true(gpd_code_take(&memory, a, 200, 0));
	assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, a), 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (gpd_code_take(&memory, b, 500, 0))
			gpd_code_give(b, 500);
		else
			refused++;
	}
	(void)pthread_join(thread, &wrong);
	assert_null(wrong);
	assert_int_equal(refused, 0);
}

static void
a_worker_may_die_with_the_lock(void **state)
{
	struct gpd_code_memory *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct gpd_code_place *place;
	int status;
	pid_t child;

	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(gpd_code_init(shared), 0);
	place = gpd_code_enter(shared, 10);
	shared->max = 1000;
	child = fork();
	if (child == 0)
		_exit(pthread_mutex_lock(&shared->lock));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++)
		assert_true(gpd_code_take(shared, place, 500, 0));
	assert_false(gpd_code_take(shared, place, 1, 0));
	munmap(shared, sizeof(*shared));
}

static void
what_is_kept_for_nobody_goes_for_who_keeps_it(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10), *b = gpd_code_enter(&memory, 11);

	memory.max = 1000;
	assert_true(gpd_code_take(&memory, a, 900, 0));
	gpd_code_keep(&memory, a, 600);
	assert_int_equal(gpd_code_used(&memory), 900);
	assert_false(gpd_code_take(&memory, b, 101, 0));
	assert_false(gpd_code_take(&memory, a, 701, 0));
	assert_true(gpd_code_take(&memory, a, 600, 0));
	gpd_code_drop(a, 600);
	assert_int_equal(gpd_code_used(&memory), 900);
	assert_true(gpd_code_take(&memory, b, 100, 0));
	assert_false(gpd_code_take(&memory, a, 1, 0));
}

static void
what_is_kept_for_nobody_is_not_in_the_way_of_the_least(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10), *b = gpd_code_enter(&memory, 11);

	memory.max = 1000;
	assert_true(gpd_code_take(&memory, a, 1000, 0));
	assert_true(gpd_code_take(&memory, a, 50, 60));
	gpd_code_keep(&memory, a, 50);
	/* It is held by nobody, so there is the same once more. */
	assert_true(gpd_code_take(&memory, b, 60, 60));
	assert_false(gpd_code_take(&memory, b, 1, 60));
	assert_false(gpd_code_hold(&memory, a, 50, 60));
	assert_false(gpd_code_hold(&memory, a, 50, 0));
	gpd_code_give(b, 60);
	assert_true(gpd_code_hold(&memory, a, 50, 60));
	assert_int_equal(gpd_code_used(&memory), 1050);
	gpd_code_leave(&memory, 10);
	assert_int_equal(gpd_code_used(&memory), 0);
}

/* While a kernel runs nothing is unloaded. */
static void
what_is_kept_for_nobody_has_a_limit_of_its_own(void **state)
{
	struct gpd_code_place *a = gpd_code_enter(&memory, 10), *b = gpd_code_enter(&memory, 11);

	memory.max = 1000;
	for (int i = 0; i < 3; i++) {
		assert_true(gpd_code_take(&memory, a, 500, 0));
		gpd_code_keep(&memory, a, 500);
	}
	assert_false(gpd_code_take(&memory, a, 1, 0));
	assert_true(gpd_code_take(&memory, b, 32, 32));
	assert_false(gpd_code_take(&memory, b, 1, 32));
	gpd_code_drop(a, 500);
	assert_true(gpd_code_take(&memory, a, 400, 0));
}

static void
places_are_as_many_as_told(void **state)
{
	for (int32_t i = 1; i <= GPD_CODE_PLACES; i++)
		assert_non_null(gpd_code_enter(&memory, i));
	assert_null(gpd_code_enter(&memory, GPD_CODE_PLACES + 1));
	gpd_code_leave(&memory, 77);
	assert_ptr_equal(gpd_code_enter(&memory, GPD_CODE_PLACES + 1), &memory.places[76]);
}

/* What all threads have between their taking and giving. The sum over the places says it of no one
 * moment: while it is made, one gives and another takes. */
static atomic_uint held;

static void *
take_and_give(void *arg)
{
	struct gpd_code_place *place = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (!gpd_code_take(&memory, place, 400, 0))
			continue;
		if (atomic_fetch_add(&held, 400) + 400 > 1000)
			return "more than there may be";
		(void)atomic_fetch_sub(&held, 400);
		gpd_code_give(place, 400);
	}
	return NULL;
}

static void
at_once_nothing_is_lost(void **state)
{
	pthread_t threads[THREADS];
	void *wrong[THREADS];

	memory.max = 1000;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give,
						gpd_code_enter(&memory, 20 + i)),
				 0);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], &wrong[i]);
	for (int i = 0; i < THREADS; i++)
		assert_null(wrong[i]);
	assert_int_equal(gpd_code_used(&memory), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_workers_have_one_limit, setup),
		cmocka_unit_test_setup(what_is_more_than_the_limit_is_limited_as_well, setup),
		cmocka_unit_test_setup(a_worker_that_is_gone_has_nothing, setup),
		cmocka_unit_test_setup(what_is_refused_is_in_nobodys_way, setup),
		cmocka_unit_test_setup(a_worker_may_die_with_the_lock, setup),
		cmocka_unit_test_setup(what_is_kept_for_nobody_goes_for_who_keeps_it, setup),
		cmocka_unit_test_setup(what_is_kept_for_nobody_is_not_in_the_way_of_the_least,
				       setup),
		cmocka_unit_test_setup(what_is_kept_for_nobody_has_a_limit_of_its_own, setup),
		cmocka_unit_test_setup(places_are_as_many_as_told, setup),
		cmocka_unit_test_setup(at_once_nothing_is_lost, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
