/* SPDX-License-Identifier: Apache-2.0 */
/* Late copies: their bytes are sent when the stream reaches them. */
#include "client/context/fence.h"
#include "client/copy/copy.h"
#include "client/host/late_copy.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)100000)

static uint8_t *source;
static CUdeviceptr device;

/* A host function that has not returned is ahead of what the test posts. */
static int
begin(void **state)
{
	void *memory = NULL;

	if (fake_wire_setup(state) != 0)
		return -1;
	fake_wire_allow_late();
	CU(gpc_cuMemHostAlloc(&memory, SIZE, 0));
	source = memory;
	device = fake_wire_alloc(SIZE);
	memset(fake_wire_at(device), 0, SIZE);
	fake.has_functions = true;
	return 0;
}

static int
end(void **state)
{
	fake.has_functions = false;
	CU(gpc_cuMemFreeHost(source));
	return fake_wire_teardown(state);
}
static bool
device_is(uint8_t value, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (fake_wire_at(device)[i] != value)
			return false;
	}
	return true;
}

#define TEST(test) UNIT_TEST_WITH(test, begin, end)

TEST(pinned_memory_is_read_when_the_stream_reaches_the_copy)
{
	memset(source, 1, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, SIZE, FAKE_WIRE_STREAM));
	assert_int_equal(fake.syncs + fake.waits, 0);
	assert_true(device_is(0, SIZE));
	memset(source, 2, SIZE);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_true(device_is(2, SIZE));
	assert_false(gpc_call_passes);
}

TEST(short_copies_from_pinned_memory_are_late_as_well)
{
	memset(source, 1, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, 4, FAKE_WIRE_STREAM));
	memset(source, 2, SIZE);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_true(device_is(2, 4));
}

TEST(pageable_memory_is_read_when_the_copy_is_called)
{
	uint8_t *pageable = malloc(SIZE);

	assert_non_null(pageable);
	memset(pageable, 3, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, pageable, SIZE, FAKE_WIRE_STREAM));
	memset(pageable, 4, SIZE);
	free(pageable);
	assert_int_equal(fake.syncs + fake.waits, 0);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_true(device_is(3, SIZE));
}

TEST(rows_keep_their_places)
{
	const CUDA_MEMCPY2D rows = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = source,
		.srcPitch = 1000,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = device,
		.dstPitch = 500,
		.WidthInBytes = 300,
		.Height = 100,
	};

	CU(gpc_cuMemcpy2DAsync_v2(&rows, FAKE_WIRE_STREAM));
	for (size_t i = 0; i < SIZE; i++)
		source[i] = (uint8_t)(i / 1000 + i % 1000);
	fake_wire_run_late(CUDA_SUCCESS);
	for (size_t row = 0; row < 100; row++) {
		for (size_t column = 0; column < 300; column++)
			assert_int_equal(fake_wire_at(device)[row * 500 + column],
					 (uint8_t)(row + column));
	}
}

TEST(without_anything_to_wait_for_a_copy_is_not_late)
{
	fake.has_functions = false;
	memset(source, 5, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, SIZE, FAKE_WIRE_STREAM));
	assert_int_equal(fake.late_count, 0);
	assert_true(device_is(5, SIZE));
}

TEST(a_copy_from_memory_that_a_copy_writes_to_waits_for_nobody)
{
	uint8_t *read = source + SIZE / 2;

	fake.has_functions = false;
	fake.lazy = true;
	memset(fake_wire_at(device), 6, SIZE / 2);
	CU(gpc_cuMemcpyDtoHAsync_v2(source, device, SIZE / 2, FAKE_WIRE_STREAM));
	CU(gpc_cuMemcpyHtoDAsync_v2(device + SIZE / 2, source, SIZE / 2, FAKE_WIRE_STREAM));
	assert_int_equal(fake.late_count, 1);
	assert_true(fake_wire_at(device)[SIZE / 2] == 0);
	/* Another part of the memory is not being written to. */
	CU(gpc_cuMemcpyHtoDAsync_v2(device, read, 100, FAKE_WIRE_STREAM));
	assert_int_equal(fake.late_count, 1);
	fake_wire_deliver();
	fake_wire_run_late(CUDA_SUCCESS);
	assert_true(fake_wire_at(device)[SIZE / 2] == 6);
}

