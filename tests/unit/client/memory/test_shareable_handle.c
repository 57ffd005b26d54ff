/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/pointer.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ORDINAL 3 /* of the fake's device */
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static CUmemGenericAllocationHandle
create(unsigned int types)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = (CUmemAllocationHandleType)types,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
	};
	CUmemGenericAllocationHandle handle;

	CU(gpc_cuMemCreate(&handle, FAKE_WIRE_GRANULE, &prop, 0));
	return handle;
}

static CUresult
import_from(CUmemGenericAllocationHandle *handle, int fd)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return gpc_cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd, FD);
}

FAKE_WIRE_TEST(a_descriptor_brings_the_memory)
{
	CUmemGenericAllocationHandle handle = create(FD), other;
	CUmemAllocationProp prop;
	int fd;

	CU(gpc_cuMemExportToShareableHandle(&fd, handle, FD, 0));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CU(import_from(&other, fd));
	CU(gpc_cuMemGetAllocationPropertiesFromHandle(&prop, other));
	assert_int_equal(prop.location.id, ORDINAL);
	assert_int_equal(prop.requestedHandleTypes, FD);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(close(fd), 0);
	/* Nothing of it is kept for others. */
	CU(gpc_cuMemRelease(other));
	assert_int_equal(fake.mapped, FAKE_WIRE_GRANULE);
	CU(gpc_cuMemRelease(handle));
	assert_int_equal(fake.mapped, 0);
	assert_int_equal(fake.shares, 0);
}

FAKE_WIRE_TEST(each_export_is_a_descriptor_of_one_share)
{
	CUmemGenericAllocationHandle handle = create(FD);
	int first, second;

	CU(gpc_cuMemExportToShareableHandle(&first, handle, FD, 0));
	CU(gpc_cuMemExportToShareableHandle(&second, handle, FD, 0));
	assert_int_not_equal(first, second);
	assert_int_equal(fake.shares, 1);
	assert_int_equal(ftruncate(first, 0), -1);
	assert_int_equal(pwrite(first, "x", 1, 0), -1);
	(void)close(first);
	(void)close(second);
	CU(gpc_cuMemRelease(handle));
}

FAKE_WIRE_TEST(what_is_no_such_descriptor_is_refused)
{
	CUmemGenericAllocationHandle handle = create(FD), plain = create(0), other;
	uint8_t zeros[64] = { 0 };
	int fd = memfd_create("test", MFD_ALLOW_SEALING), exported, ends[2];

	assert_int_equal(pipe(ends), 0);
	INVALID(import_from(&other, -1));
	INVALID(import_from(&other, ends[0]));
	INVALID(import_from(&other, fd));
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	INVALID(import_from(&other, fd));
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
		0);
	INVALID(import_from(&other, fd));
	INVALID(gpc_cuMemExportToShareableHandle(&exported, plain, FD, 0));
	INVALID(gpc_cuMemExportToShareableHandle(&exported, handle, FD, 1));
	INVALID(gpc_cuMemExportToShareableHandle(NULL, handle, FD, 0));
	INVALID(gpc_cuMemExportToShareableHandle(&exported, handle, CU_MEM_HANDLE_TYPE_WIN32, 0));
	INVALID(gpc_cuMemExportToShareableHandle(&exported, 0, FD, 0));
	assert_int_equal(
		gpc_cuMemExportToShareableHandle(&exported, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fake.opens + fake.shares, 0);
	(void)close(fd);
	(void)close(ends[0]);
	(void)close(ends[1]);
	CU(gpc_cuMemRelease(handle));
	CU(gpc_cuMemRelease(plain));
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(copies_of_shared_memory_are_waited_for)
{
	const CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle handle = create(FD);
	unsigned long long types = 0;
	CUdeviceptr base;
	int fd;

	CU(gpc_cuMemAddressReserve(&base, FAKE_WIRE_GRANULE, 0, 0, 0));
	CU(gpc_cuMemMap(base, FAKE_WIRE_GRANULE, 0, handle, 0));
	CU(gpc_cuMemSetAccess(base, FAKE_WIRE_GRANULE, &access, 1));
	assert_false(gpc_pointer_is_synchronous(base));
	CU(gpc_cuMemExportToShareableHandle(&fd, handle, FD, 0));
	assert_true(gpc_pointer_is_synchronous(base));
	CU(gpc_cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, base));
	assert_int_equal(types, FD);
	(void)close(fd);
	CU(gpc_cuMemRelease(handle));
	CU(gpc_cuMemUnmap(base, FAKE_WIRE_GRANULE));
	CU(gpc_cuMemAddressFree(base, FAKE_WIRE_GRANULE));
}

static CUmemoryPool
create_pool(unsigned int types)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = (CUmemAllocationHandleType)types,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
	};
	CUmemoryPool pool;

	CU(gpc_cuMemPoolCreate(&pool, &props));
	return pool;
}

/* The same pool once more: the fake does not tell processes apart. */
static CUmemoryPool
imported(CUmemoryPool pool)
{
	CUmemoryPool other;
	int fd;

	CU(gpc_cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	CU(gpc_cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd, FD, 0));
	assert_int_equal(close(fd), 0);
	return other;
}

