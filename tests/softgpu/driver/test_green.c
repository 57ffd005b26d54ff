/* SPDX-License-Identifier: Apache-2.0 */
/* Run with a device of 132 multiprocessors. */
#include "tests/softgpu/driver/common.h"

#include <string.h>
#include <unistd.h>

#define ALL 132
#define BLOCKS 1000
#define FINE CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING

static CUdevResource whole;

static int
setup(void **state)
{
	if (gs_test_setup(state) || cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM) ||
	    gs_test_make_words())
		return -1;
	gs_test_deadline(60);
	return 0;
}

static int
teardown(void **state)
{
	return cuMemFreeHost(gs_test_words) || gs_test_teardown(state) ? -1 : 0;
}

/* Of groups `first` to `first + count - 1` of the finest split. */
static CUgreenCtx
green(unsigned int first, unsigned int count)
{
	CUdevResource groups[66];
	CUdevResourceDesc desc;
	unsigned int made = 66;
	CUgreenCtx ctx;

	check(cuDevSmResourceSplitByCount(groups, &made, &whole, NULL, FINE, 2));
	assert_int_equal(made, 66);
	check(cuDevResourceGenerateDesc(&desc, groups + first, count));
	check(cuGreenCtxCreate(&ctx, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	return ctx;
}

static CUstream
make_stream(CUgreenCtx ctx)
{
	CUstream stream;

	check(cuGreenCtxStreamCreate(&stream, ctx, CU_STREAM_NON_BLOCKING, 0));
	return stream;
}

WORDS_TEST(device_is_a_resource)
{
	CUdevResource resource;
	CUcontext ctx;

	assert_int_equal(whole.type, CU_DEV_RESOURCE_TYPE_SM);
	assert_int_equal(whole.sm.smCount, ALL);
	assert_int_equal(whole.sm.minSmPartitionSize, 8);
	assert_int_equal(whole.sm.smCoscheduledAlignment, 8);
	check(cuCtxGetCurrent(&ctx));
	check(cuCtxGetDevResource(ctx, &resource, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(resource.sm.smCount, ALL);
	check_is(cuDeviceGetDevResource(1, &resource, CU_DEV_RESOURCE_TYPE_SM),
		 CUDA_ERROR_INVALID_DEVICE);
	check_is(cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_INVALID),
		 CUDA_ERROR_INVALID_RESOURCE_TYPE);
	check_is(cuCtxGetDevResource((CUcontext)gs_test_words, &resource, CU_DEV_RESOURCE_TYPE_SM),
		 CUDA_ERROR_INVALID_CONTEXT);
}

WORDS_TEST(split_makes_equal_groups_and_a_rest)
{
	CUdevResource groups[66], rest;
	unsigned int count = 0;

	check(cuDevSmResourceSplitByCount(NULL, &count, &whole, NULL, 0, 8));
	assert_int_equal(count, 16);
	count = 66;
	check(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest, 0, 66));
	assert_int_equal(count, 1);
	assert_int_equal(groups[0].sm.smCount, 72);
	assert_int_equal(rest.sm.smCount, 60);
	count = 3;
	check(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest, FINE, 11));
	assert_int_equal(count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(groups[i].sm.smCount, 12);
	assert_int_equal(rest.sm.smCount, ALL - 36);
	count = 66;
	check(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest, FINE, 0));
	assert_int_equal(count, 66);
	assert_int_equal(groups[65].sm.smCount, 2);
	assert_int_equal(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
}

WORDS_TEST(split_refuses_what_cannot_be)
{
	CUdevResource groups[66], other = whole;
	unsigned int count = 66, none = 0;

	check_is(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, 4, 2),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, FINE, ALL + 1),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDevSmResourceSplitByCount(groups, NULL, &whole, NULL, FINE, 2),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDevSmResourceSplitByCount(groups, &none, &whole, NULL, FINE, 2),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDevSmResourceSplitByCount(groups, &count, NULL, NULL, FINE, 2),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, 0, ALL),
		 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	other.type = CU_DEV_RESOURCE_TYPE_INVALID;
	check_is(cuDevSmResourceSplitByCount(groups, &count, &other, NULL, FINE, 2),
		 CUDA_ERROR_INVALID_RESOURCE_TYPE);
	memset(&other, 0, sizeof(other));
	other.type = CU_DEV_RESOURCE_TYPE_SM;
	other.sm.smCount = ALL;
	check_is(cuDevSmResourceSplitByCount(groups, &count, &other, NULL, FINE, 2),
		 CUDA_ERROR_INVALID_VALUE);
	check(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, FINE, 32));
	check_is(cuDevSmResourceSplitByCount(groups + 4, &count, groups, NULL, FINE, 2),
		 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

WORDS_TEST(descriptor_combines_groups_of_one_split)
{
	CUdevResource groups[4], others[4], resource;
	unsigned int count = 4;
	CUdevResourceDesc desc;
	CUgreenCtx ctx;

	check(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, 0, 8));
	check(cuDevSmResourceSplitByCount(others, &count, &whole, NULL, 0, 8));
	check(cuDevResourceGenerateDesc(&desc, groups, 3));
	check(cuGreenCtxCreate(&ctx, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	check(cuGreenCtxGetDevResource(ctx, &resource, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(resource.sm.smCount, 24);
	/* It may be split again. */
	count = 4;
	check(cuDevSmResourceSplitByCount(others, &count, &resource, NULL, 0, 8));
	assert_int_equal(count, 3);
	check(cuGreenCtxDestroy(ctx));

	others[1] = groups[1];
	check_is(cuDevResourceGenerateDesc(&desc, others, 2),
		 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	others[1].type = CU_DEV_RESOURCE_TYPE_INVALID;
	check_is(cuDevResourceGenerateDesc(&desc, others, 2), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	check_is(cuDevResourceGenerateDesc(&desc, groups, 0), CUDA_ERROR_INVALID_VALUE);
	check_is(cuDevResourceGenerateDesc(NULL, groups, 1), CUDA_ERROR_INVALID_VALUE);
	check_is(cuGreenCtxCreate(&ctx, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
	check_is(cuGreenCtxCreate(&ctx, desc, 1, CU_GREEN_CTX_DEFAULT_STREAM),
		 CUDA_ERROR_INVALID_DEVICE);
	check_is(cuGreenCtxCreate(&ctx, (CUdevResourceDesc)gs_test_words, 0,
				  CU_GREEN_CTX_DEFAULT_STREAM),
		 CUDA_ERROR_INVALID_VALUE);
}

/* How many different multiprocessors a large grid runs on, all of [low, high). */
static unsigned int
spread(CUstream stream, int low, int high)
{
	CUfunction where = gs_test_kernel("where");
	CUdeviceptr out, count;
	int ran[BLOCKS], all = 0;
	unsigned int seen[ALL] = { 0 }, distinct = 0;

	check(cuMemAlloc_v2(&out, sizeof(ran)));
	check(cuMemAlloc_v2(&count, sizeof(all)));
	check(cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, stream, (void *[]){ &out, &count },
			     NULL));
	check(cuStreamSynchronize(stream));
	check(cuMemcpyDtoH_v2(ran, out, sizeof(ran)));
	check(cuMemcpyDtoH_v2(&all, count, sizeof(all)));
	check(cuMemFree_v2(out));
	check(cuMemFree_v2(count));
	assert_int_equal(all, ALL);
	for (int i = 0; i < BLOCKS; i++) {
		assert_in_range(ran[i], low, high - 1);
		distinct += !seen[ran[i]]++;
	}
	return distinct;
}

WORDS_TEST(kernels_run_on_the_multiprocessors_of_their_stream)
{
	CUgreenCtx first = green(0, 8), second = green(8, 16);
	CUstream a = make_stream(first), b = make_stream(second), plain = gs_test_stream();

	assert_int_equal(spread(plain, 0, ALL), ALL);
	assert_int_equal(spread(a, 0, 16), 16);
	assert_int_equal(spread(b, 16, 48), 32);
	check(cuStreamDestroy_v2(a));
	check(cuStreamDestroy_v2(b));
	check(cuStreamDestroy_v2(plain));
	check(cuGreenCtxDestroy(first));
	check(cuGreenCtxDestroy(second));
}

WORDS_TEST(no_more_blocks_are_begun_than_fit)
{
	CUfunction gather = gs_test_kernel("gather");
	CUgreenCtx ctx = green(3, 1);
	CUstream stream = make_stream(ctx);
	int crowd[3], rounds = 400000, fit = 0;
	CUdeviceptr memory;

	check(cuFuncSetAttribute(gather, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				 200 << 10));
	check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, gather, 32, 200 << 10));
	assert_int_equal(fit, 1);
	check(cuMemAlloc_v2(&memory, sizeof(crowd)));
	check(cuMemsetD8Async(memory, 0, sizeof(crowd), stream));
	check(cuLaunchKernel(gather, 8, 1, 1, 1, 1, 1, 200 << 10, stream,
			     (void *[]){ &memory, &rounds }, NULL));
	check(cuStreamSynchronize(stream));
	check(cuMemcpyDtoH_v2(crowd, memory, sizeof(crowd)));
	assert_int_equal(crowd[0], 0);
	assert_in_range(crowd[1], 1, 2);
	check(cuMemFree_v2(memory));
	check(cuStreamDestroy_v2(stream));
	check(cuGreenCtxDestroy(ctx));
}

WORDS_TEST(cooperative_launches_follow_the_green_context)
{
	CUfunction where = gs_test_kernel("where");
	CUgreenCtx ctx = green(0, 2);
	CUstream stream = make_stream(ctx);
	CUlaunchConfig config = { .gridDimX = 1,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 1024,
				  .blockDimY = 1,
				  .blockDimZ = 1 };
	CUlaunchAttribute of_two_blocks = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
					    .value.clusterDim = { 2, 1, 1 } };
	CUdeviceptr out;
	unsigned int most;
	int fit, clusters;

	check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, where, 1024, 0));
	most = 4 * (unsigned int)fit;
	check(cuMemAlloc_v2(&out, 4096));
	check(cuOccupancyMaxActiveClusters(&clusters, where, &config));
	assert_int_equal(clusters, ALL * fit);
	config.hStream = stream;
	check(cuOccupancyMaxActiveClusters(&clusters, where, &config));
	assert_int_equal(clusters, most);
	config.attrs = &of_two_blocks;
	config.numAttrs = 1;
	check(cuOccupancyMaxActiveClusters(&clusters, where, &config));
	assert_int_equal(clusters, 0);
	check(cuLaunchCooperativeKernel(where, most, 1, 1, 1024, 1, 1, 0, stream,
					(void *[]){ &out, &out }));
	check_is(cuLaunchCooperativeKernel(where, most + 1, 1, 1, 1024, 1, 1, 0, stream,
					   (void *[]){ &out, &out }),
		 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	check(cuLaunchCooperativeKernel(where, most + 1, 1, 1, 1024, 1, 1, 0, NULL,
					(void *[]){ &out, &out }));
	check(cuCtxSynchronize());
	check(cuMemFree_v2(out));
	check(cuStreamDestroy_v2(stream));
	check(cuGreenCtxDestroy(ctx));
}

WORDS_TEST(streams_know_their_green_context)
{
	CUgreenCtx ctx = green(0, 1), found = NULL;
	CUstream stream, plain = gs_test_stream();
	unsigned int flags;
	int priority;

	check_is(cuGreenCtxStreamCreate(&stream, ctx, CU_STREAM_DEFAULT, 0),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuGreenCtxStreamCreate(NULL, ctx, CU_STREAM_NON_BLOCKING, 0),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuGreenCtxStreamCreate(&stream, (CUgreenCtx)gs_test_words, CU_STREAM_NON_BLOCKING,
					0),
		 CUDA_ERROR_INVALID_CONTEXT);
	check(cuGreenCtxStreamCreate(&stream, ctx, CU_STREAM_NON_BLOCKING, -2));
	check(cuStreamGetPriority(stream, &priority));
	assert_int_equal(priority, -2);
	check(cuStreamGetFlags(stream, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	check(cuStreamGetGreenCtx(stream, &found));
	assert_ptr_equal(found, ctx);
	check(cuStreamGetGreenCtx(plain, &found));
	assert_null(found);
	check_is(cuStreamGetGreenCtx((CUstream)gs_test_words, &found), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuStreamGetGreenCtx(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	check(cuStreamDestroy_v2(stream));
	check(cuStreamDestroy_v2(plain));
	check(cuGreenCtxDestroy(ctx));
}

WORDS_TEST(destroyed_green_context_ends_its_streams)
{
	CUgreenCtx ctx = green(0, 1), found;
	CUstream stream = make_stream(ctx), fresh;
	CUdevResource resource;
	CUcontext converted;
	CUevent event;

	check(cuEventCreate(&event, 0));
	check(cuCtxFromGreenCtx(&converted, ctx));
	check(cuStreamWriteValue32_v2(stream, gs_test_address(0), 7, 0));
	check(cuEventRecord(event, stream));
	check(cuGreenCtxDestroy(ctx));
	assert_int_equal(gs_test_word(0), 7);
	check_is(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_is(cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_is(cuStreamWriteValue32_v2(stream, gs_test_address(0), 8, 0),
		 CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_is(cuEventRecord(event, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_is(cuStreamGetGreenCtx(stream, &found), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check(cuEventQuery(event));
	check(cuEventDestroy_v2(event));
	check_is(cuGreenCtxDestroy(ctx), CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuGreenCtxStreamCreate(&fresh, ctx, CU_STREAM_NON_BLOCKING, 0),
		 CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuGreenCtxGetDevResource(ctx, &resource, CU_DEV_RESOURCE_TYPE_SM),
		 CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuCtxSetCurrent(converted), CUDA_ERROR_INVALID_CONTEXT);
}

WORDS_TEST(green_context_can_be_current)
{
	CUgreenCtx ctx = green(10, 4), found;
	CUcontext converted, before, now;
	CUdevResource resource;
	CUstream stream;
	int grid, block, fit;

	check(cuCtxGetCurrent(&before));
	check_is(cuCtxSetCurrent((CUcontext)ctx), CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuCtxFromGreenCtx(&converted, (CUgreenCtx)gs_test_words),
		 CUDA_ERROR_INVALID_CONTEXT);
	check(cuCtxFromGreenCtx(&converted, ctx));
	assert_ptr_not_equal(converted, before);
	check(cuCtxSetCurrent(converted));
	check(cuCtxGetCurrent(&now));
	assert_ptr_equal(now, converted);
	check(cuCtxGetDevResource(converted, &resource, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(resource.sm.smCount, 8);
	check(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	check(cuStreamGetGreenCtx(stream, &found));
	assert_ptr_equal(found, ctx);
	assert_int_equal(spread(stream, 20, 28), 8);
	assert_int_equal(spread(NULL, 20, 28), 8);
	check(cuOccupancyMaxPotentialBlockSize(&grid, &block, gs_test_kernel("where"), NULL, 0, 0));
	check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, gs_test_kernel("where"), block, 0));
	assert_int_equal(grid, 8 * fit);
	check_is(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
	/* The default stream is that of the green context. */
	gs_test_wait_at_gate(stream, 0);
	check(cuStreamWriteValue32_v2(NULL, gs_test_address(1), 1, 0));
	check_is(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	check(cuCtxSetCurrent(before));
	check(cuStreamWriteValue32_v2(NULL, gs_test_address(2), 1, 0));
	check(cuStreamSynchronize(NULL));
	assert_int_equal(gs_test_word(1), 0);
	check(cuCtxSetCurrent(converted));
	gs_test_open_gate(0);
	check(cuCtxSynchronize());
	assert_int_equal(gs_test_word(1), 1);
	check(cuStreamDestroy_v2(stream));
	check(cuGreenCtxDestroy(ctx));
	check_is(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check(cuCtxSetCurrent(before));
	check(cuCtxSynchronize());
}

WORDS_TEST(primary_context_waits_for_its_green_contexts)
{
	CUgreenCtx ctx = green(0, 1);
	CUstream stream = make_stream(ctx);

	check(cuStreamWaitValue32_v2(stream, gs_test_address(0), 1, CU_STREAM_WAIT_VALUE_EQ));
	check(cuStreamWriteValue32_v2(stream, gs_test_address(1), 1, 0));
	gs_test_open_gate(0);
	check(cuCtxSynchronize());
	assert_int_equal(gs_test_word(1), 1);
	check(cuStreamDestroy_v2(stream));
	check(cuGreenCtxDestroy(ctx));
}

WORDS_TEST(event_stands_for_all_work_of_a_green_context)
{
	CUgreenCtx ctx = green(0, 1);
	CUstream a = make_stream(ctx), b = make_stream(ctx);
	CUevent event;

	check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	gs_test_wait_at_gate(a, 0);
	gs_test_wait_at_gate(b, 1);
	check(cuGreenCtxRecordEvent(ctx, event));
	check_is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(a));
	check_is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gs_test_wait_at_gate(a, 2);
	gs_test_open_gate(1);
	check(cuEventSynchronize(event));
	gs_test_open_gate(2);
	check_is(cuGreenCtxRecordEvent(ctx, (CUevent)gs_test_words), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuGreenCtxRecordEvent((CUgreenCtx)gs_test_words, event),
		 CUDA_ERROR_INVALID_CONTEXT);
	check(cuCtxSynchronize());
	check(cuEventDestroy_v2(event));
	check(cuStreamDestroy_v2(a));
	check(cuStreamDestroy_v2(b));
	check(cuGreenCtxDestroy(ctx));
}

WORDS_TEST(event_stands_for_all_work_of_the_primary_context)
{
	CUgreenCtx ctx = green(0, 1);
	CUstream a = make_stream(ctx), b = gs_test_stream();
	CUcontext primary;
	CUevent event;

	check(cuCtxGetCurrent(&primary));
	check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check(cuCtxRecordEvent(primary, event));
	check(cuEventSynchronize(event));
	gs_test_wait_at_gate(a, 0);
	gs_test_wait_at_gate(b, 1);
	check(cuCtxRecordEvent(primary, event));
	check_is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gs_test_open_gate(1);
	check(cuStreamSynchronize(b));
	check_is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gs_test_wait_at_gate(b, 2);
	gs_test_open_gate(0);
	check(cuEventSynchronize(event));
	gs_test_open_gate(2);
	check_is(cuCtxRecordEvent(primary, (CUevent)gs_test_words), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuCtxRecordEvent((CUcontext)gs_test_words, event), CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuCtxRecordEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
	check(cuCtxSynchronize());
	check(cuEventDestroy_v2(event));
	check(cuStreamDestroy_v2(a));
	check(cuStreamDestroy_v2(b));
	check(cuGreenCtxDestroy(ctx));
}

WORDS_TEST(green_context_waits_for_an_event)
{
	CUgreenCtx ctx = green(0, 1);
	CUstream before = make_stream(ctx), other = gs_test_stream(), after;
	CUevent event;

	check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	gs_test_wait_at_gate(other, 0);
	check(cuEventRecord(event, other));
	check(cuGreenCtxWaitEvent(ctx, event));
	after = make_stream(ctx);
	check(cuStreamWriteValue32_v2(before, gs_test_address(1), 1, 0));
	check(cuStreamWriteValue32_v2(after, gs_test_address(2), 1, 0));
	usleep(30000);
	assert_int_equal(gs_test_word(1), 0);
	assert_int_equal(gs_test_word(2), 0);
	gs_test_open_gate(0);
	check(cuStreamSynchronize(before));
	check(cuStreamSynchronize(after));
	assert_int_equal(gs_test_word(1) + gs_test_word(2), 2);
	check_is(cuGreenCtxWaitEvent(ctx, (CUevent)gs_test_words), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuGreenCtxWaitEvent((CUgreenCtx)gs_test_words, event), CUDA_ERROR_INVALID_CONTEXT);
	check(cuEventDestroy_v2(event));
	check(cuStreamDestroy_v2(before));
	check(cuStreamDestroy_v2(after));
	check(cuStreamDestroy_v2(other));
	check(cuGreenCtxDestroy(ctx));
}

UNIT_TEST_MAIN(setup, teardown)
