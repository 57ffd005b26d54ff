/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <string.h>

static int
attribute(CUdevice_attribute id)
{
	int value = -2;

	check(cuDeviceGetAttribute(&value, id, 0));
	return value;
}

UNIT_TEST(calls_before_init_fail)
{
	CUdevice device;
	CUcontext ctx;
	int count, version;

	check_is(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	check_is(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	check_is(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_ERROR_NOT_INITIALIZED);
	check_is(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	check(cuDriverGetVersion(&version));
	assert_int_equal(version, 13000);
	check_is(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	check(cuInit(0));
}

UNIT_TEST(calls_without_a_context_fail)
{
	CUdeviceptr ptr;
	CUcontext ctx;

	check(cuCtxGetCurrent(&ctx));
	assert_null(ctx);
	check_is(cuMemAlloc_v2(&ptr, 4), CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuCtxPopCurrent_v2(&ctx), CUDA_ERROR_INVALID_CONTEXT);
}

UNIT_TEST(there_is_one_device)
{
	CUdevice device;
	CUuuid uuid, again;
	char name[64], bus[16];
	int count;

	check(cuDeviceGetCount(&count));
	assert_int_equal(count, 1);
	check(cuDeviceGet(&device, 0));
	check_is(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
	check(cuDeviceGetName(name, sizeof(name), 0));
	assert_string_equal(name, "gpupool software device");
	check(cuDeviceGetUuid_v2(&uuid, 0));
	check(cuDeviceGetUuid_v2(&again, 0));
	assert_memory_equal(&uuid, &again, sizeof(uuid));
	check(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
	check_is(cuDeviceGetPCIBusId(bus, 4, 0), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(attributes_describe_it)
{
	int value;

	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 49152);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 232448);
	assert_true(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY), 1);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM), 0);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), 0);
	for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; id++)
		check(cuDeviceGetAttribute(&value, (CUdevice_attribute)id, 0));
	check_is(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1),
		 CUDA_ERROR_INVALID_DEVICE);
}

UNIT_TEST(context_stack_pushes_and_pops)
{
	CUcontext ctx, found;
	CUdevice device = 9;

	check(cuDevicePrimaryCtxRetain(&ctx, 0));
	check(cuCtxPushCurrent_v2(ctx));
	check(cuCtxPushCurrent_v2(ctx));
	check(cuCtxGetDevice(&device));
	assert_int_equal(device, 0);
	check(cuCtxPopCurrent_v2(&found));
	assert_ptr_equal(found, ctx);
	check(cuCtxGetCurrent(&found));
	assert_ptr_equal(found, ctx);
	check(cuCtxSetCurrent(NULL));
	check(cuCtxGetCurrent(&found));
	assert_null(found);
	check_is(cuCtxSetCurrent((CUcontext)&device), CUDA_ERROR_INVALID_CONTEXT);
	check(cuDevicePrimaryCtxRelease_v2(0));
}

UNIT_TEST(released_context_is_gone_and_comes_back)
{
	unsigned int flags;
	int active;
	CUcontext ctx;
	CUstream stream;
	CUdeviceptr ptr;
	size_t before, after, total;

	check(cuDevicePrimaryCtxRetain(&ctx, 0));
	check(cuCtxSetCurrent(ctx));
	check(cuMemGetInfo_v2(&before, &total));
	check(cuMemAlloc_v2(&ptr, 1 << 20));
	check(cuStreamCreate(&stream, 0));
	check(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 1);
	check(cuDevicePrimaryCtxRelease_v2(0));
	check(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	check_is(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_is(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);

	check(cuDevicePrimaryCtxRetain(&ctx, 0));
	check_is(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(after, before);
	check(cuDevicePrimaryCtxRelease_v2(0));
}

UNIT_TEST(limits_are_kept)
{
	CUcontext ctx;
	size_t value;
	unsigned int version;
	int least, greatest;

	check(cuDevicePrimaryCtxRetain(&ctx, 0));
	check(cuCtxSetCurrent(ctx));
	check(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	check(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	assert_int_equal(value, 4096);
	check(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	assert_int_equal(value, 8 << 20);
	check_is(cuCtxGetLimit(&value, (CUlimit)77), CUDA_ERROR_INVALID_VALUE);
	check_is(cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED), CUDA_ERROR_UNSUPPORTED_LIMIT);
	check(cuCtxGetApiVersion(ctx, &version));
	check(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_true(greatest < least);
	check(cuDevicePrimaryCtxRelease_v2(0));
}

/* Writes of a network card are visible without a flush; drivers call it nevertheless. */
UNIT_TEST(writes_of_others_can_be_flushed)
{
	CUcontext ctx;
	int value;

	check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0));
	assert_int_equal(value, 1);
	check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
	assert_int_equal(value, 0);
	check(cuDevicePrimaryCtxRetain(&ctx, 0));
	check(cuCtxSetCurrent(ctx));
	check(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
					 CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
	check_is(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
					    (CUflushGPUDirectRDMAWritesScope)1),
		 CUDA_ERROR_INVALID_VALUE);
	check(cuDevicePrimaryCtxRelease_v2(0));
}

UNIT_TEST(errors_have_names_and_texts)
{
	const char *text;

	check(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	check(cuGetErrorName(CUDA_ERROR_KEY_ROTATION, &text));
	check(cuGetErrorString(CUDA_ERROR_NOT_READY, &text));
	assert_true(strlen(text) > 0);
	check_is(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
}

UNIT_TEST_MAIN(NULL, NULL)
