/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a pool: which memory they get, and in which stream order it is reused. */
#include "tests/unit/client/pool_fixture.h"

TEST(blocks_need_one_round_trip_for_many)
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
		assert_int_equal(*fake_wire_at(blocks[i]), i);
		assert_int_equal(*fake_wire_at(blocks[i] + 29999), i);
		release(blocks[i], NULL);
	}
	assert_int_equal(fake.unmaps, 0);
}

TEST(large_blocks_are_cut_from_one_mapping)
{
	CUdeviceptr first = alloc(40 * FAKE_WIRE_MIB, NULL), second;

	release(first, NULL);
	second = alloc(18 * FAKE_WIRE_MIB, NULL);
	assert_int_equal(second, first);
	assert_int_equal(alloc(20 * FAKE_WIRE_MIB, NULL), first + 18 * FAKE_WIRE_MIB);
	assert_int_equal(fake.maps, 1);
	assert_int_equal(gpc_cuMemFreeAsync(first, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFreeAsync(first + 18 * FAKE_WIRE_MIB, NULL), CUDA_SUCCESS);
}

TEST(the_stream_that_freed_has_the_memory_again_at_once)
{
	CUdeviceptr block = alloc(FAKE_WIRE_MIB, FAKE_WIRE_STREAM);

	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 1000; i++) {
		release(block, FAKE_WIRE_STREAM);
		assert_int_equal(alloc(FAKE_WIRE_MIB, FAKE_WIRE_STREAM), block);
	}
	assert_int_equal(fake.fences, 0);
	release(block, FAKE_WIRE_STREAM);
}

TEST(the_rest_of_a_freed_block_stays_the_streams)
{
	CUdeviceptr block = alloc(3 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), other;

	fake.lazy = true;
	fake.busy = true;
	release(block, FAKE_WIRE_STREAM);
	assert_int_equal(alloc(FAKE_WIRE_MIB, FAKE_WIRE_STREAM), block);
	other = alloc(2 * FAKE_WIRE_MIB, NULL);
	assert_true(other < block || other >= block + 3 * FAKE_WIRE_MIB);
	assert_int_equal(alloc(2 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), block + FAKE_WIRE_MIB);
	release(block, NULL);
	release(block + FAKE_WIRE_MIB, NULL);
	release(other, NULL);
}

TEST(another_stream_has_it_when_the_work_is_known_to_be_done)
{
	CUdeviceptr block = alloc(FAKE_WIRE_MIB, FAKE_WIRE_STREAM), others[8];
	bool found = false;

	release(block, FAKE_WIRE_STREAM);
	for (int i = 0; i < 3; i++) {
		others[i] = alloc(FAKE_WIRE_MIB, NULL);
		assert_int_not_equal(others[i], block);
	}
	fake.done = fake.posted;
	for (int i = 3; i < 8; i++) {
		others[i] = alloc(FAKE_WIRE_MIB, NULL);
		found |= others[i] == block;
	}
	assert_true(found);
	for (int i = 0; i < 8; i++)
		release(others[i], NULL);
}

TEST(synchronising_its_stream_makes_memory_anybodys)
{
	CUdeviceptr block = alloc(48 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), other;

	fake.lazy = true;
	fake.busy = true;
	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	release(block, FAKE_WIRE_STREAM);
	synchronize(fake.legacy);
	other = alloc(48 * FAKE_WIRE_MIB, NULL);
	assert_int_not_equal(other, block);
	synchronize(fake.stream);
	assert_int_equal(alloc(48 * FAKE_WIRE_MIB, NULL), block);
	release(other, NULL);
	release(block, NULL);
}

TEST(a_synchronisation_says_nothing_of_later_frees)
{
	CUdeviceptr block = alloc(48 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), other;
	uint64_t before = gpc_pool_frees();

	fake.lazy = true;
	fake.busy = true;
	release(block, FAKE_WIRE_STREAM);
	gpc_pool_stream_done(fake.context, fake.stream->number, before);
	gpc_pool_context_done(fake.context, before);
	other = alloc(48 * FAKE_WIRE_MIB, NULL);
	assert_int_not_equal(other, block);
	gpc_pool_context_done(fake.context, gpc_pool_frees());
	assert_int_equal(alloc(48 * FAKE_WIRE_MIB, NULL), block);
	release(block, NULL);
	release(other, NULL);
}

