/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices (GPUPOOL_SOFT_DEVICES): the state that each has of its own, and access to each
 * other's memory. */
#include "tests/softgpu/driver/common.h"

#include <string.h>

#define DEVICES 3

static CUcontext contexts[DEVICES];

static int
setup(void **state)
{
	gs_test_deadline(60);
	if (cuInit(0))
		return -1;
	for (int i = 0; i < DEVICES; i++) {
		if (cuDevicePrimaryCtxRetain(&contexts[i], i))
			return -1;
	}
	return 0;
}

static int
teardown(void **state)
{
	for (int i = 0; i < DEVICES; i++) {
		if (cuDevicePrimaryCtxRelease_v2(i))
			return -1;
	}
	return 0;
}

static void
use(int device)
{
	check(cuCtxSetCurrent(contexts[device]));
}

UNIT_TEST(devices_are_distinguishable)
{
	CUuuid uuids[DEVICES];
	char bus[DEVICES][16];
	unsigned long long ids[DEVICES];
	CUdevice device;
	int count, value;

	check(cuDeviceGetCount(&count));
	assert_int_equal(count, DEVICES);
	check_is(cuDeviceGet(&device, DEVICES), CUDA_ERROR_INVALID_DEVICE);
	for (int i = 0; i < DEVICES; i++) {
		check(cuDeviceGet(&device, i));
		assert_int_equal(device, i);
		use(i);
		check(cuCtxGetDevice(&device));
		assert_int_equal(device, i);
		check(cuDeviceGetUuid_v2(&uuids[i], i));
		check(cuDeviceGetPCIBusId(bus[i], sizeof(bus[i]), i));
		check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
		assert_int_equal(value, i);
		check(cuCtxGetId(contexts[i], &ids[i]));
		for (int j = 0; j < i; j++) {
			assert_memory_not_equal(&uuids[i], &uuids[j], sizeof(CUuuid));
			assert_string_not_equal(bus[i], bus[j]);
			assert_true(ids[i] != ids[j]);
		}
	}
}

UNIT_TEST(each_has_its_own_memory)
{
	size_t before[DEVICES], after, total;
	CUdeviceptr memory;

	for (int i = 0; i < DEVICES; i++) {
		use(i);
		check(cuMemGetInfo_v2(&before[i], &total));
	}
	use(1);
	check(cuMemAlloc_v2(&memory, GS_CHUNK));
	for (int i = 0; i < DEVICES; i++) {
		use(i);
		check(cuMemGetInfo_v2(&after, &total));
		assert_int_equal(before[i] - after, i == 1 ? GS_CHUNK : 0);
	}
	check(cuMemFree_v2(memory));
	use(1);
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(before[1], after);
}

/* Physical memory of device 0, mapped with access for `device`. */
static CUdeviceptr
map(int device, CUmemGenericAllocationHandle *handle)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	const CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdeviceptr at;

	check(cuMemCreate(handle, GS_CHUNK, &prop, 0));
	check(cuMemAddressReserve(&at, GS_CHUNK, 0, 0, 0));
	check(cuMemMap(at, GS_CHUNK, 0, *handle, 0));
	check(cuMemSetAccess(at, GS_CHUNK, &access, 1));
	return at;
}

static void
unmap(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
	check(cuMemUnmap(at, GS_CHUNK));
	check(cuMemAddressFree(at, GS_CHUNK));
	check(cuMemRelease(handle));
}

UNIT_TEST(copies_need_access_but_those_between_devices)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = map(0, &handle), other;
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 },
				   .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	unsigned long long flags;
	int word = 5, back = 0;

	use(0);
	check(cuMemcpyHtoD_v2(at, &word, sizeof(word)));
	use(1);
	check(cuMemAlloc_v2(&other, 4096));
	check_is(cuMemcpyHtoD_v2(at, &word, sizeof(word)), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemcpyDtoH_v2(&back, at, sizeof(back)), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemcpyDtoD_v2(other, at, sizeof(word)), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemsetD32_v2(at, 1, 1), CUDA_ERROR_INVALID_VALUE);
	check_is(cuStreamWriteValue32(NULL, at, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check(cuMemcpyPeerAsync(other, contexts[1], at, contexts[0], sizeof(word), NULL));
	check(cuMemcpyDtoH_v2(&back, other, sizeof(back)));
	assert_int_equal(back, 5);
	check_is(cuMemcpyPeerAsync(other, NULL, at, contexts[0], sizeof(word), NULL),
		 CUDA_ERROR_INVALID_CONTEXT);
	check(cuMemGetAccess(&flags, &access.location, at));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	check(cuMemSetAccess(at, GS_CHUNK, &access, 1));
	check(cuMemGetAccess(&flags, &access.location, at));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check(cuMemsetD32_v2(at, 6, 1));
	check(cuMemcpyDtoD_v2(other, at, sizeof(word)));
	check(cuMemcpyDtoH_v2(&back, other, sizeof(back)));
	assert_int_equal(back, 6);
	access.location.id = DEVICES;
	check_is(cuMemSetAccess(at, GS_CHUNK, &access, 1), CUDA_ERROR_INVALID_DEVICE);
	check(cuMemFree_v2(other));
	unmap(at, handle);
}

UNIT_TEST(peers_are_enabled_once)
{
	int can, value;

	use(0);
	check(cuDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	check(cuDeviceCanAccessPeer(&can, 1, 1));
	assert_int_equal(can, 0);
	check(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
	assert_int_equal(value, 1);
	check_is(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
		 CUDA_ERROR_INVALID_DEVICE);
	check_is(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	check_is(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	check_is(cuCtxEnablePeerAccess(contexts[1], 1), CUDA_ERROR_INVALID_VALUE);
	check_is(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	check(cuCtxEnablePeerAccess(contexts[1], 0));
	check_is(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	check(cuCtxDisablePeerAccess(contexts[1]));
}

/* As the kernel of a library sees it where it runs. */
static int
value_of_variable(CUkernel kernel, int device)
{
	CUfunction function;
	CUdeviceptr out;
	void *params[] = { &out };
	int value;

	use(device);
	check(cuMemAlloc_v2(&out, sizeof(int)));
	check(cuKernelGetFunction(&function, kernel));
	check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check(cuMemcpyDtoH_v2(&value, out, sizeof(value)));
	check(cuMemFree_v2(out));
	return value;
}

UNIT_TEST(each_has_its_own_variables)
{
	CUlibrary library;
	CUkernel kernel;
	CUdeviceptr variables[DEVICES];
	int value = 100;

	use(0);
	library = gs_test_library();
	check(cuLibraryGetKernel(&kernel, library, "use_variables"));
	for (int i = 0; i < DEVICES; i++) {
		use(i);
		check(cuLibraryGetGlobal(&variables[i], NULL, library, "counter"));
		for (int j = 0; j < i; j++)
			assert_true(variables[i] != variables[j]);
	}
	check(cuMemcpyHtoD_v2(variables[1], &value, sizeof(value)));
	assert_int_equal(value_of_variable(kernel, 0), 7 + 3);
	assert_int_equal(value_of_variable(kernel, 1), 100 + 3);
	assert_int_equal(value_of_variable(kernel, 2), 7 + 3);
}

UNIT_TEST_MAIN(setup, teardown)
