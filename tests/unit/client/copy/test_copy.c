/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/pending_copy.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *
pinned(size_t size)
{
	void *memory = NULL;

	CU(gpc_cuMemHostAlloc(&memory, size, 0));
	return memory;
}

FAKE_WIRE_TEST(bytes_go_to_the_device_and_come_back)
{
	uint8_t *out = fake_wire_pattern(100000, 1), *back = calloc(1, 100000);
	CUdeviceptr device = fake_wire_alloc(100000);

	CU(gpc_cuMemcpyHtoD_v2(device, out, 100000));
	assert_memory_equal(fake_wire_at(device), out, 100000);
	CU(gpc_cuMemcpyDtoH_v2(back, device, 100000));

	assert_memory_equal(back, out, 100000);
	assert_int_equal(fake.barriers, 1);
	free(out);
	free(back);
}

FAKE_WIRE_TEST(long_copies_are_cut_and_the_last_part_is_the_barrier)
{
	size_t size = 20 * FAKE_WIRE_MIB + 5;
	uint8_t *out = fake_wire_pattern(size, 2);
	CUdeviceptr device = fake_wire_alloc(size);

	CU(gpc_cuMemcpyHtoD_v2(device, out, size));

	assert_memory_equal(fake_wire_at(device), out, size);
	assert_int_equal(fake.copies_in, 3);
	assert_int_equal(fake.barriers, 1);
	assert_true(fake.largest_copy_in <= 8 * FAKE_WIRE_MIB);
	free(out);
}

FAKE_WIRE_TEST(asynchronous_copies_to_the_device_hold_nobody_up)
{
	uint8_t *out = fake_wire_pattern(1000, 3);
	CUdeviceptr device = fake_wire_alloc(1000);

	CU(gpc_cuMemcpyHtoDAsync_v2(device, out, 1000, FAKE_WIRE_STREAM));

	assert_memory_equal(fake_wire_at(device), out, 1000);
	assert_int_equal(fake.barriers, 0);
	assert_int_equal(fake.posted, 1);
	free(out);
}

FAKE_WIRE_TEST(copies_into_pinned_memory_arrive_later)
{
	uint8_t *host = pinned(5000), *out = fake_wire_pattern(5000, 4);
	CUdeviceptr device = fake_wire_alloc(5000);

	fake.lazy = true;
	CU(gpc_cuMemcpyHtoD_v2(device, out, 5000));
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 5000, FAKE_WIRE_STREAM));
	assert_int_equal(host[0], 0);
	fake_wire_deliver();

	assert_memory_equal(host, out, 5000);
	free(out);
}

/* Over data lanes, where chunks of one stream's copies are in order, or over lane 0. */
FAKE_WIRE_TEST(copies_into_the_same_memory_keep_their_order)
{
	const size_t size = FAKE_WIRE_MIB;
	uint8_t *host = pinned(8 * size);
	CUdeviceptr device = fake_wire_alloc(size);

	fake.lazy = fake.lanes = true;
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, size, FAKE_WIRE_STREAM));
	CU(gpc_cuMemcpyDtoHAsync_v2(host + size, device, size, FAKE_WIRE_STREAM));
	assert_int_equal(fake.copies_out_lanes, 2);
	assert_int_equal(fake.ordered, 0);
	CU(gpc_cuMemcpyDtoHAsync_v2(host + size / 2, device, size, FAKE_WIRE_STREAM));
	assert_int_equal(fake.copies_out_lanes, 3);
	assert_int_equal(fake.ordered, 1);
	/* Another stream. */
	CU(gpc_cuMemcpyDtoHAsync_v2(host + size / 2, device, size, NULL));
	assert_int_equal(fake.copies_out, 1);
	CU(gpc_cuMemcpyDtoHAsync_v2(host + 2 * size, device, size, NULL));
	assert_int_equal(fake.copies_out_lanes, 4);
	/* After one over lane 0. */
	CU(gpc_cuMemcpyDtoHAsync_v2(host + 3 * size, device, 16, FAKE_WIRE_STREAM));
	CU(gpc_cuMemcpyDtoHAsync_v2(host + 3 * size, device, size, FAKE_WIRE_STREAM));
	assert_int_equal(fake.copies_out, 3);
	assert_int_equal(fake.copies_out_lanes, 4);
	/* Also a synchronous one. */
	CU(gpc_cuMemcpyDtoH_v2(host, device, size));
	assert_int_equal(fake.copies_out, 4);
	CU(gpc_cuMemcpyDtoH_v2(host, device, size));
	assert_int_equal(fake.copies_out_lanes, 5);
	assert_int_equal(fake.late_count, 0);
}

