/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/coherence.h"
#include "client/host/host_block.h"
#include "client/memory/address.h"
#include "client/memory/physical_memory.h"
#include "client/memory/pool.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <string.h>
#include <sys/mman.h>

#define ORDINAL 3 /* of the fake's device */
#define RESERVED (16 * FAKE_WIRE_GRANULE)

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
};
static const CUmemAccessDesc both_ways = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static CUdeviceptr
reserve(size_t size)
{
	CUdeviceptr base;

	assert_int_equal(gpc_cuMemAddressReserve(&base, size, 0, 0, 0), CUDA_SUCCESS);
	assert_int_equal(base % FAKE_WIRE_GRANULE, 0);
	return base;
}

static CUmemGenericAllocationHandle
create(size_t size)
{
	CUmemGenericAllocationHandle handle;

	assert_int_equal(gpc_cuMemCreate(&handle, size, &prop, 0), CUDA_SUCCESS);
	return handle;
}

static void
map(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle handle)
{
	assert_int_equal(gpc_cuMemMap(at, size, 0, handle, 0), CUDA_SUCCESS);
}

static void
give_access(CUdeviceptr at, size_t size)
{
	assert_int_equal(gpc_cuMemSetAccess(at, size, &both_ways, 1), CUDA_SUCCESS);
}

static void
give_back(CUdeviceptr base, size_t mapped, size_t size)
{
	if (mapped > 0)
		assert_int_equal(gpc_cuMemUnmap(base, mapped), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAddressFree(base, size), CUDA_SUCCESS);
}

FAKE_WIRE_TEST(memory_counts_from_its_making_until_its_last_use)
{
	CUmemGenericAllocationHandle handle = create(2 * FAKE_WIRE_GRANULE);
	CUdeviceptr base = reserve(RESERVED);

	assert_int_equal(fake_wire_mapped(), 2 * FAKE_WIRE_GRANULE);
	map(base, 2 * FAKE_WIRE_GRANULE, handle);
	map(base + 4 * FAKE_WIRE_GRANULE, 2 * FAKE_WIRE_GRANULE, handle);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemUnmap(base, 2 * FAKE_WIRE_GRANULE), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 2 * FAKE_WIRE_GRANULE);
	assert_int_equal(gpc_cuMemUnmap(base + 4 * FAKE_WIRE_GRANULE, 2 * FAKE_WIRE_GRANULE),
			 CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
	give_back(base, 0, RESERVED);
}

FAKE_WIRE_TEST(what_was_released_is_had_again)
{
	CUmemGenericAllocationHandle first = create(2 * FAKE_WIRE_GRANULE);
	CUdeviceptr base = reserve(RESERVED);

	for (int i = 0; i < 10; i++) {
		map(base, 2 * FAKE_WIRE_GRANULE, first);
		assert_int_equal(gpc_cuMemUnmap(base, 2 * FAKE_WIRE_GRANULE), CUDA_SUCCESS);
		assert_int_equal(gpc_cuMemRelease(first), CUDA_SUCCESS);
		assert_int_equal(gpc_cuMemMap(base, 2 * FAKE_WIRE_GRANULE, 0, first, 0),
				 CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(create(2 * FAKE_WIRE_GRANULE), first);
		assert_int_equal(fake.mapped, 2 * FAKE_WIRE_GRANULE);
	}
	assert_int_equal(gpc_cuMemMap(base, FAKE_WIRE_GRANULE, 0, first, 0),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpc_cuMemRelease(first), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
	give_back(base, 0, RESERVED);
}

FAKE_WIRE_TEST(a_released_handle_is_none_until_it_is_retained)
{
	CUmemGenericAllocationHandle handle = create(FAKE_WIRE_GRANULE), same;
	CUmemAllocationProp found;
	CUdeviceptr base = reserve(RESERVED);

	map(base, FAKE_WIRE_GRANULE, handle);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemGetAllocationPropertiesFromHandle(&found, handle),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemMap(base + FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE, 0, handle, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(base + 9)),
			 CUDA_SUCCESS);
	assert_int_equal(same, handle);
	give_back(base, FAKE_WIRE_GRANULE, RESERVED);
	assert_int_equal(gpc_cuMemGetAllocationPropertiesFromHandle(&found, handle), CUDA_SUCCESS);
	assert_int_equal(found.location.id, ORDINAL);
	assert_int_equal(fake_wire_mapped(), FAKE_WIRE_GRANULE);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)base),
			 CUDA_ERROR_INVALID_VALUE);
}

