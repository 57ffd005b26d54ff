/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/memory.h"
#include "client/memory/pointer.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <string.h>

/* Returns the value, after a check that at most `size` bytes were written. */
static uint64_t
ask(CUpointer_attribute attribute, uint64_t address, size_t size)
{
	uint8_t data[16];
	uint64_t value = 0;

	memset(data, 0xab, sizeof(data));
	CU(gpc_cuPointerGetAttribute(data, attribute, address));
	for (size_t i = size; i < sizeof(data); i++)
		assert_int_equal(data[i], 0xab);
	memcpy(&value, data, size);
	return value;
}

static CUresult
refused(CUpointer_attribute attribute, uint64_t address)
{
	uint64_t data[2] = { 1, 1 };

	return gpc_cuPointerGetAttribute(data, attribute, address);
}

FAKE_WIRE_TEST(device_memory_says_what_it_is)
{
	CUdeviceptr device = fake_wire_alloc(1000), other = fake_wire_alloc(1);
	uint64_t at = device + 10;

	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_CONTEXT, at, 8),
			 (uintptr_t)fake.context->handle.token);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at, 4), CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at, 8), at);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at, 4), 3);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at, 8), device);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at, 8), 1000);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MAPPED, at, 4), 1);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_IS_MANAGED, at, 4), 0);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at, 8), 0);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at, 4), 3);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at, 8), 4 * FAKE_WIRE_MIB);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, at, 8),
			 ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, device, 8));
	assert_int_not_equal(ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, at, 8),
			     ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, other, 8));
	INVALID(refused(CU_POINTER_ATTRIBUTE_HOST_POINTER, at));
	assert_int_equal(refused(CU_POINTER_ATTRIBUTE_P2P_TOKENS, at), CUDA_ERROR_NOT_SUPPORTED);
	INVALID(refused((CUpointer_attribute)0, at));
	INVALID(refused((CUpointer_attribute)1000, at));
	INVALID(refused((CUpointer_attribute)-1, at));
}

FAKE_WIRE_TEST(a_buffers_id_is_not_used_again)
{
	CUdeviceptr device = fake_wire_alloc(1000);
	uint64_t id = ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, device, 8);

	CU(gpc_cuMemFree_v2(device));
	assert_int_equal(fake_wire_alloc(1000), device);
	assert_int_not_equal(ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, device, 8), id);
}

FAKE_WIRE_TEST(pinned_memory_says_what_it_is)
{
	uint8_t *host;
	uint64_t at;

	CU(gpc_cuMemHostAlloc((void **)&host, 5000, 0));
	at = (uintptr_t)host + 100;

	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at, 4), CU_MEMORYTYPE_HOST);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_HOST_POINTER, at, 8), at);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at, 4), 3);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at, 8), 5000);
	INVALID(refused(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at));
}

FAKE_WIRE_TEST(other_memory_is_unknown)
{
	CUdeviceptr device = fake_wire_alloc(1000);
	int local;

	INVALID(refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&local));
	INVALID(refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
	INVALID(refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 4096));
	CU(gpc_cuMemFree_v2(device));
	INVALID(refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
}

FAKE_WIRE_TEST(asking_for_many_attributes_of_unknown_memory_gets_defaults)
{
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_CONTEXT,
					     CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					     CU_POINTER_ATTRIBUTE_DEVICE_POINTER };
	CUcontext context = (CUcontext)(void *)&context;
	CUdeviceptr pointer = 1;
	unsigned int type = 9;
	int ordinal = 9;
	void *data[] = { &context, &type, &ordinal, &pointer };

	CU(gpc_cuPointerGetAttributes(4, attributes, data, (uintptr_t)&ordinal));
	assert_null(context);
	assert_int_equal(type, 0);
	assert_int_equal(ordinal, -2);
	assert_int_equal(pointer, 0);
	attributes[0] = CU_POINTER_ATTRIBUTE_HOST_POINTER;
	CU(gpc_cuPointerGetAttributes(1, attributes, data, (uintptr_t)&ordinal));
	assert_ptr_equal(context, &ordinal);
}

