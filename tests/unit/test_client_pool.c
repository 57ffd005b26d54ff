/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory.h"
#include "client/pool.h"
#include "client_fake.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <string.h>

#define ORDINAL 3 /* of the fake's device */

/* No pool but the default one is left of a test, and nothing in it. */
static int
teardown(void **state)
{
	CUmemoryPool pool;

	fake.enter = CUDA_SUCCESS;
	fake.done = fake.posted;
	fake_deliver();
	assert_int_equal(gpc_cuDeviceGetDefaultMemPool(&pool, ORDINAL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
						   &(cuuint64_t){ 0 }),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
	return fake_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, teardown)

static CUdeviceptr
alloc(size_t size, CUstream stream)
{
	CUdeviceptr address = 0;

	assert_int_equal(gpc_cuMemAllocAsync(&address, size, stream), CUDA_SUCCESS);
	return address;
}

/* With work before it, so that the block waits. */
static void
release(CUdeviceptr address, CUstream stream)
{
	fake.posted++;
	assert_int_equal(gpc_cuMemFreeAsync(address, stream), CUDA_SUCCESS);
}

static CUmemoryPool
default_pool(void)
{
	CUmemoryPool pool;

	assert_int_equal(gpc_cuDeviceGetDefaultMemPool(&pool, ORDINAL), CUDA_SUCCESS);
	return pool;
}

static CUmemoryPool
create(size_t max_size)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.maxSize = max_size,
	};
	CUmemoryPool pool;

	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	return pool;
}

static uint64_t
get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value;

	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
	return value;
}

static void
set(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, attribute, &value), CUDA_SUCCESS);
}

static void
set_flag(CUmemoryPool pool, CUmemPool_attribute attribute, int on)
{
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, attribute, &on), CUDA_SUCCESS);
}

/* What cuStreamSynchronize does behind the wire. */
static void
synchronize(const struct gpc_stream *stream)
{
	gpc_pool_stream_done(stream, gpc_pool_frees());
}

static void
blocks_need_one_round_trip_for_many(void **state)
{
	CUdeviceptr blocks[100];

	for (int i = 0; i < 100; i++) {
		blocks[i] = alloc(30000, NULL);
		assert_int_equal(blocks[i] % 512, 0);
		assert_int_equal(gpc_cuMemsetD8_v2(blocks[i], (unsigned char)i, 30000),
				 CUDA_SUCCESS);
	}
	assert_int_equal(fake.maps, 1);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(*fake_at(blocks[i]), i);
		assert_int_equal(*fake_at(blocks[i] + 29999), i);
		release(blocks[i], NULL);
	}
	assert_int_equal(fake.unmaps, 0);
}

static void
large_blocks_are_cut_from_one_mapping(void **state)
{
	CUdeviceptr first = alloc(40 * FAKE_MIB, NULL), second;

	release(first, NULL);
	second = alloc(18 * FAKE_MIB, NULL);
	assert_int_equal(second, first);
	assert_int_equal(alloc(20 * FAKE_MIB, NULL), first + 18 * FAKE_MIB);
	assert_int_equal(fake.maps, 1);
	assert_int_equal(gpc_cuMemFreeAsync(first, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFreeAsync(first + 18 * FAKE_MIB, NULL), CUDA_SUCCESS);
}

static void
the_stream_that_freed_has_the_memory_again_at_once(void **state)
{
	CUdeviceptr block = alloc(FAKE_MIB, FAKE_STREAM);

	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 1000; i++) {
		release(block, FAKE_STREAM);
		assert_int_equal(alloc(FAKE_MIB, FAKE_STREAM), block);
	}
	assert_int_equal(fake.fences, 0);
	release(block, FAKE_STREAM);
}

