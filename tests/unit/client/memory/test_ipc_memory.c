/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/address.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/memory/pointer.h"
#include "gpc_calls.h"
#include "protocol/ipc_handle.h"
#include "tests/unit/client/fake_wire.h"

#include <string.h>

#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

static CUipcMemHandle
share(CUdeviceptr address)
{
	CUipcMemHandle handle;

	assert_int_equal(gpc_cuIpcGetMemHandle(&handle, address), CUDA_SUCCESS);
	return handle;
}

static CUdeviceptr
open_memory(CUipcMemHandle handle)
{
	CUdeviceptr address;

	assert_int_equal(gpc_cuIpcOpenMemHandle_v2(&address, handle, LAZY), CUDA_SUCCESS);
	return address;
}

/* Of another process. */
static CUipcMemHandle
foreign(uint64_t offset, uint64_t size)
{
	struct gp_ipc_handle handle = {
		.magic = GP_IPC_MAGIC,
		.kind = GP_IPC_MEMORY,
		.secret = { 1 },
		.mapping = FAKE_WIRE_GRANULE,
		.offset = offset,
		.size = size,
	};
	CUipcMemHandle bytes;

	memcpy(&bytes, &handle, sizeof(bytes));
	return bytes;
}

FAKE_WIRE_TEST(one_allocation_has_one_handle)
{
	CUdeviceptr large = fake_wire_alloc(2 * FAKE_WIRE_GRANULE), small = fake_wire_alloc(1000);
	CUipcMemHandle first = share(large), inside = share(large + 100), other = share(small);

	assert_memory_equal(&first, &inside, sizeof(first));
	assert_memory_not_equal(&first, &other, sizeof(first));
	assert_int_equal(fake.shares, 2);
	assert_int_equal(gpc_cuMemFree_v2(large), CUDA_SUCCESS);
	assert_int_equal(fake.shares, 1);
	INVALID(gpc_cuMemFree_v2(small + 512));
	assert_int_equal(fake.shares, 1);
	assert_int_equal(gpc_cuMemFree_v2(small), CUDA_SUCCESS);
	assert_int_equal(fake.shares, 0);
}

FAKE_WIRE_TEST(what_was_shared_is_not_kept)
{
	CUdeviceptr plain = fake_wire_alloc(2 * FAKE_WIRE_GRANULE),
		    shared = fake_wire_alloc(2 * FAKE_WIRE_GRANULE);
	int unmaps;

	(void)share(shared);
	unmaps = fake.unmaps;
	assert_int_equal(gpc_cuMemFree_v2(plain), CUDA_SUCCESS);
	assert_int_equal(fake.unmaps, unmaps);
	assert_int_equal(gpc_cuMemFree_v2(shared), CUDA_SUCCESS);
	assert_int_equal(fake.unmaps, unmaps + 1);
	/* Another one there is kept again. */
	plain = fake_wire_alloc(3 * FAKE_WIRE_GRANULE);
	assert_int_equal(gpc_cuMemFree_v2(plain), CUDA_SUCCESS);
	assert_int_equal(fake.unmaps, unmaps + 1);
}

FAKE_WIRE_TEST(copies_of_shared_memory_are_waited_for)
{
	CUdeviceptr plain = fake_wire_alloc(1000), shared = fake_wire_alloc(1000), opened;

	(void)share(shared);
	opened = open_memory(foreign(0, 1000));
	assert_true(gpc_pointer_is_synchronous(shared + 10));
	assert_true(gpc_pointer_is_synchronous(opened + 10));
	assert_false(gpc_pointer_is_synchronous(plain));
	assert_int_equal(gpc_cuIpcCloseMemHandle(opened), CUDA_SUCCESS);
}