static CUdeviceptr
alloc_from(CUmemoryPool pool, size_t size)
{
	CUdeviceptr block;

	CU(gpc_cuMemAllocFromPoolAsync(&block, size, pool, NULL));
	return block;
}

FAKE_WIRE_TEST(pointers_of_one_mapping_are_mapped_once)
{
	CUmemoryPool pool = create_pool(FD), other = imported(pool), found;
	CUdeviceptr first = alloc_from(pool, 1000), second = alloc_from(pool, 2000), a, b, again;
	CUmemPoolPtrExportData data[2];
	size_t size;

	assert_false(gpc_pointer_is_synchronous(first));
	CU(gpc_cuMemPoolExportPointer(&data[0], first));
	CU(gpc_cuMemPoolExportPointer(&data[1], second));
	assert_int_equal(fake.shares, 2); /* the pool, and its mapping */
	assert_true(gpc_pointer_is_synchronous(second));
	CU(gpc_cuMemPoolImportPointer(&a, other, &data[0]));
	CU(gpc_cuMemPoolImportPointer(&b, other, &data[1]));
	CU(gpc_cuMemPoolImportPointer(&again, other, &data[1]));
	assert_int_equal(fake.opens, 1);
	assert_int_equal(b - a, second - first);
	assert_int_equal(again, b);
	CU(gpc_cuMemGetAddressRange_v2(&again, &size, b + 1999));
	assert_int_equal(again, b);
	assert_int_equal(size, 2000);
	CU(gpc_cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a));
	assert_ptr_equal(found, other);
	assert_true(gpc_pointer_is_synchronous(a));

	/* The mapping goes with its last pointer, and holds the pool for so long. */
	CU(gpc_cuMemFree_v2(a));
	INVALID(gpc_cuMemFree_v2(a));
	CU(gpc_cuMemPoolDestroy(other));
	CU(gpc_cuMemFreeAsync(b, NULL));
	INVALID(gpc_cuMemFreeAsync(b, NULL));
	CU(gpc_cuMemFreeAsync(first, NULL));
	CU(gpc_cuMemFreeAsync(second, NULL));
	CU(gpc_cuMemPoolDestroy(pool));
	assert_int_equal(fake.shares, 0);
	assert_int_equal(fake.mapped, 0);
}

FAKE_WIRE_TEST(a_pool_is_for_others_only_if_it_was_made_so)
{
	CUmemoryPool pool = create_pool(FD), plain = create_pool(0), none, other;
	CUdeviceptr block = alloc_from(plain, 1000), shared = alloc_from(pool, 1000), at;
	CUmemGenericAllocationHandle memory = create(FD);
	CUmemPoolPtrExportData data, bad;
	int fd;

	INVALID(gpc_cuMemPoolExportPointer(&data, shared));
	other = imported(pool);
	INVALID(gpc_cuMemPoolExportToShareableHandle(&fd, plain, FD, 0));
	INVALID(gpc_cuMemPoolExportToShareableHandle(&fd, other, FD, 0));
	INVALID(gpc_cuMemPoolExportToShareableHandle(&fd, pool, FD, 1));
	INVALID(gpc_cuMemPoolExportToShareableHandle(NULL, pool, FD, 0));
	INVALID(gpc_cuMemPoolExportToShareableHandle(&fd, NULL, FD, 0));
	assert_int_equal(
		gpc_cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	INVALID(gpc_cuMemPoolExportPointer(&data, block));
	INVALID(gpc_cuMemPoolExportPointer(&data, shared + 1));
	INVALID(gpc_cuMemPoolExportPointer(NULL, shared));
	CU(gpc_cuMemPoolExportPointer(&data, shared));
	INVALID(gpc_cuMemPoolImportPointer(&at, pool, &data));
	INVALID(gpc_cuMemPoolImportPointer(&at, NULL, &data));
	INVALID(gpc_cuMemPoolImportPointer(NULL, other, &data));
	for (size_t i = 0; i < sizeof(data); i++) {
		memset(&bad, 0xff, sizeof(bad));
		memcpy(&bad, &data, i);
		INVALID(gpc_cuMemPoolImportPointer(&at, other, &bad));
	}
	INVALID(gpc_cuMemAllocFromPoolAsync(&at, 1000, other, NULL));
	INVALID(gpc_cuDeviceSetMemPool(ORDINAL, other));
	CU(gpc_cuMemExportToShareableHandle(&fd, memory, FD, 0));
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	INVALID(gpc_cuMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)fd, FD, 0));
	assert_int_equal(close(fd), 0);
	assert_int_equal(fake.opens, 0);
	CU(gpc_cuMemRelease(memory));
	CU(gpc_cuMemFreeAsync(block, NULL));
	CU(gpc_cuMemFreeAsync(shared, NULL));
	CU(gpc_cuMemPoolDestroy(plain));
	CU(gpc_cuMemPoolDestroy(pool));
	CU(gpc_cuMemPoolDestroy(other));
	assert_int_equal(fake.shares, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