FAKE_WIRE_TEST(memory_is_accessible_when_access_was_given)
{
	CUmemGenericAllocationHandle handle = create(FAKE_WIRE_GRANULE);
	CUdeviceptr base = reserve(RESERVED);
	unsigned long long flags;
	struct gpc_address found;

	assert_int_equal(gpc_cuMemGetAccess(&flags, &both_ways.location, base),
			 CUDA_ERROR_INVALID_VALUE);
	map(base, FAKE_WIRE_GRANULE, handle);
	assert_int_equal(gpc_cuMemGetAccess(&flags, &both_ways.location, base), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	assert_int_equal(gpc_cuMemsetD8_v2(base, 1, 10), CUDA_ERROR_INVALID_VALUE);
	give_access(base, FAKE_WIRE_GRANULE);
	assert_int_equal(gpc_cuMemGetAccess(&flags, &both_ways.location, base), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_int_equal(gpc_cuMemsetD8_v2(base, 1, FAKE_WIRE_GRANULE), CUDA_SUCCESS);
	gpc_address_lookup(base + FAKE_WIRE_GRANULE, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	give_back(base, FAKE_WIRE_GRANULE, RESERVED);
	gpc_address_lookup(base, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
}

FAKE_WIRE_TEST(access_is_given_to_the_device_itself_and_to_all_that_is_named)
{
	CUmemGenericAllocationHandle handle = create(FAKE_WIRE_GRANULE);
	CUmemAccessDesc access = both_ways;
	CUdeviceptr base = reserve(RESERVED);

	map(base, FAKE_WIRE_GRANULE, handle);
	assert_int_equal(gpc_cuMemSetAccess(base, 2 * FAKE_WIRE_GRANULE, &access, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE / 2, &access, 1),
			 CUDA_ERROR_INVALID_VALUE);
	access.location.id = ORDINAL + 1;
	assert_int_equal(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE, &access, 1),
			 CUDA_ERROR_INVALID_DEVICE);
	access = both_ways;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	assert_int_equal(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE, &access, 1),
			 CUDA_ERROR_NOT_SUPPORTED);
	access.location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE, &access, 1),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	give_back(base, FAKE_WIRE_GRANULE, RESERVED);
}

FAKE_WIRE_TEST(neighbouring_mappings_are_one_piece_of_memory)
{
	CUdeviceptr base = reserve(RESERVED);
	struct gpc_address found;
	CUcontext context;

	for (int i = 0; i < 5; i++) {
		CUmemGenericAllocationHandle handle = create(FAKE_WIRE_GRANULE);

		map(base + i * FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE, handle);
		if (i != 3)
			give_access(base + i * FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE);
		assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	}
	assert_true(gpc_address_is_device(base, 3 * FAKE_WIRE_GRANULE));
	assert_true(gpc_address_is_device(base + FAKE_WIRE_GRANULE + 5, 2 * FAKE_WIRE_GRANULE - 5));
	assert_false(gpc_address_is_device(base, 4 * FAKE_WIRE_GRANULE));
	give_access(base, 5 * FAKE_WIRE_GRANULE);
	assert_true(gpc_address_is_device(base, 5 * FAKE_WIRE_GRANULE));
	gpc_address_lookup(base + 2 * FAKE_WIRE_GRANULE, &found);
	assert_int_equal(found.mapping_base, base + 2 * FAKE_WIRE_GRANULE);
	assert_int_equal(gpc_cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, base),
			 CUDA_ERROR_INVALID_VALUE);
	give_back(base, 5 * FAKE_WIRE_GRANULE, RESERVED);
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(what_does_not_fit_is_refused)
{
	CUmemGenericAllocationHandle handle = create(2 * FAKE_WIRE_GRANULE), other;
	CUdeviceptr base = reserve(RESERVED), plain = fake_wire_alloc(4 * FAKE_WIRE_MIB);
	CUmemAllocationProp wrong = prop;

	map(base, 2 * FAKE_WIRE_GRANULE, handle);
	assert_int_equal(gpc_cuMemMap(base + FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE, 0, handle, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_cuMemMap(base + 4 * FAKE_WIRE_GRANULE, 3 * FAKE_WIRE_GRANULE, 0, handle, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(
		gpc_cuMemMap(base + 4 * FAKE_WIRE_GRANULE + 4096, FAKE_WIRE_GRANULE, 0, handle, 0),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemMap(base + RESERVED - FAKE_WIRE_GRANULE, 2 * FAKE_WIRE_GRANULE, 0,
				      handle, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemMap(plain, FAKE_WIRE_GRANULE, 0, handle, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemMap(base + 4 * FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE, 0, 77, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemMap(base + 4 * FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE,
				      FAKE_WIRE_GRANULE, handle, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemUnmap(base, FAKE_WIRE_GRANULE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemUnmap(base, 3 * FAKE_WIRE_GRANULE), CUDA_ERROR_INVALID_VALUE);
	/* Where nothing is mapped there is nothing to do. */
	assert_int_equal(gpc_cuMemUnmap(base + 4 * FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemUnmap(base + 4 * FAKE_WIRE_GRANULE, RESERVED),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemUnmap(plain, 4 * FAKE_WIRE_MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAddressFree(base, RESERVED), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFree_v2(base), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemUnmap(base, 2 * FAKE_WIRE_GRANULE), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAddressFree(base, FAKE_WIRE_GRANULE), CUDA_ERROR_INVALID_VALUE);
	give_back(base, 0, RESERVED);

	assert_int_equal(gpc_cuMemCreate(&other, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemCreate(&other, 2 * FAKE_WIRE_WINDOW, &prop, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	wrong.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	assert_int_equal(gpc_cuMemCreate(&other, FAKE_WIRE_GRANULE, &wrong, 0),
			 CUDA_ERROR_NOT_SUPPORTED);
	wrong = prop;
	wrong.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	assert_int_equal(gpc_cuMemCreate(&other, FAKE_WIRE_GRANULE, &wrong, 0),
			 CUDA_ERROR_NOT_SUPPORTED);
	wrong.location.id = -1;
	assert_int_equal(gpc_cuMemCreate(&other, FAKE_WIRE_GRANULE, &wrong, 0),
			 CUDA_ERROR_INVALID_VALUE);
	wrong.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	assert_int_equal(gpc_cuMemCreate(&other, FAKE_WIRE_GRANULE, &wrong, 0),
			 CUDA_ERROR_INVALID_VALUE);
	wrong.location.type = CU_MEM_LOCATION_TYPE_HOST;
	wrong.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	assert_int_equal(gpc_cuMemCreate(&other, FAKE_WIRE_GRANULE, &wrong, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAddressReserve(&base, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAddressReserve(&base, 4096, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

FAKE_WIRE_TEST(reservations_are_aligned_as_wished)
{
	CUdeviceptr base;

	for (size_t alignment = 4096; alignment <= 64 * FAKE_WIRE_MIB; alignment *= 2) {
		assert_int_equal(gpc_cuMemAddressReserve(&base, 4096, alignment, 0, 0),
				 CUDA_SUCCESS);
		assert_int_equal(base % alignment, 0);
		give_back(base, 0, 4096);
	}
}

FAKE_WIRE_TEST(large_reservations_lie_besides_the_window)
{
	const size_t size = 8 * FAKE_WIRE_WINDOW;
	CUmemGenericAllocationHandle handle = create(FAKE_WIRE_GRANULE);
	void *taken;
	CUdeviceptr base;

	/* This process has something where the daemon would like it to be. */
	taken = mmap((void *)(uintptr_t)FAKE_WIRE_BESIDES, 4096, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_int_equal((uintptr_t)taken, FAKE_WIRE_BESIDES);
	base = reserve(size);
	assert_false(base >= fake.window && base < fake.window + FAKE_WIRE_WINDOW);
	assert_int_equal(fake.reserves, 2);
	assert_int_equal(fake.reserved, 1);
	map(base + size - FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE, handle);
	give_access(base + size - FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE);
	assert_true(gpc_address_is_device(base + size - FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE));
	assert_false(gpc_address_is_device(base, 1));
	assert_int_equal(gpc_cuMemUnmap(base + size - FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE),
			 CUDA_SUCCESS);
	give_back(base, 0, size);
	assert_int_equal(fake.reserved, 0);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	(void)munmap(taken, 4096);
}

FAKE_WIRE_TEST(what_pools_keep_is_given_back_for_it)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr block;

	fake.quota = 20 * FAKE_WIRE_MIB;
	assert_int_equal(gpc_cuMemAllocAsync(&block, 16 * FAKE_WIRE_MIB, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemCreate(&handle, 18 * FAKE_WIRE_MIB, &prop, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemFreeAsync(block, NULL), CUDA_SUCCESS);
	handle = create(20 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
}

FAKE_WIRE_TEST(the_granularity_is_the_daemons)
{
	size_t granularity;

	assert_int_equal(gpc_cuMemGetAllocationGranularity(&granularity, &prop,
							   CU_MEM_ALLOC_GRANULARITY_MINIMUM),
			 CUDA_SUCCESS);
	assert_int_equal(granularity, FAKE_WIRE_GRANULE);
	assert_int_equal(gpc_cuMemGetAllocationGranularity(&granularity, NULL,
							   CU_MEM_ALLOC_GRANULARITY_MINIMUM),
			 CUDA_ERROR_INVALID_VALUE);
}

static const CUmemAllocationProp host_prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
};

static CUmemGenericAllocationHandle
create_host(size_t size)
{
	CUmemGenericAllocationHandle handle;

	assert_int_equal(gpc_cuMemCreate(&handle, size, &host_prop, 0), CUDA_SUCCESS);
	return handle;
}

static CUresult
give_host(CUdeviceptr at, size_t size, CUmemAccess_flags flags)
{
	const CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
					 .flags = flags };

	return gpc_cuMemSetAccess(at, size, &access, 1);
}

static uint8_t *
bytes(CUdeviceptr at)
{
	return (uint8_t *)(uintptr_t)at;
}

FAKE_WIRE_TEST(host_memory_is_at_one_address_for_both_sides)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr base = reserve(RESERVED);
	unsigned long long flags;
	struct gpc_address found;
	size_t granularity;

	assert_int_equal(gpc_cuMemGetAllocationGranularity(&granularity, &host_prop,
							   CU_MEM_ALLOC_GRANULARITY_MINIMUM),
			 CUDA_SUCCESS);
	assert_int_equal(granularity, FAKE_WIRE_GRANULE);
	fake_wire_allow_host();
	handle = create_host(2 * FAKE_WIRE_GRANULE);
	map(base, 2 * FAKE_WIRE_GRANULE, handle);
	gpc_address_lookup(base, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
	assert_int_equal(give_host(base, 2 * FAKE_WIRE_GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
			 CUDA_SUCCESS);
	memset(bytes(base), 7, 100);
	assert_int_equal(fake_wire_host_mapped(), 0);
	give_access(base, 2 * FAKE_WIRE_GRANULE);
	assert_int_equal(fake_wire_host_mapped(), 2 * FAKE_WIRE_GRANULE);
	assert_int_equal(*fake_wire_host_at(base + 99), 7);
	gpc_address_lookup(base + 99, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_HOST);
	assert_int_equal(found.device, base);
	assert_int_equal(found.size, 2 * FAKE_WIRE_GRANULE);
	assert_true(found.device_mapped);
	assert_int_equal(gpc_cuMemGetAccess(&flags, &host_prop.location, base), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* What a kernel has written comes here. */
	*fake_wire_host_at(base + 5000) = 9;
	fake.posted++;
	assert_int_equal(gpc_coherence_fetch(fake.context->scope.session), CUDA_SUCCESS);
	assert_int_equal(bytes(base)[5000], 9);
	assert_int_equal(gpc_cuMemFreeHost(bytes(base)), CUDA_ERROR_INVALID_VALUE);
	gpc_host_block_drop_context(fake.context);
	assert_int_equal(bytes(base)[5000], 9);
	/* It stays the memory's wherever that is mapped. */
	assert_int_equal(gpc_cuMemUnmap(base, 2 * FAKE_WIRE_GRANULE), CUDA_SUCCESS);
	assert_int_equal(fake_wire_host_mapped(), 0);
	map(base + 4 * FAKE_WIRE_GRANULE, 2 * FAKE_WIRE_GRANULE, handle);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	give_access(base + 4 * FAKE_WIRE_GRANULE, 2 * FAKE_WIRE_GRANULE);
	assert_int_equal(*fake_wire_host_at(base + 4 * FAKE_WIRE_GRANULE + 5000), 9);
	assert_int_equal(gpc_cuMemUnmap(base + 4 * FAKE_WIRE_GRANULE, 2 * FAKE_WIRE_GRANULE),
			 CUDA_SUCCESS);
	give_back(base, 0, RESERVED);
	assert_int_equal(fake_wire_host_mapped(), 0);
	assert_int_equal(fake_wire_mapped(), 0);
	fake_wire_forbid_host();
}

FAKE_WIRE_TEST(host_memory_that_cannot_be_is_refused)
{
	CUmemGenericAllocationHandle handle, other, device = create(FAKE_WIRE_GRANULE);
	CUmemAccessDesc access = both_ways;
	CUdeviceptr base = reserve(RESERVED);
	struct gpc_address found;

	fake_wire_allow_host();
	assert_int_equal(gpc_cuMemCreate(&handle, 4096, &host_prop, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemCreate(&handle, (size_t)1 << 60, &host_prop, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	handle = create_host(FAKE_WIRE_GRANULE);
	map(base, FAKE_WIRE_GRANULE, handle);
	map(base + FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE, device);
	assert_int_equal(gpc_cuMemMap(base, FAKE_WIRE_GRANULE, 0, handle, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(give_host(base, FAKE_WIRE_GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READ),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(give_host(base, FAKE_WIRE_GRANULE, (CUmemAccess_flags)77),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(give_host(base + FAKE_WIRE_GRANULE, FAKE_WIRE_GRANULE,
				   CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
			 CUDA_ERROR_NOT_SUPPORTED);
	access.location.id = ORDINAL + 1;
	assert_int_equal(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE, &access, 1),
			 CUDA_ERROR_INVALID_VALUE);
	/* Past the quota there is none that kernels reach, and the program's stays. */
	fake.host_quota = 0;
	assert_int_equal(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE, &both_ways, 1),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(give_host(base, FAKE_WIRE_GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
			 CUDA_SUCCESS);
	bytes(base)[1] = 1;
	assert_int_equal(give_host(base, FAKE_WIRE_GRANULE, CU_MEM_ACCESS_FLAGS_PROT_NONE),
			 CUDA_SUCCESS);
	gpc_address_lookup(base, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
	assert_int_equal(gpc_cuMemUnmap(base, 2 * FAKE_WIRE_GRANULE), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemRelease(device), CUDA_SUCCESS);
	assert_int_equal(gpc_physical_open_host(-1, &other), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_physical_open_host(0, &other), CUDA_ERROR_INVALID_VALUE);
	give_back(base, 0, RESERVED);
	fake_wire_forbid_host();
}

UNIT_TEST_MAIN(NULL, NULL)