/* The daemon may carry out the earlier copy later than one of another stream, whose later work must
 * find the bytes here. */
FAKE_WIRE_TEST(a_copy_to_memory_of_one_that_may_be_kept_is_stored_before_its_streams_later_work)
{
	uint8_t *host = pinned(FAKE_WIRE_MIB);
	CUdeviceptr device = fake_wire_alloc(FAKE_WIRE_MIB);

	fake.lazy = fake.lanes = fake.has_functions = true;
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, FAKE_WIRE_MIB, FAKE_WIRE_STREAM));
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 16, FAKE_WIRE_STREAM));
	assert_int_equal(fake.late_count, 0);
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 16, NULL));
	assert_int_equal(fake.late_count, 1);
	fake_wire_run_late(CUDA_SUCCESS);
	fake.has_functions = false;
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 16, NULL));
	assert_int_equal(fake.late_count, 0);
}

FAKE_WIRE_TEST(copies_into_pageable_memory_are_waited_for)
{
	uint8_t *out = fake_wire_pattern(5000, 5), *host = calloc(1, 5000);
	CUdeviceptr device = fake_wire_alloc(5000);

	fake.lazy = true;
	CU(gpc_cuMemcpyHtoD_v2(device, out, 5000));
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 5000, FAKE_WIRE_STREAM));

	assert_memory_equal(host, out, 5000);
	free(out);
	free(host);
}

FAKE_WIRE_TEST(a_source_that_is_still_being_written_is_waited_for)
{
	uint8_t *host = pinned(5000), *out = fake_wire_pattern(5000, 6);
	CUdeviceptr device = fake_wire_alloc(5000), other = fake_wire_alloc(5000);

	fake.lazy = true;
	CU(gpc_cuMemcpyHtoD_v2(device, out, 5000));
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 5000, FAKE_WIRE_STREAM));
	CU(gpc_cuMemcpyHtoDAsync_v2(other, host, 5000, FAKE_WIRE_STREAM));

	assert_memory_equal(fake_wire_at(other), out, 5000);
	free(out);
}

FAKE_WIRE_TEST(host_functions_before_a_copy_may_write_its_source)
{
	uint8_t *host = pinned(100), *out = fake_wire_pattern(100, 7);
	CUdeviceptr device = fake_wire_alloc(100);

	fake.has_functions = true;
	CU(gpc_cuMemcpyHtoDAsync_v2(device, host, 100, FAKE_WIRE_STREAM));
	assert_int_equal(fake.syncs, 1);
	/* What is read at once, also next to a GPU, is not waited for; a synchronous copy is. */
	CU(gpc_cuMemcpyHtoDAsync_v2(device, out, 100, FAKE_WIRE_STREAM));
	assert_int_equal(fake.syncs, 1);
	CU(gpc_cuMemcpyHtoD_v2(device, out, 100));
	assert_int_equal(fake.syncs, 2);
	fake.has_functions = false;
	CU(gpc_cuMemcpyHtoD_v2(device, host, 100));
	assert_int_equal(fake.syncs, 2);
	CU(gpc_cuMemFreeHost(host));
	free(out);
}