static void
the_rest_of_a_freed_block_stays_the_streams(void **state)
{
	CUdeviceptr block = alloc(3 * FAKE_MIB, FAKE_STREAM), other;

	fake.lazy = true;
	fake.busy = true;
	release(block, FAKE_STREAM);
	assert_int_equal(alloc(FAKE_MIB, FAKE_STREAM), block);
	other = alloc(2 * FAKE_MIB, NULL);
	assert_true(other < block || other >= block + 3 * FAKE_MIB);
	assert_int_equal(alloc(2 * FAKE_MIB, FAKE_STREAM), block + FAKE_MIB);
	release(block, NULL);
	release(block + FAKE_MIB, NULL);
	release(other, NULL);
}

static void
another_stream_has_it_when_the_work_is_known_to_be_done(void **state)
{
	CUdeviceptr block = alloc(FAKE_MIB, FAKE_STREAM), others[8];
	bool found = false;

	release(block, FAKE_STREAM);
	for (int i = 0; i < 3; i++) {
		others[i] = alloc(FAKE_MIB, NULL);
		assert_int_not_equal(others[i], block);
	}
	fake.done = fake.posted;
	for (int i = 3; i < 8; i++) {
		others[i] = alloc(FAKE_MIB, NULL);
		found |= others[i] == block;
	}
	assert_true(found);
	for (int i = 0; i < 8; i++)
		release(others[i], NULL);
}

static void
synchronising_its_stream_makes_memory_anybodys(void **state)
{
	CUdeviceptr block = alloc(48 * FAKE_MIB, FAKE_STREAM), other;

	fake.lazy = true;
	fake.busy = true;
	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	release(block, FAKE_STREAM);
	synchronize(fake.legacy);
	other = alloc(48 * FAKE_MIB, NULL);
	assert_int_not_equal(other, block);
	synchronize(fake.stream);
	assert_int_equal(alloc(48 * FAKE_MIB, NULL), block);
	release(other, NULL);
	release(block, NULL);
}

static void
a_synchronisation_says_nothing_of_later_frees(void **state)
{
	CUdeviceptr block = alloc(48 * FAKE_MIB, FAKE_STREAM), other;
	uint64_t before = gpc_pool_frees();

	fake.lazy = true;
	fake.busy = true;
	release(block, FAKE_STREAM);
	gpc_pool_stream_done(fake.stream, before);
	gpc_pool_context_done(fake.context, before);
	other = alloc(48 * FAKE_MIB, NULL);
	assert_int_not_equal(other, block);
	gpc_pool_context_done(fake.context, gpc_pool_frees());
	assert_int_equal(alloc(48 * FAKE_MIB, NULL), block);
	release(block, NULL);
	release(other, NULL);
}

static void
without_opportunism_memory_waits_for_a_synchronisation(void **state)
{
	CUdeviceptr block = alloc(48 * FAKE_MIB, FAKE_STREAM), other;

	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	set_flag(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
	release(block, FAKE_STREAM);
	fake.done = fake.posted;
	other = alloc(48 * FAKE_MIB, NULL);
	assert_int_not_equal(other, block);
	synchronize(fake.legacy);
	assert_int_equal(alloc(48 * FAKE_MIB, NULL), block);
	set_flag(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1);
	release(block, NULL);
	release(other, NULL);
}

static void
beyond_the_threshold_memory_goes_back_at_a_synchronisation(void **state)
{
	CUdeviceptr blocks[4];

	for (int i = 0; i < 4; i++)
		blocks[i] = alloc(100 * FAKE_MIB, FAKE_STREAM);
	assert_int_equal(fake.mapped, 400 * FAKE_MIB);
	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 150 * FAKE_MIB);
	for (int i = 0; i < 3; i++)
		release(blocks[i], FAKE_STREAM);
	assert_int_equal(fake.mapped, 400 * FAKE_MIB);
	synchronize(fake.stream);
	assert_int_equal(fake.mapped, 200 * FAKE_MIB);
	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
	synchronize(fake.stream);
	assert_int_equal(fake.mapped, 100 * FAKE_MIB);
	release(blocks[3], FAKE_STREAM);
}

