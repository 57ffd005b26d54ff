/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that are ready, on a device of the driver that GP_TEST_DRIVER names: the software device,
 * or NVIDIA's.
 */
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream/stream_pool.h"
#include "tests/test.h"
#include "tests/unit/server/move_fixture.h"

#define MANY 64

/* Streams that were made since the test began. */
static int made;
static __typeof__(cuStreamCreateWithPriority) *driver_make;

static CUresult CUDAAPI
make(CUstream *stream, unsigned int flags, int priority)
{
	made++;
	return driver_make(stream, flags, priority);
}

static int
start(void **state)
{
	if (move_start(state))
		return -1;
	/* As on a GPU. */
	gpd_driver.gpSoftStreamCancel = NULL;
	driver_make = gpd_driver.cuStreamCreateWithPriority;
	gpd_driver.cuStreamCreateWithPriority = make;
	gpd_stream_pool_start(0);
	return 0;
}

/* Returns their number. */
static int
take_all(CUstream *taken)
{
	int count = 0;

	while (count < MANY && (taken[count] = gpd_stream_pool_acquire(0)))
		count++;
	return count;
}

static void
give_all(const CUstream *taken, int count)
{
	for (int i = 0; i < count; i++)
		assert_true(gpd_stream_pool_release(taken[i]));
}

UNIT_TEST_WITH(each_is_given_to_one_until_none_is_left, move_setup, move_teardown)
{
	CUstream taken[MANY], again[MANY];
	int count = take_all(taken);

	assert_in_range(count, 2, MANY - 1);
	assert_null(gpd_stream_pool_acquire(0));
	for (int i = 0; i < count; i++) {
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(taken[i], taken[k]);
		assert_int_equal(gpd_driver.cuStreamQuery(taken[i]), CUDA_SUCCESS);
	}
	give_all(taken, count);
	assert_int_equal(take_all(again), count);
	give_all(again, count);
}

/* The first two streams are taken from different places. */
UNIT_TEST_WITH(what_is_taken_next_is_where_fewer_are_in_use, move_setup, move_teardown)
{
	CUstream first = gpd_stream_pool_acquire(0), second = gpd_stream_pool_acquire(0),
		 taken[MANY];
	int count = take_all(taken);

	give_all(taken, count);
	assert_true(gpd_stream_pool_release(second));
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(gpd_stream_pool_acquire(0), second);
		assert_true(gpd_stream_pool_release(second));
	}
	assert_true(gpd_stream_pool_release(first));
}

UNIT_TEST_WITH(what_is_none_of_them_is_not_taken_back, move_setup, move_teardown)
{
	CUstream stream = gpd_stream_pool_acquire(0), other;

	assert_true(gpd_stream_pool_release(stream));
	assert_false(gpd_stream_pool_release(stream));
	assert_false(gpd_stream_pool_release(NULL));
	assert_int_equal(gpd_driver.cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, 0),
			 CUDA_SUCCESS);
	assert_false(gpd_stream_pool_release(other));
	assert_int_equal(gpd_driver.cuStreamDestroy_v2(other), CUDA_SUCCESS);
}

/* The fixture's session has one. */
UNIT_TEST_WITH(a_session_has_one_for_its_default_stream_until_it_ends, move_setup, move_teardown)
{
	struct move_fixture *f = *state;
	CUstream taken[MANY], legacy = move_begin(f, LEGACY)->driver;
	int count = take_all(taken);

	give_all(taken, count);
	for (uint32_t id = A; id <= FREE; id++)
		assert_false(gpd_stream_pool_release(move_begin(f, id)->driver));
	move_append_value(f, LEGACY, 1);
	move_synchronize(f);
	move_check_list(1, 1);
	gpd_stream_destroy_all(&f->session);
	assert_int_equal(take_all(taken), count + 1);
	for (int i = 0; i <= count; i++)
		legacy = taken[i] == legacy ? NULL : legacy;
	assert_null(legacy);
	give_all(taken, count + 1);
}

UNIT_TEST_WITH(with_none_left_a_session_gets_a_stream_of_its_own, move_setup, move_teardown)
{
	struct move_fixture *f = *state, *second;
	CUstream taken[MANY];
	int count = take_all(taken);
	void *other = NULL;

	assert_int_equal(move_setup(&other), 0);
	second = other;
	assert_false(gpd_stream_pool_release(move_begin(second, LEGACY)->driver));
	move_append_value(second, LEGACY, 1);
	move_synchronize(second);
	assert_int_equal(move_teardown(&other), 0);
	give_all(taken, count);
	move_append_value(f, LEGACY, 2);
	move_synchronize(f);
}

/* Its share is a green context, and its streams are created there. */
UNIT_TEST_WITH(a_session_that_moves_gives_it_back, move_setup, move_teardown)
{
	struct move_fixture *f = *state;
	CUstream taken[MANY];
	int count = take_all(taken);

	give_all(taken, count);
	move_set_share(f, move_all / 2);
	move_append_value(f, LEGACY, 1);
	move_synchronize(f);
	assert_true(move_within_seconds(move_none_is_leaving, f));
	assert_int_equal(take_all(taken), count + 1);
	give_all(taken, count + 1);
}

/* This number exists besides those of the fixture, and then none. */
static int
made_after(struct move_fixture *f, uint32_t more)
{
	CUstream taken[MANY];
	int count;

	for (uint32_t id = FREE + 1; id <= FREE + more; id++)
		move_make_stream(f, id, CU_STREAM_NON_BLOCKING);
	made = 0;
	gpd_stream_destroy_all(&f->session);
	count = take_all(taken);
	assert_in_range(count, 2, MANY - 1);
	for (int i = 0; i < count; i++)
		assert_int_equal(gpd_driver.cuStreamQuery(taken[i]), CUDA_SUCCESS);
	give_all(taken, count);
	assert_true(!made || made > count);
	return made;
}

UNIT_TEST_WITH(with_few_streams_they_stay, move_setup, move_teardown)
{
	assert_int_equal(made_after(*state, 1), 0);
}

UNIT_TEST_WITH(after_more_streams_than_queues_they_are_made_anew_once_nobody_has_one, move_setup,
	       move_teardown)
{
	void *second = NULL;

	assert_true(made_after(*state, MANY) > 0);
	assert_int_equal(move_setup(&second), 0);
	assert_int_equal(made_after(second, 1), 0);
	assert_int_equal(move_teardown(&second), 0);
}

UNIT_TEST_MAIN(start, move_stop)
