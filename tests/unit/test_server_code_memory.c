/* SPDX-License-Identifier: Apache-2.0 */
#include "server/code_memory.h"
#include "tests/test.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 20000

static struct gpd_code_memory memory;

static int
setup(void **state)
{
	memset(&memory, 0, sizeof(memory));
	return 0;
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

static void
places_are_as_many_as_told(void **state)
{
	for (int32_t i = 1; i <= GPD_CODE_PLACES; i++)
		assert_non_null(gpd_code_enter(&memory, i));
	assert_null(gpd_code_enter(&memory, GPD_CODE_PLACES + 1));
	gpd_code_leave(&memory, 77);
	assert_ptr_equal(gpd_code_enter(&memory, GPD_CODE_PLACES + 1), &memory.places[76]);
}

static void *
take_and_give(void *arg)
{
	struct gpd_code_place *place = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (!gpd_code_take(&memory, place, 400, 0))
			continue;
		/* Those of two others may be counted for a moment that are then given back. */
		if (atomic_load(&place->bytes) > 400)
			return "more than it took";
		gpd_code_give(place, 400);
	}
	return NULL;
}

static void
at_once_nothing_is_lost(void **state)
{
	pthread_t threads[THREADS];

	memory.max = 1000;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give,
						gpd_code_enter(&memory, 20 + i)),
				 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		(void)pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(gpd_code_used(&memory), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_workers_have_one_limit, setup),
		cmocka_unit_test_setup(what_is_more_than_the_limit_is_limited_as_well, setup),
		cmocka_unit_test_setup(a_worker_that_is_gone_has_nothing, setup),
		cmocka_unit_test_setup(places_are_as_many_as_told, setup),
		cmocka_unit_test_setup(at_once_nothing_is_lost, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