static void
one_mapping_is_kept_for_the_next_block_but_is_to_be_had(void **state)
{
	size_t free, total;

	for (int i = 0; i < 50; i++) {
		release(alloc(6 * FAKE_MIB, FAKE_STREAM), FAKE_STREAM);
		assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
				 6 * FAKE_MIB);
		synchronize(fake.stream);
		assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	}
	assert_int_equal(fake.maps, 1);
	assert_int_equal(fake.unmaps, 0);
	assert_int_equal(gpc_cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, total);

	fake.quota = 16 * FAKE_MIB;
	assert_int_equal(gpc_cuMemFree_v2(fake_alloc(16 * FAKE_MIB)), CUDA_SUCCESS);
}

static void
memory_in_a_pool_counts_as_used(void **state)
{
	CUdeviceptr block = alloc(8 * FAKE_MIB, NULL);
	size_t free, total;

	release(block, NULL);
	assert_int_equal(gpc_cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(total - free, 8 * FAKE_MIB);
}

static void
the_quota_is_reached_to_the_last_granule(void **state)
{
	CUdeviceptr blocks[512], block;
	int count = 0;

	fake.quota = 70 * FAKE_MIB;
	while (count < 512 &&
	       gpc_cuMemAllocAsync(&blocks[count], FAKE_MIB / 4, NULL) == CUDA_SUCCESS)
		count++;
	assert_int_equal(count, 70 * 4);
	assert_int_equal(gpc_cuMemAllocAsync(&block, FAKE_MIB / 4, FAKE_STREAM),
			 CUDA_ERROR_OUT_OF_MEMORY);
	for (int i = 0; i < count; i++)
		release(blocks[i], NULL);
	/* What waits in one stream's order is waited for, and given to another. */
	block = alloc(70 * FAKE_MIB, FAKE_STREAM);
	release(block, FAKE_STREAM);
	block = fake_alloc(70 * FAKE_MIB);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
}

static void
work_is_waited_for_rather_than_mapping_more_and_more(void **state)
{
	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 400; i++)
		release(alloc(FAKE_MIB, NULL), FAKE_STREAM);
	assert_true(fake.mapped <= 192 * FAKE_MIB);
	assert_in_range(fake.waits, 1, 8);
}