FAKE_WIRE_TEST(only_plain_memory_is_shared)
{
	CUdeviceptr opened = open_memory(foreign(0, 1000)), pooled, plain = fake_wire_alloc(1000);
	CUipcMemHandle handle;
	int local, can;

	assert_int_equal(gpc_cuMemAllocAsync(&pooled, 1000, FAKE_WIRE_STREAM), CUDA_SUCCESS);
	INVALID(gpc_cuIpcGetMemHandle(&handle, opened));
	INVALID(gpc_cuIpcGetMemHandle(&handle, pooled));
	INVALID(gpc_cuIpcGetMemHandle(&handle, (uintptr_t)&local));
	INVALID(gpc_cuIpcGetMemHandle(&handle, 0));
	INVALID(gpc_cuIpcGetMemHandle(NULL, plain));
	for (int i = 0; i < 3; i++) {
		const CUdeviceptr each[] = { plain, pooled, opened };

		assert_int_equal(
			gpc_cuPointerGetAttribute(
				&can, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, each[i]),
			CUDA_SUCCESS);
		assert_int_equal(can, i == 0);
	}
	assert_int_equal(gpc_cuMemFree_v2(pooled), CUDA_SUCCESS);
	assert_int_equal(gpc_memory_reclaim(fake.context), CUDA_SUCCESS);
	assert_int_equal(gpc_cuIpcCloseMemHandle(opened), CUDA_SUCCESS);
}

FAKE_WIRE_TEST(memory_opened_twice_is_at_one_place)
{
	CUipcMemHandle handle = foreign(4096, 1000);
	CUdeviceptr address = open_memory(handle), base;
	size_t size;

	assert_int_equal(open_memory(handle), address);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(gpc_cuMemGetAddressRange_v2(&base, &size, address + 999), CUDA_SUCCESS);
	assert_int_equal(base, address);
	assert_int_equal(size, 1000);
	/* What lies beside it is another's. */
	assert_int_equal(gpc_cuMemGetAddressRange_v2(&base, &size, address + 1000),
			 CUDA_ERROR_NOT_FOUND);
	assert_int_equal(gpc_cuMemGetAddressRange_v2(&base, &size, address - 1),
			 CUDA_ERROR_NOT_FOUND);
	INVALID(gpc_cuMemFree_v2(address));
	INVALID(gpc_cuIpcCloseMemHandle(address + 1));
	assert_int_equal(gpc_cuIpcCloseMemHandle(address), CUDA_SUCCESS);
	assert_int_equal(fake.unmaps, 0);
	assert_int_equal(gpc_cuIpcCloseMemHandle(address), CUDA_SUCCESS);
	assert_int_equal(fake.unmaps, 1);
	INVALID(gpc_cuIpcCloseMemHandle(address));
}

FAKE_WIRE_TEST(what_makes_no_sense_is_not_asked_for)
{
	CUdeviceptr address;
	CUipcMemHandle nothing = { { 0 } }, good = foreign(0, 1000);

	INVALID(gpc_cuIpcOpenMemHandle_v2(NULL, good, LAZY));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, good, 0));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, good, LAZY | 2));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, nothing, LAZY));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, foreign(0, 0), LAZY));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, foreign(FAKE_WIRE_GRANULE, 1), LAZY));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, foreign(1, FAKE_WIRE_GRANULE), LAZY));
	INVALID(gpc_cuIpcOpenMemHandle_v2(&address, foreign(1, UINT64_MAX), LAZY));
	assert_int_equal(fake.opens, 0);
	fake.quota = 0;
	assert_int_equal(gpc_cuIpcOpenMemHandle_v2(&address, good, LAZY), CUDA_ERROR_OUT_OF_MEMORY);
}

FAKE_WIRE_TEST(a_context_takes_along_what_it_has)
{
	CUdeviceptr opened = open_memory(foreign(0, 1000));

	(void)share(fake_wire_alloc(1000));
	gpc_ipc_memory_drop_context(fake.context);
	assert_int_equal(fake.shares, 0);
	INVALID(gpc_cuIpcCloseMemHandle(opened));
}

UNIT_TEST_MAIN(NULL, NULL)