TEST(without_opportunism_memory_waits_for_a_synchronisation)
{
	CUdeviceptr block = alloc(48 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), other;

	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	set_flag(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
	release(block, FAKE_WIRE_STREAM);
	fake.done = fake.posted;
	other = alloc(48 * FAKE_WIRE_MIB, NULL);
	assert_int_not_equal(other, block);
	synchronize(fake.legacy);
	assert_int_equal(alloc(48 * FAKE_WIRE_MIB, NULL), block);
	set_flag(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1);
	release(block, NULL);
	release(other, NULL);
}

TEST(beyond_the_threshold_memory_goes_back_at_a_synchronisation)
{
	CUdeviceptr blocks[4];

	for (int i = 0; i < 4; i++)
		blocks[i] = alloc(100 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM);
	assert_int_equal(fake_wire_mapped(), 400 * FAKE_WIRE_MIB);
	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 150 * FAKE_WIRE_MIB);
	for (int i = 0; i < 3; i++)
		release(blocks[i], FAKE_WIRE_STREAM);
	assert_int_equal(fake_wire_mapped(), 400 * FAKE_WIRE_MIB);
	synchronize(fake.stream);
	assert_int_equal(fake_wire_mapped(), 200 * FAKE_WIRE_MIB);
	set(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
	synchronize(fake.stream);
	assert_int_equal(fake_wire_mapped(), 100 * FAKE_WIRE_MIB);
	release(blocks[3], FAKE_WIRE_STREAM);
}

TEST(one_mapping_is_kept_for_the_next_block_but_is_to_be_had)
{
	size_t free, total;

	for (int i = 0; i < 50; i++) {
		release(alloc(6 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), FAKE_WIRE_STREAM);
		assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
				 6 * FAKE_WIRE_MIB);
		synchronize(fake.stream);
		assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	}
	assert_int_equal(fake.maps, 1);
	assert_int_equal(fake.unmaps, 0);
	assert_int_equal(gpc_cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, total);

	fake.quota = 16 * FAKE_WIRE_MIB;
	assert_int_equal(gpc_cuMemFree_v2(fake_wire_alloc(16 * FAKE_WIRE_MIB)), CUDA_SUCCESS);
}

TEST(memory_in_a_pool_counts_as_used)
{
	CUdeviceptr block = alloc(8 * FAKE_WIRE_MIB, NULL);
	size_t free, total;

	release(block, NULL);
	assert_int_equal(gpc_cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(total - free, 8 * FAKE_WIRE_MIB);
}

TEST(the_quota_is_reached_to_the_last_granule)
{
	CUdeviceptr blocks[512], block;
	int count = 0;

	fake.quota = 70 * FAKE_WIRE_MIB;
	while (count < 512 &&
	       gpc_cuMemAllocAsync(&blocks[count], FAKE_WIRE_MIB / 4, NULL) == CUDA_SUCCESS)
		count++;
	assert_int_equal(count, 70 * 4);
	assert_int_equal(gpc_cuMemAllocAsync(&block, FAKE_WIRE_MIB / 4, FAKE_WIRE_STREAM),
			 CUDA_ERROR_OUT_OF_MEMORY);
	for (int i = 0; i < count; i++)
		release(blocks[i], NULL);
	/* What waits in one stream's order is waited for, and given to another. */
	block = alloc(70 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM);
	release(block, FAKE_WIRE_STREAM);
	block = fake_wire_alloc(70 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
}

TEST(work_is_waited_for_rather_than_mapping_more_and_more)
{
	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 400; i++)
		release(alloc(FAKE_WIRE_MIB, NULL), FAKE_WIRE_STREAM);
	assert_true(fake_wire_mapped() <= 192 * FAKE_WIRE_MIB);
	assert_in_range(fake.waits, 1, 8);
}

TEST(only_live_blocks_can_be_freed)
{
	CUdeviceptr block = alloc(4096, NULL), large = alloc(30 * FAKE_WIRE_MIB, NULL);
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
	release(large, FAKE_WIRE_STREAM);
	assert_int_equal(gpc_cuMemFreeAsync(large, FAKE_WIRE_STREAM), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemsetD8_v2(block, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(both_ways_of_allocating_go_with_both_of_freeing)
{
	CUdeviceptr block = alloc(20 * FAKE_WIRE_MIB, NULL), small = fake_wire_alloc(4096),
		    large = fake_wire_alloc(3 * FAKE_WIRE_MIB);

	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	release(small, FAKE_WIRE_STREAM);
	release(large, NULL);
	assert_int_equal(gpc_cuMemFreeAsync(small, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFreeAsync(large, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(what_is_freed_in_no_streams_order_waits_for_all_work)
{
	CUdeviceptr block = alloc(48 * FAKE_WIRE_MIB, NULL), other;

	fake.lazy = true;
	fake.busy = true;
	fake.posted++;
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	other = alloc(48 * FAKE_WIRE_MIB, NULL);
	assert_int_not_equal(other, block);
	fake.done = fake.posted;
	assert_int_equal(alloc(48 * FAKE_WIRE_MIB, FAKE_WIRE_STREAM), block);
	release(block, NULL);
	release(other, NULL);
}

TEST(senseless_sizes_are_refused_at_once)
{
	CUdeviceptr block = 7;

	assert_int_equal(gpc_cuMemAllocAsync(&block, 0, NULL), CUDA_SUCCESS);
	assert_int_equal(block, 0);
	assert_int_equal(gpc_cuMemAllocAsync(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocAsync(&block, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAllocAsync(&block, FAKE_WIRE_WINDOW + 1, NULL),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&block, 1, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake.maps, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