FAKE_WIRE_TEST(asking_for_many_attributes_answers_each)
{
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					     CU_POINTER_ATTRIBUTE_HOST_POINTER };
	CUdeviceptr device = fake_wire_alloc(100);
	unsigned int type = 9;
	int ordinal = 9;
	void *host = &ordinal;
	void *data[] = { &type, &ordinal, &host };

	CU(gpc_cuPointerGetAttributes(3, attributes, data, device));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ordinal, 3);
	assert_null(host);
	INVALID(gpc_cuPointerGetAttributes(0, attributes, data, device));
	INVALID(gpc_cuPointerGetAttributes(1, NULL, data, device));
	INVALID(gpc_cuPointerGetAttributes(1, attributes, NULL, device));
}

FAKE_WIRE_TEST(a_thread_without_a_context_gets_the_same_answers)
{
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE };
	CUdeviceptr device = fake_wire_alloc(1000);
	uint64_t pinned;
	unsigned int type = 9;
	void *host, *data[] = { &type };

	CU(gpc_cuMemHostAlloc(&host, 100, 0));
	pinned = (uintptr_t)host;
	fake.enter = CUDA_ERROR_INVALID_CONTEXT;
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device, 4), CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned, 4), CU_MEMORYTYPE_HOST);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_CONTEXT, pinned, 8),
			 (uintptr_t)fake.context->handle.token);
	INVALID(refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&host));
	CU(gpc_cuPointerGetAttributes(1, attributes, data, device));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	CU(gpc_cuPointerGetAttributes(1, attributes, data, (uintptr_t)&host));
	assert_int_equal(type, 0);
	fake.enter = CUDA_ERROR_NOT_INITIALIZED;
	assert_int_equal(refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device),
			 CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(gpc_cuPointerGetAttributes(1, attributes, data, device),
			 CUDA_ERROR_NOT_INITIALIZED);
	fake.enter = CUDA_SUCCESS;
	CU(gpc_cuMemFree_v2(device));
}

FAKE_WIRE_TEST(synchronous_memory_makes_its_copies_wait)
{
	CUdeviceptr device = fake_wire_alloc(100), other = fake_wire_alloc(100);
	const unsigned int on = 1, off = 0;

	CU(gpc_cuMemcpyDtoD_v2(other, device, 100));
	assert_int_equal(fake.syncs, 0);
	CU(gpc_cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device + 5));
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device, 4), 1);
	assert_int_equal(ask(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, other, 4), 0);
	CU(gpc_cuMemcpyDtoD_v2(other, device, 100));
	CU(gpc_cuMemsetD8_v2(device, 0, 100));
	assert_int_equal(fake.syncs, 2);
	CU(gpc_cuMemsetD8Async(device, 0, 100, FAKE_WIRE_STREAM));
	CU(gpc_cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
	CU(gpc_cuMemsetD8_v2(device, 0, 100));
	assert_int_equal(fake.syncs, 2);
	INVALID(gpc_cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
					  (uintptr_t)&device));
	INVALID(gpc_cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
	INVALID(gpc_cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
}

FAKE_WIRE_TEST(ranges_of_allocations_are_told)
{
	CUdeviceptr device = fake_wire_alloc(1000), base = 0;
	size_t size = 0;
	int local;

	CU(gpc_cuMemGetAddressRange_v2(&base, &size, device + 999));
	assert_int_equal(base, device);
	assert_int_equal(size, 1000);
	CU(gpc_cuMemGetAddressRange_v2(NULL, &size, device));
	CU(gpc_cuMemGetAddressRange_v2(&base, NULL, device));
	assert_int_equal(gpc_cuMemGetAddressRange_v2(&base, &size, (uintptr_t)&local),
			 CUDA_ERROR_NOT_FOUND);
}

UNIT_TEST_MAIN(NULL, NULL)
