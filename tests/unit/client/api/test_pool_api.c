/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as a program sees them: attributes, access, and how they are made and destroyed. */
#include "tests/unit/client/pool_fixture.h"

static void
pointers_know_their_pool(void **state)
{
	CUdeviceptr block = alloc(1000, NULL), plain = fake_alloc(10);
	CUmemoryPool pool;
	CUcontext context = (CUcontext)state;
	int ordinal;

	assert_int_equal(
		gpc_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block + 999),
		CUDA_SUCCESS);
	assert_ptr_equal(pool, default_pool());
	assert_int_equal(
		gpc_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain),
		CUDA_SUCCESS);
	assert_null(pool);
	assert_int_equal(
		gpc_cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block),
		CUDA_SUCCESS);
	assert_int_equal(ordinal, ORDINAL);
	assert_int_equal(gpc_cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block),
			 CUDA_ERROR_INVALID_VALUE);
	assert_null(context);
	assert_false(gpc_address_is_device(block, 1001));
	release(block, NULL);
	assert_int_equal(
		gpc_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block),
		CUDA_ERROR_INVALID_VALUE);
}

static void
a_pool_keeps_count_of_itself(void **state)
{
	CUmemoryPool pool = default_pool();
	CUdeviceptr block;

	set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
	set(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
	block = alloc(20 * FAKE_MIB - 100, NULL);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 20 * FAKE_MIB);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), fake_mapped());
	release(block, NULL);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 20 * FAKE_MIB);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), fake_mapped());
	set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
}

static void
attributes_are_checked(void **state)
{
	CUmemoryPool pool = default_pool();
	cuuint64_t one = 1;
	int flag = 5;

	assert_int_equal(
		gpc_cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag),
		CUDA_SUCCESS);
	assert_int_equal(flag, 1);
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &one),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &one),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, (CUmemPool_attribute)77, &one),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolGetAttribute((CUmemoryPool)state,
						   CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &one),
			 CUDA_ERROR_INVALID_VALUE);
}

static void
trimming_keeps_what_it_is_told_to(void **state)
{
	CUdeviceptr blocks[3];

	for (int i = 0; i < 3; i++)
		blocks[i] = alloc(40 * FAKE_MIB, NULL);
	for (int i = 0; i < 3; i++)
		release(blocks[i], NULL);
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(fake_mapped(), 120 * FAKE_MIB);
	fake.done = fake.posted;
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 50 * FAKE_MIB), CUDA_SUCCESS);
	assert_int_equal(fake_mapped(), 80 * FAKE_MIB);
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(fake_mapped(), 0);
	assert_int_equal(gpc_cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static void
a_destroyed_pool_lives_as_long_as_its_blocks(void **state)
{
	CUmemoryPool pool = create(0);
	CUdeviceptr first, second;

	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&first, FAKE_MIB, pool, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&second, FAKE_MIB, pool, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&first, FAKE_MIB, pool, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemsetD8_v2(second, 1, FAKE_MIB), CUDA_SUCCESS);
	release(first, NULL);
	assert_int_not_equal(fake_mapped(), 0);
	release(second, NULL);
	assert_int_equal(fake_mapped(), 0);

	pool = create(0);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(default_pool()), CUDA_ERROR_INVALID_VALUE);
}

static void
a_pool_does_not_grow_beyond_its_size(void **state)
{
	CUmemoryPool pool = create(10 * FAKE_MIB);
	CUdeviceptr first, second;

	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&first, 6 * FAKE_MIB, pool, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&second, 6 * FAKE_MIB, pool, NULL),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&second, 4 * FAKE_MIB, pool, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	release(first, NULL);
	release(second, NULL);
}

static void
a_device_has_a_current_pool(void **state)
{
	CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL };
	CUmemoryPool pool = create(0), found;
	CUdeviceptr block;

	assert_int_equal(gpc_cuDeviceGetMemPool(&found, ORDINAL), CUDA_SUCCESS);
	assert_ptr_equal(found, default_pool());
	assert_int_equal(gpc_cuDeviceSetMemPool(ORDINAL, pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemGetMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
			 CUDA_SUCCESS);
	assert_ptr_equal(found, pool);
	block = alloc(100, NULL);
	assert_int_equal(
		gpc_cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block),
		CUDA_SUCCESS);
	assert_ptr_equal(found, pool);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	release(block, NULL);
	assert_int_equal(gpc_cuDeviceGetMemPool(&found, ORDINAL), CUDA_SUCCESS);
	assert_ptr_equal(found, default_pool());
	assert_int_equal(gpc_cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, found),
			 CUDA_SUCCESS);

	assert_int_equal(gpc_cuDeviceSetMemPool(ORDINAL, pool), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceGetMemPool(&found, ORDINAL + 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(
		gpc_cuMemGetDefaultMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_MANAGED),
		CUDA_ERROR_NOT_SUPPORTED);
	location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(
		gpc_cuMemGetDefaultMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_ERROR_NOT_SUPPORTED);
}

static void
only_pools_of_device_memory_are_made(void **state)
{
	const CUmemPoolProps good = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
	};
	CUmemPoolProps props = good;
	CUmemoryPool pool;

	assert_int_equal(gpc_cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolCreate(NULL, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.id = ORDINAL + 1;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	/* Those no driver exports. */
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	props = good;
	props.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	props = good;
	props.reserved[3] = 1;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
}

static void
a_pools_own_device_has_access_and_no_other(void **state)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemAccess_flags flags;

	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, default_pool(), &access.location),
			 CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), &access, 1), CUDA_SUCCESS);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), &access, 1),
			 CUDA_ERROR_INVALID_VALUE);
	access.location.id = ORDINAL + 1;
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), &access, 1),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), NULL, 1), CUDA_ERROR_INVALID_VALUE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pointers_know_their_pool),
		TEST(a_pool_keeps_count_of_itself),
		TEST(attributes_are_checked),
		TEST(trimming_keeps_what_it_is_told_to),
		TEST(a_destroyed_pool_lives_as_long_as_its_blocks),
		TEST(a_pool_does_not_grow_beyond_its_size),
		TEST(a_device_has_a_current_pool),
		TEST(only_pools_of_device_memory_are_made),
		TEST(a_pools_own_device_has_access_and_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
