/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HINT 0x551000000000ull
#endif
#elif defined(__SANITIZE_THREAD__)
#define HINT 0x551000000000ull
#endif
#ifndef HINT
#define HINT 0x110000000000ull
#endif
#define WINDOW ((size_t)1 << 30)

static const CUmemAllocationProp exportable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
};

static const CUmemAccessDesc read_write = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static size_t
free_memory(void)
{
	size_t left, total;

	check(cuMemGetInfo_v2(&left, &total));
	return left;
}

UNIT_TEST(window_starts_at_the_hint)
{
	CUdeviceptr window, second, anywhere;

	check(cuMemAddressReserve(&window, WINDOW, 0, HINT, 0));
	assert_int_equal(window, HINT);
	check(cuMemAddressReserve(&second, WINDOW, 0, HINT, 0));
	assert_true(second >= HINT + WINDOW || second + WINDOW <= HINT);
	check(cuMemAddressReserve(&anywhere, GS_CHUNK, 0, 0, 0));
	assert_true(anywhere > HINT);
	check_is(cuMemAddressFree(window, GS_CHUNK), CUDA_ERROR_INVALID_VALUE);
	check(cuMemAddressFree(window, WINDOW));
	check(cuMemAddressFree(second, WINDOW));
	check(cuMemAddressFree(anywhere, GS_CHUNK));
	check_is(cuMemAddressFree(window, WINDOW), CUDA_ERROR_INVALID_VALUE);
	check(cuMemAddressReserve(&window, WINDOW, 0, HINT, 0));
	assert_int_equal(window, HINT);
	check(cuMemAddressFree(window, WINDOW));
}