FAKE_WIRE_TEST(freed_pinned_memory_is_not_written_to)
{
	uint8_t *host = pinned(5000);
	CUdeviceptr device = fake_wire_alloc(5000);

	fake.lazy = true;
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 5000, FAKE_WIRE_STREAM));
	assert_false(fake_wire_is_idle());
	CU(gpc_cuMemFreeHost(host));
	assert_true(fake_wire_is_idle());
}

FAKE_WIRE_TEST(a_failed_copy_that_nobody_waits_for_is_reported_later)
{
	uint8_t *host = pinned(100);
	CUdeviceptr device = fake_wire_alloc(100);

	fake.copy_out_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	CU(gpc_cuMemcpyDtoHAsync_v2(host, device, 100, FAKE_WIRE_STREAM));

	assert_int_equal(fake.deferred, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_cuMemcpyDtoH_v2(host, device, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
}

FAKE_WIRE_TEST(an_answer_without_the_bytes_ends_the_session)
{
	uint8_t host[100];
	CUdeviceptr device = fake_wire_alloc(100);

	fake.copy_out_short = true;
	assert_int_equal(gpc_cuMemcpyDtoH_v2(host, device, 100), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(fake.failed, CUDA_ERROR_DEVICE_UNAVAILABLE);
}

FAKE_WIRE_TEST(the_device_copies_within_itself)
{
	uint8_t *out = fake_wire_pattern(4096, 7);
	CUdeviceptr device = fake_wire_alloc(4096);

	CU(gpc_cuMemcpyHtoD_v2(device, out, 4096));
	CU(gpc_cuMemcpyDtoD_v2(device + 96, device, 4000));

	assert_memory_equal(fake_wire_at(device + 96), out, 4000);
	assert_int_equal(fake.copies_device, 1);
	assert_int_equal(fake.syncs, 0);
	free(out);
}

FAKE_WIRE_TEST(copies_without_direction_find_it_out)
{
	uint8_t *out = fake_wire_pattern(512, 8), *host = calloc(1, 512), *other = pinned(512);
	CUdeviceptr device = fake_wire_alloc(512), second = fake_wire_alloc(512);

	CU(gpc_cuMemcpy(device, (uintptr_t)out, 512));
	CU(gpc_cuMemcpy(second, device, 512));
	CU(gpc_cuMemcpy((uintptr_t)other, second, 512));
	CU(gpc_cuMemcpyAsync((uintptr_t)host, (uintptr_t)other, 512, FAKE_WIRE_STREAM));

	assert_memory_equal(host, out, 512);
	assert_int_equal(fake.copies_in, 1);
	assert_int_equal(fake.copies_device, 1);
	assert_int_equal(fake.copies_out, 1);
	assert_int_equal(fake.syncs, 1);
	free(out);
	free(host);
}

FAKE_WIRE_TEST(what_cuda_refuses_at_once_never_leaves)
{
	CUdeviceptr device = fake_wire_alloc(1000), freed = fake_wire_alloc(FAKE_WIRE_MIB);
	uint8_t host[2000];

	CU(gpc_cuMemFree_v2(freed));
	INVALID(gpc_cuMemcpyHtoD_v2(device, NULL, 4));
	INVALID(gpc_cuMemcpyHtoD_v2(0, host, 4));
	INVALID(gpc_cuMemcpyDtoH_v2(NULL, device, 4));
	INVALID(gpc_cuMemcpyHtoD_v2(device, host, 1001));
	INVALID(gpc_cuMemcpyDtoH_v2(host, device + 1000, 1000));
	INVALID(gpc_cuMemcpyHtoD_v2(freed, host, 4));
	INVALID(gpc_cuMemcpyHtoD_v2((uintptr_t)host, host, 4));
	INVALID(gpc_cuMemcpyDtoD_v2(device, (uintptr_t)host, 4));
	INVALID(gpc_cuMemcpyHtoD_v2(device, host, SIZE_MAX));
	INVALID(gpc_cuMemcpyHtoD_v2(device, pinned(100), 101));
	INVALID(gpc_cuMemcpy(device + FAKE_WIRE_MIB, (uintptr_t)host, 4));
	INVALID(gpc_cuMemcpy2D_v2(NULL));
	INVALID(gpc_cuMemcpy3D_v2(NULL));
	assert_int_equal(gpc_cuMemcpyHtoDAsync_v2(device, host, 4, (CUstream)(uintptr_t)0x99),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake.copies_in + fake.copies_out + fake.copies_device, 0);
}

FAKE_WIRE_TEST(a_copy_of_nothing_succeeds)
{
	CUDA_MEMCPY2D flat = { .WidthInBytes = 10, .Height = 0 };
	CUDA_MEMCPY3D deep = { .WidthInBytes = 10, .Height = 1, .Depth = 0 };

	CU(gpc_cuMemcpyHtoD_v2(0, NULL, 0));
	CU(gpc_cuMemcpy(0, 0, 0));
	CU(gpc_cuMemcpy2D_v2(&flat));
	CU(gpc_cuMemcpy3D_v2(&deep));
}

#define WORKERS 4
#define ROUNDS 150
#define BLOCK ((size_t)40000)

static int working, failures;

/* Copies there and back, into pinned or pageable memory, and chained through it. */
static CUresult
round_trip(const uint8_t *out, uint8_t *back, uint8_t *hop, unsigned int kind)
{
	CUdeviceptr first = fake_wire_alloc(BLOCK), second = fake_wire_alloc(BLOCK);
	CUresult result = gpc_cuMemcpyHtoDAsync_v2(first, out, BLOCK, FAKE_WIRE_STREAM);

	if (result == CUDA_SUCCESS)
		result = gpc_cuMemcpyDtoDAsync_v2(second, first, BLOCK, FAKE_WIRE_STREAM);
	if (result == CUDA_SUCCESS && kind != 0) {
		result = gpc_cuMemcpyDtoHAsync_v2(hop, second, BLOCK, FAKE_WIRE_STREAM);
		if (result == CUDA_SUCCESS && kind == 1)
			result = gpc_pending_copy_settle(hop, BLOCK);
		if (result == CUDA_SUCCESS)
			result = gpc_cuMemcpyHtoDAsync_v2(second, hop, BLOCK, FAKE_WIRE_STREAM);
	}
	if (result == CUDA_SUCCESS)
		result = gpc_cuMemcpyDtoHAsync_v2(back, second, BLOCK, FAKE_WIRE_STREAM);
	if (gpc_cuMemFree_v2(first) != CUDA_SUCCESS || gpc_cuMemFree_v2(second) != CUDA_SUCCESS)
		result = CUDA_ERROR_UNKNOWN;
	return result;
}

static void *
copy_much(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	uint8_t *out = fake_wire_pattern(BLOCK, seed), *back = malloc(BLOCK), *hop = pinned(BLOCK);

	for (unsigned int i = 0; i < ROUNDS; i++) {
		memset(back, 0, BLOCK);
		if (round_trip(out, back, hop, i % 3) != CUDA_SUCCESS ||
		    memcmp(out, back, BLOCK) != 0)
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
		out[i % BLOCK] ^= (uint8_t)i;
	}
	CU(gpc_cuMemFreeHost(hop));
	free(out);
	free(back);
	__atomic_sub_fetch(&working, 1, __ATOMIC_RELAXED);
	return NULL;
}

FAKE_WIRE_TEST(threads_copy_while_another_reads_the_connection)
{
	pthread_t threads[WORKERS];

	fake.lazy = true;
	working = WORKERS;
	for (uintptr_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, copy_much, (void *)i), 0);
	while (__atomic_load_n(&working, __ATOMIC_RELAXED) > 0)
		fake_wire_deliver();
	for (int i = 0; i < WORKERS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
