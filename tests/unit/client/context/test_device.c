/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and attributes, as the daemon has said them. */
#include "tests/unit/client/context_fixture.h"

TEST(limits_begin_as_the_daemons_and_stay_as_set)
{
	CUcontext context;
	size_t value;

	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
	assert_int_equal(value, 1 << 20);
	assert_int_equal(gpc_cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextSetLimit), 1);
	/* The daemon has as much for all. */
	assert_int_equal(gpc_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextSetLimit), 1);
	assert_int_equal(gpc_cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
	assert_int_equal(value, 4096);
	assert_int_equal(gpc_cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
	assert_int_equal(value, 4096);
	assert_int_equal(gpc_cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuCtxSetLimit((CUlimit)77, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

TEST(devices_answer_from_what_the_daemon_said)
{
	static const struct gpc_device large = { .total_memory = 5ull << 30 };
	unsigned int bytes;
	CUdevprop properties;
	char text[32];
	size_t size;
	int value;
	CUuuid uuid;
	CUdevice device;

	assert_int_equal(gpc_cuDeviceGetCount(&value), CUDA_SUCCESS);
	assert_int_equal(value, 2);
	assert_int_equal(gpc_cuDeviceGetName(text, sizeof(text), 1), CUDA_SUCCESS);
	assert_string_equal(text, "the second");
	assert_int_equal(gpc_cuDeviceGetName(text, 4, 1), CUDA_SUCCESS);
	assert_string_equal(text, "the");
	assert_int_equal(gpc_cuDeviceTotalMem_v2(&size, 1), CUDA_SUCCESS);
	assert_int_equal(size, 2ul << 30);
	assert_int_equal(gpc_cuDeviceTotalMem(&bytes, 1), CUDA_SUCCESS);
	assert_int_equal(bytes, 2u << 30);
	assert_int_equal(gpc_device_total_memory_32(&large), UINT32_MAX);
	assert_int_equal(gpc_cuDeviceGetUuid_v2(&uuid, 1), CUDA_SUCCESS);
	assert_int_equal(uuid.bytes[0], 3);
	assert_int_equal(gpc_cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
			 CUDA_SUCCESS);
	assert_int_equal(value, 32);
	assert_int_equal(gpc_cuDeviceGetProperties(&properties, 0), CUDA_SUCCESS);
	assert_int_equal(properties.SIMDWidth, 32);
	assert_int_equal(gpc_cuDeviceGetPCIBusId(text, sizeof(text), 1), CUDA_SUCCESS);
	assert_string_equal(text, "0000:3C:00.0");
	assert_int_equal(gpc_cuDeviceGetByPCIBusId(&device, text), CUDA_SUCCESS);
	assert_int_equal(device, 1);
	assert_int_equal(gpc_cuDeviceGetByPCIBusId(&device, "3b:0"), CUDA_SUCCESS);
	assert_int_equal(device, 0);
	assert_int_equal(gpc_cuDeviceGetByPCIBusId(&device, "0000:99:00.0"),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDeviceGetByPCIBusId(&device, "somewhere"), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(atomic_load(&fixture.daemon.count), 0);
}

/* The runtime gives up when one of its questions fails, and asks for what came after a driver. */
TEST(attribute_that_is_not_known_is_0)
{
	int value = 7;

	assert_int_equal(gpc_cuDeviceGetAttribute(&value, (CUdevice_attribute)900, 0),
			 CUDA_SUCCESS);
	assert_int_equal(value, 0);
}

TEST(attribute_of_what_is_not_remoted_is_0)
{
	int value = 7;

	assert_int_equal(
		gpc_cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0),
		CUDA_SUCCESS);
	assert_int_equal(value, 0);
}

TEST(attribute_of_what_this_library_does_itself_is_1)
{
	int value = 7;

	assert_int_equal(gpc_cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0),
			 CUDA_SUCCESS);
	assert_int_equal(value, 1);
}

UNIT_TEST_MAIN(NULL, NULL)