static void
only_live_blocks_can_be_freed(void **state)
{
	CUdeviceptr block = alloc(4096, NULL), large = alloc(30 * FAKE_MIB, NULL);
	int local;

	assert_int_equal(gpc_cuMemFreeAsync(0, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFreeAsync(block + 512, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFreeAsync(large + 512, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFreeAsync((uintptr_t)&local, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFreeAsync(block, (CUstream)(uintptr_t)0x1234),
			 CUDA_ERROR_INVALID_HANDLE);
	release(block, NULL);
	assert_int_equal(gpc_cuMemFreeAsync(block, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_ERROR_INVALID_VALUE);
	release(large, FAKE_STREAM);
	assert_int_equal(gpc_cuMemFreeAsync(large, FAKE_STREAM), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemsetD8_v2(block, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

static void
both_ways_of_allocating_go_with_both_of_freeing(void **state)
{
	CUdeviceptr block = alloc(20 * FAKE_MIB, NULL), small = fake_alloc(4096),
		    large = fake_alloc(3 * FAKE_MIB);

	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	release(small, FAKE_STREAM);
	release(large, NULL);
	assert_int_equal(gpc_cuMemFreeAsync(small, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFreeAsync(large, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void
what_is_freed_in_no_streams_order_waits_for_all_work(void **state)
{
	CUdeviceptr block = alloc(48 * FAKE_MIB, NULL), other;

	fake.lazy = true;
	fake.busy = true;
	fake.posted++;
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	other = alloc(48 * FAKE_MIB, NULL);
	assert_int_not_equal(other, block);
	fake.done = fake.posted;
	assert_int_equal(alloc(48 * FAKE_MIB, FAKE_STREAM), block);
	release(block, NULL);
	release(other, NULL);
}

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
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), fake.mapped);
	release(block, NULL);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 20 * FAKE_MIB);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), fake.mapped);
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
	assert_int_equal(fake.mapped, 120 * FAKE_MIB);
	fake.done = fake.posted;
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 50 * FAKE_MIB), CUDA_SUCCESS);
	assert_int_equal(fake.mapped, 80 * FAKE_MIB);
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(fake.mapped, 0);
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
	assert_int_not_equal(fake.mapped, 0);
	release(second, NULL);
	assert_int_equal(fake.mapped, 0);

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
	props = good;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
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

static void
senseless_sizes_are_refused_at_once(void **state)
{
	CUdeviceptr block;

	assert_int_equal(gpc_cuMemAllocAsync(&block, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocAsync(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocAsync(&block, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAllocAsync(&block, FAKE_WINDOW + 1, NULL),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&block, 1, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake.maps, 0);
}

/* What the allocator should keep to, in the simplest way: live blocks, and frees in flight. */
struct piece {
	CUdeviceptr address;
	size_t size;
	CUstream stream; /* of the free */
	uint64_t tag;
};

#define LIVE 64
#define FLYING 8192

struct model {
	struct piece live[LIVE], flying[FLYING];
	int count; /* of flying */
};

static bool
overlap(const struct piece *a, const struct piece *b)
{
	return a->address < b->address + b->size && b->address < a->address + a->size;
}

/* What was freed before on the stream (of all that is done, if it is none) is not in flight. */
static void
land(struct model *model, CUstream stream, bool by_stream)
{
	int left = 0;

	for (int i = 0; i < model->count; i++) {
		const struct piece *piece = &model->flying[i];

		if (piece->tag > fake.done && !(by_stream && piece->stream == stream))
			model->flying[left++] = *piece;
	}
	model->count = left;
}

static void
check_alone(const struct model *model, const struct piece *piece)
{
	for (int i = 0; i < LIVE; i++) {
		const struct piece *live = &model->live[i];

		assert_false(live != piece && live->size > 0 && overlap(live, piece));
	}
	for (int i = 0; i < model->count; i++) {
		const struct piece *flying = &model->flying[i];

		assert_false(flying->stream != piece->stream && overlap(flying, piece));
	}
}

static void
fly(struct model *model, const struct piece *piece)
{
	assert_in_range(model->count, 0, FLYING - 1);
	model->flying[model->count++] = *piece;
}

/* Who has been given memory, in whatever stream's order, comes behind those who had it before. */
static void
take_over(struct model *model, const struct piece *piece)
{
	CUdeviceptr end = piece->address + piece->size;

	for (int i = model->count - 1; i >= 0; i--) {
		struct piece left = model->flying[i], right = left;

		if (!overlap(&left, piece))
			continue;
		model->flying[i] = model->flying[--model->count];
		if (left.address < piece->address) {
			left.size = piece->address - left.address;
			fly(model, &left);
		}
		if (right.address + right.size > end) {
			right.size -= end - right.address;
			right.address = end;
			fly(model, &right);
		}
	}
}

static void
model_release(struct model *model, struct piece *piece, CUstream stream)
{
	release(piece->address, stream);
	piece->stream = stream;
	piece->tag = fake.posted;
	fly(model, piece);
	piece->size = 0;
}

static void
memory_is_one_streams_until_its_work_is_done(void **state)
{
	static struct model model;
	unsigned int seed = 7;

	memset(&model, 0, sizeof(model));
	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 20000; i++) {
		struct piece *piece = &model.live[(seed = seed * 1664525u + 1013904223u) >> 26];
		CUstream stream = seed >> 20 & 1 ? FAKE_STREAM : NULL;

		if (piece->size > 0)
			model_release(&model, piece, stream);
		if ((seed >> 12) % 128 == 0)
			fake.done = fake.posted - (seed >> 8) % 4;
		if ((seed >> 13) % 64 == 0) {
			synchronize(stream ? fake.stream : fake.legacy);
			land(&model, stream, true);
		}
		/* Multiples of what is given out, which the model knows nothing of. */
		piece->size = (seed >> 3) % 8 ? 512 * (1 + (seed >> 6) % 200)
					      : 2 * FAKE_MIB * (1 + (seed >> 6) % 10);
		piece->stream = stream;
		piece->address = alloc(piece->size, stream);
		land(&model, NULL, false);
		check_alone(&model, piece);
		take_over(&model, piece);
	}
	for (int i = 0; i < LIVE; i++) {
		if (model.live[i].size > 0)
			release(model.live[i].address, NULL);
	}
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_true(fake.waits > 0);
}

static int thread_failures;

static void
expect(bool right)
{
	if (!right)
		__atomic_add_fetch(&thread_failures, 1, __ATOMIC_RELAXED);
}

static void *
use_pool(void *arg)
{
	CUdeviceptr blocks[16] = { 0 };
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUstream stream = (uintptr_t)arg % 2 ? FAKE_STREAM : NULL;

	for (int i = 0; i < 2000; i++) {
		unsigned int at = (seed = seed * 1664525u + 1013904223u) >> 28;

		(void)__atomic_add_fetch(&fake.posted, 1, __ATOMIC_SEQ_CST);
		if (blocks[at]) {
			expect(gpc_cuMemFreeAsync(blocks[at], stream) == CUDA_SUCCESS);
			blocks[at] = 0;
		} else {
			expect(gpc_cuMemAllocAsync(&blocks[at], 1 + (seed >> 8) % 2000000,
						   stream) == CUDA_SUCCESS);
		}
		if (i % 100 == 0)
			synchronize(stream ? fake.stream : fake.legacy);
		if (i % 500 == 0)
			gpc_pool_context_done(fake.context, gpc_pool_frees());
	}
	for (int i = 0; i < 16; i++)
		expect(!blocks[i] || gpc_cuMemFreeAsync(blocks[i], stream) == CUDA_SUCCESS);
	return NULL;
}

static void
threads_allocate_and_free_at_once(void **state)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_pool, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(thread_failures, 0);
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocks_need_one_round_trip_for_many),
		TEST(large_blocks_are_cut_from_one_mapping),
		TEST(the_stream_that_freed_has_the_memory_again_at_once),
		TEST(the_rest_of_a_freed_block_stays_the_streams),
		TEST(another_stream_has_it_when_the_work_is_known_to_be_done),
		TEST(synchronising_its_stream_makes_memory_anybodys),
		TEST(a_synchronisation_says_nothing_of_later_frees),
		TEST(without_opportunism_memory_waits_for_a_synchronisation),
		TEST(beyond_the_threshold_memory_goes_back_at_a_synchronisation),
		TEST(one_mapping_is_kept_for_the_next_block_but_is_to_be_had),
		TEST(memory_in_a_pool_counts_as_used),
		TEST(the_quota_is_reached_to_the_last_granule),
		TEST(work_is_waited_for_rather_than_mapping_more_and_more),
		TEST(only_live_blocks_can_be_freed),
		TEST(both_ways_of_allocating_go_with_both_of_freeing),
		TEST(what_is_freed_in_no_streams_order_waits_for_all_work),
		TEST(pointers_know_their_pool),
		TEST(a_pool_keeps_count_of_itself),
		TEST(attributes_are_checked),
		TEST(trimming_keeps_what_it_is_told_to),
		TEST(a_destroyed_pool_lives_as_long_as_its_blocks),
		TEST(a_pool_does_not_grow_beyond_its_size),
		TEST(a_device_has_a_current_pool),
		TEST(only_pools_of_device_memory_are_made),
		TEST(a_pools_own_device_has_access_and_no_other),
		TEST(senseless_sizes_are_refused_at_once),
		TEST(memory_is_one_streams_until_its_work_is_done),
		TEST(threads_allocate_and_free_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