UNIT_TEST(sizes_must_be_whole_granules)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;
	size_t granularity;

	check(cuMemGetAllocationGranularity(&granularity, &exportable,
					    CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	assert_int_equal(granularity, GS_CHUNK);
	check_is(cuMemCreate(&handle, 4096, &exportable, 0), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemCreate(&handle, 0, &exportable, 0), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemAddressReserve(&ptr, 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(mapped_memory_needs_access_before_use)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr window;
	int value = 42, back = 0;
	size_t before = free_memory();

	check(cuMemAddressReserve(&window, WINDOW, 0, HINT, 0));
	check(cuMemCreate(&handle, GS_CHUNK, &exportable, 0));
	assert_int_equal(free_memory(), before - GS_CHUNK);
	check_is(cuMemcpyHtoD_v2(window, &value, 4), CUDA_ERROR_INVALID_VALUE);
	check(cuMemMap(window, GS_CHUNK, 0, handle, 0));
	check_is(cuMemMap(window, GS_CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemcpyHtoD_v2(window, &value, 4), CUDA_ERROR_INVALID_VALUE);
	check(cuMemSetAccess(window, GS_CHUNK, &read_write, 1));
	check(cuMemcpyHtoD_v2(window + GS_CHUNK - 4, &value, 4));
	check_is(cuMemcpyHtoD_v2(window + GS_CHUNK - 3, &value, 4), CUDA_ERROR_INVALID_VALUE);
	check(cuMemcpyDtoH_v2(&back, window + GS_CHUNK - 4, 4));
	assert_int_equal(back, 42);

	check(cuMemRelease(handle));
	assert_int_equal(free_memory(), before - GS_CHUNK);
	check_is(cuMemAddressFree(window, WINDOW), CUDA_ERROR_INVALID_VALUE);
	check(cuMemUnmap(window, GS_CHUNK));
	assert_int_equal(free_memory(), before);
	check_is(cuMemUnmap(window, GS_CHUNK), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	check(cuMemAddressFree(window, WINDOW));
}

UNIT_TEST(host_memory_is_charged_to_no_device_and_is_the_hosts_too)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA } };
	CUmemAccessDesc access[2] = { read_write, read_write };
	CUmemGenericAllocationHandle handle, device;
	unsigned long long flags;
	size_t before = free_memory();
	CUdeviceptr window;
	int value = 42;

	access[1].location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	check(cuMemAddressReserve(&window, 2 * GS_CHUNK, 0, 0, 0));
	check(cuMemCreate(&handle, GS_CHUNK, &prop, 0));
	check(cuMemCreate(&device, GS_CHUNK, &exportable, 0));
	assert_int_equal(free_memory(), before - GS_CHUNK);
	check(cuMemMap(window, GS_CHUNK, 0, handle, 0));
	check(cuMemMap(window + GS_CHUNK, GS_CHUNK, 0, device, 0));
	check(cuMemGetAccess(&flags, &access[1].location, window));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	check(cuMemSetAccess(window, GS_CHUNK, access, 2));
	check(cuMemGetAccess(&flags, &access[1].location, window));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check(cuMemcpyHtoD_v2(window + 8, &value, 4));
	assert_int_equal(*(int *)(uintptr_t)(window + 8),
			 42); /* NOLINT(performance-no-int-to-ptr) */
	check_is(cuMemSetAccess(window + GS_CHUNK, GS_CHUNK, access, 2), CUDA_ERROR_NOT_SUPPORTED);
	check(cuMemUnmap(window, 2 * GS_CHUNK));
	check(cuMemRelease(handle));
	check(cuMemRelease(device));
	check(cuMemAddressFree(window, 2 * GS_CHUNK));
	assert_int_equal(free_memory(), before);

	prop.location.id = 7;
	check_is(cuMemCreate(&handle, GS_CHUNK, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	check_is(cuMemCreate(&handle, GS_CHUNK, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	check_is(cuMemCreate(&handle, GS_CHUNK, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(neighbouring_chunks_are_one_range)
{
	CUmemGenericAllocationHandle handles[2];
	CUdeviceptr window;
	char *bytes = calloc(1, 2 * GS_CHUNK);

	memset(bytes, 7, 2 * GS_CHUNK);
	check(cuMemAddressReserve(&window, WINDOW, 0, HINT, 0));
	for (unsigned int i = 0; i < 2; i++) {
		check(cuMemCreate(&handles[i], GS_CHUNK, &exportable, 0));
		check(cuMemMap(window + i * GS_CHUNK, GS_CHUNK, 0, handles[i], 0));
		check(cuMemRelease(handles[i]));
	}
	check(cuMemSetAccess(window, 2 * GS_CHUNK, &read_write, 1));
	check(cuMemcpyHtoD_v2(window, bytes, 2 * GS_CHUNK));
	check(cuMemsetD8_v2(window + GS_CHUNK - 1, 9, 2));
	check(cuMemcpyDtoH_v2(bytes, window, 2 * GS_CHUNK));
	assert_int_equal(bytes[GS_CHUNK - 2], 7);
	assert_int_equal(bytes[GS_CHUNK - 1], 9);
	assert_int_equal(bytes[GS_CHUNK], 9);
	assert_int_equal(bytes[GS_CHUNK + 1], 7);
	check(cuMemUnmap(window, 2 * GS_CHUNK));
	check(cuMemAddressFree(window, WINDOW));
	free(bytes);
}

UNIT_TEST(exported_memory_is_the_same_memory)
{
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr window;
	int fd = -1, value = 5, back = 0;
	size_t before = free_memory();

	check(cuMemAddressReserve(&window, 2 * GS_CHUNK, 0, 0, 0));
	check(cuMemCreate(&handle, GS_CHUNK, &exportable, 0));
	check(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					   0));
	check(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd,
					     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	assert_int_equal(free_memory(), before - GS_CHUNK);
	check(cuMemMap(window, GS_CHUNK, 0, handle, 0));
	check(cuMemMap(window + GS_CHUNK, GS_CHUNK, 0, again, 0));
	check(cuMemSetAccess(window, 2 * GS_CHUNK, &read_write, 1));
	check(cuMemcpyHtoD_v2(window + 8, &value, 4));
	check(cuMemcpyDtoH_v2(&back, window + GS_CHUNK + 8, 4));
	assert_int_equal(back, 5);
	check(cuMemUnmap(window, 2 * GS_CHUNK));
	check(cuMemRelease(handle));
	check(cuMemRelease(again));
	assert_int_equal(free_memory(), before);
	check(cuMemAddressFree(window, 2 * GS_CHUNK));
}

UNIT_TEST(memory_outlives_its_allocation_in_a_descriptor)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr window;
	int fd = -1, value = 77, back = 0;

	check(cuMemAddressReserve(&window, GS_CHUNK, 0, 0, 0));
	for (unsigned int round = 0; round < 2; round++) {
		if (round == 0) {
			check(cuMemCreate(&handle, GS_CHUNK, &exportable, 0));
			check(cuMemExportToShareableHandle(
				&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		} else {
			check(cuMemImportFromShareableHandle(
				&handle, (void *)(intptr_t)fd,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		}
		check(cuMemMap(window, GS_CHUNK, 0, handle, 0));
		check(cuMemSetAccess(window, GS_CHUNK, &read_write, 1));
		if (round == 0)
			check(cuMemcpyHtoD_v2(window, &value, 4));
		else
			check(cuMemcpyDtoH_v2(&back, window, 4));
		check(cuMemUnmap(window, GS_CHUNK));
		check(cuMemRelease(handle));
	}
	close(fd);
	check(cuMemAddressFree(window, GS_CHUNK));
	assert_int_equal(back, 77);
}

UNIT_TEST(allocations_are_counted_and_limited)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr a, b;
	size_t before = free_memory(), total;

	check(cuDeviceTotalMem_v2(&total, 0));
	assert_int_equal(total, 256 * GS_MIB);
	check(cuMemAlloc_v2(&a, 100 * GS_MIB));
	check(cuMemAlloc_v2(&b, 1));
	check_is(cuMemAlloc_v2(&b, 200 * GS_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	check_is(cuMemCreate(&handle, 200 * GS_MIB, &exportable, 0), CUDA_ERROR_OUT_OF_MEMORY);
	check_is(cuMemAlloc_v2(&b, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	check_is(cuMemAlloc_v2(&b, 0), CUDA_ERROR_INVALID_VALUE);
	check(cuMemFree_v2(a));
	check_is(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemFree_v2(b + 4), CUDA_ERROR_INVALID_VALUE);
	check(cuMemFree_v2(b));
	check(cuMemFree_v2(0));
	assert_int_equal(free_memory(), before);
}

UNIT_TEST(pinned_memory_has_a_device_address)
{
	CUdeviceptr ptr;
	char *pinned, pageable[16];
	void *registered = malloc(4096);

	check(cuMemHostAlloc((void **)&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	check(cuMemHostGetDevicePointer_v2(&ptr, pinned + 8, 0));
	assert_int_equal(ptr, (uintptr_t)pinned + 8);
	check_is(cuMemHostGetDevicePointer_v2(&ptr, pageable, 0), CUDA_ERROR_INVALID_VALUE);
	check(cuMemsetD8_v2((CUdeviceptr)(uintptr_t)pinned, 3, 10));
	check(cuCtxSynchronize());
	assert_int_equal(pinned[9], 3);
	check_is(cuMemHostUnregister(pinned), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	check(cuMemFreeHost(pinned));
	check_is(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);

	check(cuMemHostRegister_v2(registered, 4096, 0));
	check_is(cuMemHostRegister_v2(registered, 4096, 0),
		 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	/* Kernels reach it only in their range of addresses. */
	check_is(cuMemHostGetDevicePointer_v2(&ptr, registered, 0), CUDA_ERROR_NOT_SUPPORTED);
	check(cuMemHostUnregister(registered));
	check_is(cuMemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(registered);
}

UNIT_TEST(copies_of_rectangles_leave_the_rest)
{
	unsigned char source[8 * 8], target[8 * 8];
	CUdeviceptr ptr;
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = source,
			       .srcPitch = 8,
			       .srcXInBytes = 1,
			       .srcY = 2,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstPitch = 8,
			       .WidthInBytes = 3,
			       .Height = 2 };

	for (unsigned int i = 0; i < 64; i++)
		source[i] = (unsigned char)i;
	check(cuMemAlloc_v2(&ptr, 64));
	check(cuMemsetD8_v2(ptr, 255, 64));
	copy.dstDevice = ptr;
	check(cuMemcpy2DAsync_v2(&copy, NULL));
	check(cuMemcpyDtoH_v2(target, ptr, 64));
	assert_int_equal(target[0], 17);
	assert_int_equal(target[2], 19);
	assert_int_equal(target[3], 255);
	assert_int_equal(target[8], 25);
	assert_int_equal(target[16], 255);

	copy.srcPitch = 2;
	check_is(cuMemcpy2DAsync_v2(&copy, NULL), CUDA_ERROR_INVALID_VALUE);
	copy.srcPitch = 8;
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	check_is(cuMemcpy2DAsync_v2(&copy, NULL), CUDA_ERROR_INVALID_HANDLE);
	check(cuMemFree_v2(ptr));
}

UNIT_TEST(copies_of_boxes_keep_their_planes)
{
	unsigned char source[4 * 4 * 4], target[4 * 4 * 4];
	CUdeviceptr ptr;
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			       .srcPitch = 4,
			       .srcHeight = 4,
			       .srcZ = 1,
			       .dstMemoryType = CU_MEMORYTYPE_HOST,
			       .dstHost = target,
			       .dstPitch = 4,
			       .dstHeight = 4,
			       .dstXInBytes = 2,
			       .WidthInBytes = 2,
			       .Height = 2,
			       .Depth = 2 };

	for (unsigned int i = 0; i < 64; i++)
		source[i] = (unsigned char)i;
	memset(target, 255, sizeof(target));
	check(cuMemAlloc_v2(&ptr, 64));
	check(cuMemcpyHtoD_v2(ptr, source, 64));
	copy.srcDevice = ptr;
	check(cuMemcpy3DAsync_v2(&copy, NULL));
	assert_int_equal(target[2], 16);
	assert_int_equal(target[3], 17);
	assert_int_equal(target[4 + 2], 20);
	assert_int_equal(target[16 + 2], 32);
	assert_int_equal(target[0], 255);
	assert_int_equal(target[8 + 2], 255);
	check(cuMemFree_v2(ptr));
}

UNIT_TEST(fills_have_elements_and_rows)
{
	uint32_t words[16];
	CUdeviceptr ptr;

	check(cuMemAlloc_v2(&ptr, 64));
	check(cuMemsetD32_v2(ptr, 0x01020304, 16));
	check(cuMemsetD16Async(ptr + 4, 0xaabb, 1, NULL));
	check(cuMemsetD2D32Async(ptr + 16, 16, 0, 1, 3, NULL));
	check_is(cuMemsetD32_v2(ptr + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	check_is(cuMemsetD8_v2(ptr + 60, 0, 5), CUDA_ERROR_INVALID_VALUE);
	check(cuMemcpyDtoH_v2(words, ptr, 64));
	assert_int_equal(words[0], 0x01020304);
	assert_int_equal(words[1], 0x0102aabb);
	assert_int_equal(words[4], 0);
	assert_int_equal(words[5], 0x01020304);
	assert_int_equal(words[12], 0);
	check(cuMemFree_v2(ptr));
}

UNIT_TEST(small_pageable_source_may_be_reused_at_once)
{
	CUstream stream = gs_test_stream();
	unsigned int *gate, value = 1, back = 0;
	CUdeviceptr ptr;

	gs_test_deadline(20);
	check(cuMemAlloc_v2(&ptr, 4));
	check(cuMemHostAlloc((void **)&gate, 4, 0));
	*gate = 0;
	check(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)gate, 1,
				     CU_STREAM_WAIT_VALUE_EQ));
	check(cuMemcpyHtoDAsync_v2(ptr, &value, 4, stream));
	value = 2;
	check_is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	__atomic_store_n(gate, 1, __ATOMIC_SEQ_CST);
	check(cuMemcpyDtoHAsync_v2(&back, ptr, 4, stream));
	assert_int_equal(back, 1);
	check(cuStreamDestroy_v2(stream));
	check(cuMemFreeHost(gate));
	check(cuMemFree_v2(ptr));
}

UNIT_TEST_MAIN(gs_test_setup, gs_test_teardown)