TEST(a_copy_after_a_wait_for_another_process_is_late)
{
	fake.has_functions = false;
	fake.foreign_wait = true;
	memset(source, 1, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, SIZE, FAKE_WIRE_STREAM));
	memset(source, 2, SIZE);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_true(device_is(2, SIZE));
}

TEST(a_synchronous_copy_waits_instead)
{
	memset(source, 7, SIZE);
	CU(gpc_cuMemcpyHtoD_v2(device, source, SIZE));
	assert_int_equal(fake.late_count, 0);
	assert_true(fake.syncs > 0);
	assert_true(device_is(7, SIZE));
}

TEST(copies_of_a_session_that_ends_are_dropped)
{
	memset(source, 8, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, SIZE, FAKE_WIRE_STREAM));
	fake_wire_run_late(CUDA_ERROR_DEINITIALIZED);
	assert_true(device_is(0, SIZE));
	gpc_late_copy_settle(source, SIZE);
}

static void *
run_late(void *arg)
{
	fake_wire_run_late(CUDA_SUCCESS);
	return NULL;
}

TEST(memory_stays_until_late_copies_have_read_it)
{
	pthread_t thread;

	memset(source, 9, SIZE);
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, SIZE / 2, FAKE_WIRE_STREAM));
	/* This part is not read. */
	gpc_late_copy_settle(source + SIZE / 2, SIZE / 2);
	assert_int_equal(pthread_create(&thread, NULL, run_late, NULL), 0);
	gpc_late_copy_settle(source, 1);
	assert_true(device_is(9, SIZE / 2));
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Within the host: source and destination are halves of the memory. */
static void
copy_within(size_t size)
{
	CU(gpc_copy_linear_ordered((uintptr_t)(source + SIZE / 2), (uintptr_t)source, size,
				   CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, FAKE_WIRE_STREAM));
}

TEST(a_copy_of_a_batch_within_the_host_waits_for_nobody)
{
	memset(source, 1, SIZE);
	(void)gpc_session_work_mark(gpc_session_get());
	copy_within(100);
	CU(gpc_cuMemsetD8Async((uintptr_t)source, 3, 1, FAKE_WIRE_STREAM));
	assert_int_equal(fake.syncs + fake.waits, 0);
	assert_int_equal(fake.late_count, 2);
	memset(source, 2, 100);
	assert_int_equal(source[SIZE / 2], 1);
	fake_wire_run_late(CUDA_SUCCESS);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_int_equal(source[SIZE / 2], 2);
	assert_int_equal(source[SIZE / 2 + 99], 2);
	assert_int_equal(source[SIZE / 2 + 100], 1);
	assert_int_equal(source[0], 3);
}

TEST(a_copy_within_the_host_is_done_when_the_call_returns)
{
	uint8_t pageable[100];

	memset(pageable, 4, sizeof(pageable));
	(void)gpc_session_work_mark(gpc_session_get());
	CU(gpc_cuMemcpyAsync((uintptr_t)source, (uintptr_t)pageable, sizeof(pageable),
			     FAKE_WIRE_STREAM));
	assert_int_equal(fake.syncs, 1);
	assert_int_equal(source[99], 4);
	(void)gpc_session_work_mark(gpc_session_get());
	CU(gpc_cuMemcpyAsync((uintptr_t)(source + SIZE / 2), (uintptr_t)source, 100,
			     FAKE_WIRE_STREAM));
	assert_int_equal(fake.syncs, 2);
	assert_int_equal(source[SIZE / 2 + 99], 4);
	assert_int_equal(fake.late_count, 0);
}

TEST(the_destination_stays_until_late_copies_have_written_it)
{
	pthread_t thread;

	memset(source, 9, SIZE);
	(void)gpc_session_work_mark(gpc_session_get());
	copy_within(1);
	source[0] = 5;
	assert_int_equal(pthread_create(&thread, NULL, run_late, NULL), 0);
	gpc_late_copy_settle(source + SIZE / 2, 1);
	assert_int_equal(source[SIZE / 2], 5);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A late copy is a host function. */
TEST(a_late_copy_is_work)
{
	assert_true(gpc_fence_is_redundant(gpc_session_get()));
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, SIZE, FAKE_WIRE_STREAM));
	assert_false(gpc_fence_is_redundant(gpc_session_get()));
	fake_wire_run_late(CUDA_SUCCESS);
}

UNIT_TEST_MAIN(NULL, NULL)
