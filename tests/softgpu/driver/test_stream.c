/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int
setup(void **state)
{
	if (gs_test_setup(state))
		return -1;
	gs_test_deadline(60);
	return gs_test_make_words() ? -1 : 0;
}

WORDS_TEST(stream_is_first_in_first_out)
{
	CUstream stream = gs_test_stream();

	gs_test_wait_at_gate(stream, 0);
	for (unsigned int i = 1; i <= 100; i++)
		check(cuStreamWriteValue32_v2(stream, gs_test_address(1), i, 0));
	check_is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	assert_int_equal(gs_test_word(1), 0);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(stream));
	assert_int_equal(gs_test_word(1), 100);
	check(cuStreamQuery(stream));
	check(cuStreamDestroy_v2(stream));
	check_is(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

WORDS_TEST(streams_run_side_by_side)
{
	CUstream first = gs_test_stream(), second = gs_test_stream();

	gs_test_wait_at_gate(first, 0);
	check(cuStreamWriteValue32_v2(first, gs_test_address(2), 1, 0));
	check(cuStreamWriteValue32_v2(second, gs_test_address(0), 1, 0));
	check(cuStreamSynchronize(first));
	assert_int_equal(gs_test_word(2), 1);
	check(cuStreamDestroy_v2(first));
	check(cuStreamDestroy_v2(second));
}

WORDS_TEST(default_stream_waits_for_blocking_streams)
{
	CUstream blocking;

	check(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	gs_test_wait_at_gate(blocking, 0);
	check(cuStreamWriteValue32_v2(NULL, gs_test_address(1), 1, 0));
	check_is(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	usleep(30000);
	assert_int_equal(gs_test_word(1), 0);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(NULL));
	assert_int_equal(gs_test_word(1), 1);
	check(cuStreamDestroy_v2(blocking));
}

WORDS_TEST(blocking_streams_wait_for_the_default_stream)
{
	CUstream blocking;

	check(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	gs_test_wait_at_gate(CU_STREAM_LEGACY, 0);
	check(cuStreamWriteValue32_v2(blocking, gs_test_address(1), 1, 0));
	usleep(30000);
	assert_int_equal(gs_test_word(1), 0);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(blocking));
	assert_int_equal(gs_test_word(1), 1);
	check(cuStreamDestroy_v2(blocking));
}

WORDS_TEST(non_blocking_stream_ignores_the_default_stream)
{
	CUstream stream = gs_test_stream();

	gs_test_wait_at_gate(NULL, 0);
	check(cuStreamWriteValue32_v2(stream, gs_test_address(1), 1, 0));
	check(cuStreamSynchronize(stream));
	assert_int_equal(gs_test_word(1), 1);
	check_is(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	gs_test_open_gate(0);
	check(cuCtxSynchronize());
	check(cuStreamQuery(NULL));
	check(cuStreamDestroy_v2(stream));
}

WORDS_TEST(per_thread_stream_is_another_one)
{
	gs_test_wait_at_gate(CU_STREAM_PER_THREAD, 0);
	check(cuStreamWriteValue32_v2(CU_STREAM_PER_THREAD, gs_test_address(1), 1, 0));
	check_is(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	assert_int_equal(gs_test_word(1), 1);
}

WORDS_TEST(waiting_understands_all_conditions)
{
	CUstream stream = gs_test_stream();

	gs_test_words[0] = 5;
	check(cuStreamWaitValue32_v2(stream, gs_test_address(0), 4, CU_STREAM_WAIT_VALUE_GEQ));
	check(cuStreamWaitValue32_v2(stream, gs_test_address(0), 5, CU_STREAM_WAIT_VALUE_EQ));
	check(cuStreamWaitValue32_v2(stream, gs_test_address(0), 4, CU_STREAM_WAIT_VALUE_AND));
	check(cuStreamWaitValue32_v2(stream, gs_test_address(0), 2, CU_STREAM_WAIT_VALUE_NOR));
	check(cuStreamWaitValue32_v2(stream, gs_test_address(0), 0xfffffff0,
				     CU_STREAM_WAIT_VALUE_GEQ));
	check(cuStreamSynchronize(stream));
	check_is(cuStreamWaitValue32_v2(stream, gs_test_address(0) + 1, 4, 0),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuStreamWaitValue32_v2(stream, 4096, 4, 0), CUDA_ERROR_INVALID_VALUE);
	check_is(cuStreamWriteValue32_v2(stream, gs_test_address(0), 4, 8),
		 CUDA_ERROR_INVALID_VALUE);
	check(cuStreamDestroy_v2(stream));
}

WORDS_TEST(event_orders_two_streams)
{
	CUstream first = gs_test_stream(), second = gs_test_stream();
	CUevent event;

	check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check(cuEventQuery(event));
	check(cuStreamWaitEvent(second, event, 0));
	gs_test_wait_at_gate(first, 0);
	check(cuStreamWriteValue32_v2(first, gs_test_address(1), 1, 0));
	check(cuEventRecord(event, first));
	check(cuStreamWaitEvent(second, event, 0));
	check(cuStreamWaitValue32_v2(second, gs_test_address(1), 1, CU_STREAM_WAIT_VALUE_EQ));
	check(cuStreamWriteValue32_v2(second, gs_test_address(2), 1, 0));
	check_is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(gs_test_word(2), 0);
	gs_test_open_gate(0);
	check(cuEventSynchronize(event));
	check(cuStreamSynchronize(second));
	assert_int_equal(gs_test_word(2), 1);
	check(cuEventDestroy_v2(event));
	check_is(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	check(cuStreamDestroy_v2(first));
	check(cuStreamDestroy_v2(second));
}

WORDS_TEST(waiting_means_the_record_at_that_time)
{
	CUstream first = gs_test_stream(), second = gs_test_stream();
	CUevent event;

	check(cuEventCreate(&event, 0));
	check(cuEventRecord(event, first));
	check(cuStreamWaitEvent(second, event, 0));
	gs_test_wait_at_gate(first, 0);
	check(cuEventRecord(event, first));
	check(cuStreamSynchronize(second));
	check_is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	check(cuEventDestroy_v2(event));
	gs_test_open_gate(0);
	check(cuCtxSynchronize());
	check(cuStreamDestroy_v2(first));
	check(cuStreamDestroy_v2(second));
}

WORDS_TEST(events_measure_time)
{
	CUstream stream = gs_test_stream();
	CUevent start, end, untimed;
	float ms = -1;

	check(cuEventCreate(&start, 0));
	check(cuEventCreate(&end, 0));
	check(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	check_is(cuEventElapsedTime_v2(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	check(cuEventRecord(start, stream));
	check(cuStreamSynchronize(stream));
	gs_test_wait_at_gate(stream, 0);
	check(cuEventRecord(end, stream));
	check(cuEventRecord(untimed, stream));
	check_is(cuEventElapsedTime_v2(&ms, start, end), CUDA_ERROR_NOT_READY);
	usleep(20000);
	gs_test_open_gate(0);
	check(cuEventSynchronize(untimed));
	check(cuEventElapsedTime_v2(&ms, start, end));
	assert_true(ms >= 20 && ms < 30000);
	check_is(cuEventElapsedTime_v2(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuEventCreate(&start, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
		 CUDA_ERROR_NOT_SUPPORTED);
	check(cuEventDestroy_v2(start));
	check(cuEventDestroy_v2(end));
	check(cuEventDestroy_v2(untimed));
	check(cuStreamDestroy_v2(stream));
}

static void
bump(void *arg)
{
	__atomic_add_fetch((unsigned int *)arg, 1, __ATOMIC_SEQ_CST);
}

WORDS_TEST(host_function_runs_in_its_place)
{
	CUstream stream = gs_test_stream();

	gs_test_wait_at_gate(stream, 0);
	check(cuLaunchHostFunc(stream, bump, &gs_test_words[1]));
	check(cuStreamWaitValue32_v2(stream, gs_test_address(1), 1, CU_STREAM_WAIT_VALUE_EQ));
	check(cuLaunchHostFunc(stream, bump, &gs_test_words[1]));
	assert_int_equal(gs_test_word(1), 0);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(stream));
	assert_int_equal(gs_test_word(1), 2);
	check_is(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	check(cuStreamDestroy_v2(stream));
}

WORDS_TEST(destroyed_stream_still_finishes)
{
	CUstream stream = gs_test_stream();

	gs_test_wait_at_gate(stream, 0);
	check(cuStreamWriteValue32_v2(stream, gs_test_address(1), 1, 0));
	check(cuStreamDestroy_v2(stream));
	gs_test_open_gate(0);
	check(cuCtxSynchronize());
	assert_int_equal(gs_test_word(1), 1);
}

WORDS_TEST(flags_and_priority_are_kept)
{
	CUstream stream;
	unsigned int flags;
	int priority;

	check(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
	check(cuStreamGetFlags(stream, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	check(cuStreamGetPriority(stream, &priority));
	assert_int_equal(priority, -5);
	check(cuStreamGetFlags(NULL, &flags));
	assert_int_equal(flags, 0);
	check_is(cuStreamCreate(&stream, 16), CUDA_ERROR_INVALID_VALUE);
	check(cuStreamDestroy_v2(stream));
	check_is(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuStreamDestroy_v2((CUstream)gs_test_words), CUDA_ERROR_INVALID_HANDLE);
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

WORDS_TEST(cancelled_stream_drops_its_work_and_others_go_on)
{
	CUstream stream = gs_test_stream(), other = gs_test_stream();
	CUevent event;
	double start;

	check(cuEventCreate(&event, 0));
	gs_test_wait_at_gate(stream, 0);
	check(cuStreamWriteValue32_v2(stream, gs_test_address(1), 1, 0));
	check(cuEventRecord(event, stream));
	check(cuStreamWaitEvent(other, event, 0));
	check(cuStreamWriteValue32_v2(other, gs_test_address(2), 1, 0));
	start = seconds();
	check(gpSoftStreamCancel(stream));
	assert_true(seconds() - start < 2);
	check(cuStreamQuery(stream));
	check(cuStreamSynchronize(other));
	assert_int_equal(gs_test_word(1), 0);
	assert_int_equal(gs_test_word(2), 1);
	check(cuStreamWriteValue32_v2(stream, gs_test_address(1), 1, 0));
	check(cuStreamSynchronize(stream));
	assert_int_equal(gs_test_word(1), 0);
	check_is(gpSoftStreamCancel(NULL), CUDA_ERROR_INVALID_HANDLE);
	check(cuEventDestroy_v2(event));
	check(cuStreamDestroy_v2(stream));
	check(cuStreamDestroy_v2(other));
}

WORDS_TEST(running_kernel_is_cancelled)
{
	CUstream stream = gs_test_stream();
	CUfunction spin = gs_test_kernel("spin");
	CUdeviceptr word;
	double start;
	int value = 3;

	check(cuMemAlloc_v2(&word, 4));
	check(cuMemsetD32_v2(word, 0, 1));
	check(cuCtxSynchronize());
	check(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){ &word }, NULL));
	check_is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	start = seconds();
	check(gpSoftStreamCancel(stream));
	assert_true(seconds() - start < 2);
	check(cuMemcpyDtoH_v2(&value, word, 4));
	assert_int_equal(value, 0);
	check(cuMemFree_v2(word));
	check(cuStreamDestroy_v2(stream));
}

static void *
use_a_stream(void *arg)
{
	CUcontext ctx = arg;
	CUstream stream;
	CUdeviceptr ptr;
	int value = 0;

	if (cuCtxSetCurrent(ctx) || cuStreamCreate(&stream, 0) || cuMemAlloc_v2(&ptr, 4))
		return "setup";
	for (int i = 1; i <= 50; i++) {
		if (cuMemsetD32Async(ptr, (unsigned int)i, 1, stream) ||
		    cuMemcpyDtoHAsync_v2(&value, ptr, 4, stream) || value != i)
			return "copy";
		if (cuMemsetD8_v2(ptr, 0, 4))
			return "default stream";
	}
	if (cuMemFree_v2(ptr) || cuStreamDestroy_v2(stream))
		return "teardown";
	return NULL;
}

WORDS_TEST(threads_use_streams_at_the_same_time)
{
	pthread_t threads[4];
	CUcontext ctx;

	check(cuCtxGetCurrent(&ctx));
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_a_stream, ctx), 0);
	for (unsigned int i = 0; i < 4; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

UNIT_TEST_MAIN(setup, gs_test_teardown)
