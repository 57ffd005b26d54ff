/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/window.h"
#include "client/memory/address.h"
#include "client/memory/globals.h"
#include "client/memory/memory.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

FAKE_WIRE_TEST(small_blocks_need_one_round_trip_for_many)
{
	CUdeviceptr blocks[1000];

	for (int i = 0; i < 1000; i++) {
		blocks[i] = fake_wire_alloc(100);
		assert_int_equal(blocks[i] % 512, 0);
	}

	assert_int_equal(fake.maps, 1);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
	assert_int_equal(fake.unmaps, 0);
}

FAKE_WIRE_TEST(the_heap_that_comes_with_the_context_needs_none)
{
	struct gp_args_gpContextCreate args = { 0 }, again = { 0 };

	atomic_store(&fake.context->device->granted, 4 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_memory_prepare_context(fake.context, &args), CUDA_SUCCESS);
	gpc_memory_context_made(fake.context, &args, true);
	assert_int_equal(args.heap_size, 4 * FAKE_WIRE_MIB);
	assert_in_range(args.heap, fake.window, fake.window + FAKE_WIRE_WINDOW - args.heap_size);
	assert_in_range(fake_wire_alloc(FAKE_WIRE_MIB), args.heap, args.heap + args.heap_size - 1);

	assert_int_equal(fake.maps, 0);
	/* It is granted once. */
	assert_int_equal(gpc_memory_prepare_context(fake.context, &again), CUDA_SUCCESS);
	assert_int_equal(again.heap_size, 0);
	/* It is the context's creation that maps it. */
	assert_int_equal(gpc_wait_gpMemoryMap(fake.context,
					      &(struct gp_args_gpMemoryMap){ .address = args.heap,
									     .size = args.heap_size,
									     .device = 1 }),
			 CUDA_SUCCESS);
}

FAKE_WIRE_TEST(large_blocks_are_mapped_and_unmapped_by_themselves)
{
	CUdeviceptr block = fake_wire_alloc(5 * FAKE_WIRE_MIB);

	assert_int_equal(fake_wire_mapped(), 6 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
	assert_int_equal(fake.unmaps, 1);
}

FAKE_WIRE_TEST(what_was_freed_is_had_again_without_a_round_trip)
{
	CUdeviceptr block = fake_wire_alloc(5 * FAKE_WIRE_MIB);

	for (int i = 0; i < 10; i++) {
		assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
		assert_int_equal(gpc_cuMemsetD8_v2(block, 0, 1), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(fake_wire_alloc(5 * FAKE_WIRE_MIB), block);
	}
	assert_int_equal(fake.maps, 1);
	assert_int_equal(fake.unmaps, 0);
	assert_int_equal(fake.waits, 0);
}

#define MANY 40

/* Of whatever size they are, the first is waited for; what is not used the daemon has back. */
FAKE_WIRE_TEST(large_blocks_come_out_of_credit)
{
	CUdeviceptr blocks[MANY];

	fake_wire_allow_credit();
	for (int i = 0; i < MANY; i++)
		blocks[i] = fake_wire_alloc((3 + (uint64_t)i % 5) * FAKE_WIRE_MIB);
	assert_int_equal(fake.maps, 0);
	assert_int_equal(fake.uses, MANY);
	assert_in_range(fake.grants, 2, 10);
	assert_true(fake.allowance > 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
	assert_int_equal(fake.allowance, 0);
}

FAKE_WIRE_TEST(credit_is_recalled_with_the_rest)
{
	CUdeviceptr blocks[4];

	fake_wire_allow_credit();
	for (int i = 0; i < 4; i++)
		blocks[i] = fake_wire_alloc(3 * FAKE_WIRE_MIB);
	assert_true(fake.allowance > 0);
	fake_wire_recall();
	assert_int_equal(fake.allowance, 0);
	assert_int_equal(fake.mapped, 4 * 4 * FAKE_WIRE_MIB);
	/* There is more when it is wanted, and the daemon knows of it. */
	assert_int_equal(gpc_cuMemFree_v2(fake_wire_alloc(5 * FAKE_WIRE_MIB)), CUDA_SUCCESS);
	assert_true(fake.allowance > 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
}

/* The last bytes are the program's, whatever was granted. */
FAKE_WIRE_TEST(nothing_is_refused_for_credit)
{
	CUdeviceptr blocks[10], more;

	fake_wire_allow_credit();
	fake.quota = 10 * 4 * FAKE_WIRE_MIB;
	for (int i = 0; i < 9; i++)
		blocks[i] = fake_wire_alloc(3 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemAlloc_v2(&more, 5 * FAKE_WIRE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	blocks[9] = fake_wire_alloc(3 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemAlloc_v2(&more, 3 * FAKE_WIRE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	for (int i = 0; i < 10; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(credit_is_free_memory)
{
	size_t available, total;

	fake_wire_allow_credit();
	fake.quota = 1024 * FAKE_WIRE_MIB;
	(void)fake_wire_alloc(4 * FAKE_WIRE_MIB);
	assert_true(fake.allowance > 0);
	assert_int_equal(gpc_cuMemGetInfo_v2(&available, &total), CUDA_SUCCESS);
	assert_int_equal(available, 1020 * FAKE_WIRE_MIB);
}

FAKE_WIRE_TEST(what_is_kept_is_given_back_when_the_daemon_wants_it)
{
	CUdeviceptr block = fake_wire_alloc(5 * FAKE_WIRE_MIB),
		    other = fake_wire_alloc(7 * FAKE_WIRE_MIB);

	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 8 * FAKE_WIRE_MIB);
	assert_int_equal(fake.kept, 1);
	/* It is told anew of what is kept from then on. */
	assert_int_equal(gpc_cuMemFree_v2(other), CUDA_SUCCESS);
	assert_int_equal(fake.mapped, 8 * FAKE_WIRE_MIB);
	fake_wire_recall();
	assert_int_equal(fake.mapped, 0);
	assert_int_equal(fake.kept, 2);
}

FAKE_WIRE_TEST(the_daemon_knows_about_how_much_is_kept)
{
	CUdeviceptr small = fake_wire_alloc(20 * FAKE_WIRE_MIB),
		    large = fake_wire_alloc(100 * FAKE_WIRE_MIB);

	assert_int_equal(gpc_cuMemFree_v2(small), CUDA_SUCCESS);
	assert_int_equal(fake.told_kept, 0);
	assert_int_equal(gpc_cuMemFree_v2(large), CUDA_SUCCESS);
	assert_int_equal(fake.told_kept, 120 * FAKE_WIRE_MIB);
	small = fake_wire_alloc(20 * FAKE_WIRE_MIB);
	assert_int_equal(fake.told_kept, 120 * FAKE_WIRE_MIB);
	assert_int_equal(fake_wire_alloc(100 * FAKE_WIRE_MIB), large);
	assert_int_equal(fake.told_kept, 0);
	assert_int_equal(gpc_cuMemFree_v2(small), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFree_v2(large), CUDA_SUCCESS);
	fake_wire_recall();
	assert_int_equal(fake.told_kept, 0);
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(what_work_still_uses_is_had_again_behind_it)
{
	CUdeviceptr block = fake_wire_alloc(5 * FAKE_WIRE_MIB);

	fake.lazy = true;
	fake.posted++;
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	assert_int_equal(fake_wire_alloc(5 * FAKE_WIRE_MIB), block);
	assert_int_equal(fake.done, fake.posted);
	assert_int_equal(fake.maps, 1);
}

FAKE_WIRE_TEST(no_more_is_kept_than_there_is_place_for)
{
	CUdeviceptr blocks[70];

	for (int i = 0; i < 70; i++)
		blocks[i] = fake_wire_alloc(2 * FAKE_WIRE_MIB);
	for (int i = 0; i < 70; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
	assert_in_range(fake.mapped, 60 * 2 * FAKE_WIRE_MIB, 64 * 2 * FAKE_WIRE_MIB);
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(an_error_of_earlier_work_does_not_lose_what_was_mapped)
{
	CUdeviceptr block;

	fake.pending = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	block = fake_wire_alloc(5 * FAKE_WIRE_MIB);

	/* Another call tells it. */
	assert_int_equal(fake.deferred, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(senseless_sizes_are_refused_at_once)
{
	CUdeviceptr block;

	assert_int_equal(gpc_cuMemAlloc_v2(&block, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAlloc_v2(&block, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAlloc_v2(&block, (size_t)1 << 62), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAlloc_v2(&block, FAKE_WIRE_WINDOW + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fake.maps, 0);
}

FAKE_WIRE_TEST(only_what_cumemalloc_returned_can_be_freed)
{
	CUdeviceptr block = fake_wire_alloc(4096), large = fake_wire_alloc(3 * FAKE_WIRE_MIB);
	int local;

	assert_int_equal(gpc_cuMemFree_v2(0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFree_v2(block + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFree_v2(large + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFree_v2((uintptr_t)&local), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemFree_v2(large), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemFree_v2(large), CUDA_ERROR_INVALID_VALUE);
}

FAKE_WIRE_TEST(freed_memory_is_used_again_at_once_when_nothing_is_under_way)
{
	CUdeviceptr block = fake_wire_alloc(FAKE_WIRE_MIB);

	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	assert_int_equal(fake_wire_alloc(FAKE_WIRE_MIB), block);
	assert_int_equal(fake.fences, 0);
}

FAKE_WIRE_TEST(freed_memory_waits_for_the_work_posted_before)
{
	CUdeviceptr block = fake_wire_alloc(FAKE_WIRE_MIB);

	fake.lazy = true;
	fake.posted++;
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		assert_int_not_equal(fake_wire_alloc(FAKE_WIRE_MIB), block);
	assert_int_equal(fake.fences, 0);

	assert_int_equal(gpc_cuMemsetD8_v2(block, 0, 1), CUDA_ERROR_INVALID_VALUE);
	fake.done = fake.posted;
	assert_int_equal(fake_wire_alloc(FAKE_WIRE_MIB), block);
	assert_int_equal(fake.maps, 1);
}

FAKE_WIRE_TEST(much_waiting_memory_asks_how_far_the_work_is_once)
{
	CUdeviceptr blocks[4];

	fake.lazy = true;
	for (int i = 0; i < 4; i++)
		blocks[i] = fake_wire_alloc(FAKE_WIRE_MIB);
	fake.posted++;
	for (int i = 0; i < 4; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
	assert_int_equal(fake.fences, 1);

	fake_wire_deliver();
	assert_int_equal(fake.done, fake.posted);
	fake_wire_alloc(FAKE_WIRE_MIB);
	assert_int_equal(fake.maps, 1);
}

FAKE_WIRE_TEST(a_loop_that_never_waits_lives_on_few_chunks)
{
	for (int i = 0; i < 2000; i++) {
		CUdeviceptr block = fake_wire_alloc(FAKE_WIRE_MIB / 2);

		fake.posted++;
		assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	}
	assert_true(fake.maps <= 2);
}

FAKE_WIRE_TEST(work_is_waited_for_rather_than_mapping_more_and_more)
{
	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 200; i++) {
		CUdeviceptr block = fake_wire_alloc(FAKE_WIRE_MIB);

		fake.posted++;
		assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	}
	assert_true(fake_wire_mapped() <= 32 * FAKE_WIRE_MIB);
	assert_in_range(fake.waits, 1, 200 / 8);
}

FAKE_WIRE_TEST(wholly_free_chunks_go_back_when_the_daemon_wants_them)
{
	CUdeviceptr blocks[60];

	for (int i = 0; i < 60; i++)
		blocks[i] = fake_wire_alloc(FAKE_WIRE_MIB);
	assert_int_equal(fake_wire_mapped(), 60 * FAKE_WIRE_MIB);
	for (int i = 0; i < 60; i++)
		assert_int_equal(gpc_cuMemFree_v2(blocks[i]), CUDA_SUCCESS);

	assert_int_equal(fake.mapped, 60 * FAKE_WIRE_MIB);
	assert_int_equal(fake_wire_mapped(), 0);
}

FAKE_WIRE_TEST(memory_that_is_free_or_waits_is_given_back_before_out_of_memory)
{
	CUdeviceptr small[8], large, block;

	fake.quota = 20 * FAKE_WIRE_MIB;
	for (int i = 0; i < 8; i++)
		small[i] = fake_wire_alloc(FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemAlloc_v2(&large, 18 * FAKE_WIRE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	fake.posted++;
	for (int i = 0; i < 8; i++)
		assert_int_equal(gpc_cuMemFree_v2(small[i]), CUDA_SUCCESS);

	assert_int_equal(gpc_cuMemAlloc_v2(&large, 18 * FAKE_WIRE_MIB), CUDA_SUCCESS);
	/* The geometric size does not fit any more, a small chunk does. */
	assert_int_equal(gpc_cuMemAlloc_v2(&block, FAKE_WIRE_MIB), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAlloc_v2(&block, FAKE_WIRE_MIB), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAlloc_v2(&block, FAKE_WIRE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemFree_v2(large), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAlloc_v2(&block, FAKE_WIRE_MIB), CUDA_SUCCESS);
}

FAKE_WIRE_TEST(the_windows_addresses_are_used_again)
{
	for (int i = 0; i < 20; i++) {
		CUdeviceptr block = fake_wire_alloc(FAKE_WIRE_WINDOW - 16 * FAKE_WIRE_MIB);

		assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	}
}

FAKE_WIRE_TEST(pitched_memory_has_rows_of_512)
{
	CUdeviceptr block;
	size_t pitch;

	assert_int_equal(gpc_cuMemAllocPitch_v2(&block, &pitch, 513, 100, 4), CUDA_SUCCESS);
	assert_int_equal(pitch, 1024);
	assert_true(gpc_address_is_device(block, 1024 * 100));
	assert_int_equal(gpc_cuMemAllocPitch_v2(&block, &pitch, 512, 1, 16), CUDA_SUCCESS);
	assert_int_equal(pitch, 512);
	assert_int_equal(gpc_cuMemAllocPitch_v2(&block, &pitch, 16, 1, 5),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocPitch_v2(&block, &pitch, 0, 1, 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocPitch_v2(&block, &pitch, SIZE_MAX - 3, 1, 4),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(
		gpc_cuMemAllocPitch_v2(&block, &pitch, (size_t)1 << 40, (size_t)1 << 40, 4),
		CUDA_ERROR_OUT_OF_MEMORY);
}

FAKE_WIRE_TEST(free_memory_counts_what_the_chunks_have_left)
{
	size_t before, after, total;

	assert_int_equal(gpc_cuMemGetInfo_v2(&before, &total), CUDA_SUCCESS);
	fake_wire_alloc(512);
	assert_int_equal(gpc_cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);

	assert_int_equal(total, fake.quota);
	assert_int_equal(before - after, 512);
	assert_int_equal(gpc_cuMemGetInfo_v2(NULL, &total), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemGetInfo_v2(&after, NULL), CUDA_SUCCESS);
}

FAKE_WIRE_TEST(addresses_are_what_they_were_made_as)
{
	CUdeviceptr block = fake_wire_alloc(1000);
	struct gpc_address found;
	int local;

	gpc_address_lookup(block + 999, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_DEVICE);
	assert_int_equal(found.base, block);
	assert_int_equal(found.size, 1000);
	assert_ptr_equal(found.context, fake.context);
	gpc_address_lookup(block + 1000, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
	gpc_address_lookup((uintptr_t)&local, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_PAGEABLE);
	assert_true(gpc_address_is_device(block, 1000));
	assert_false(gpc_address_is_device(block, 1001));
	assert_false(gpc_address_is_device(block + 1000, SIZE_MAX));
}

FAKE_WIRE_TEST(nothing_is_done_without_a_context)
{
	CUdeviceptr block;
	size_t size;

	fake.enter = CUDA_ERROR_INVALID_CONTEXT;
	assert_int_equal(gpc_cuMemAlloc_v2(&block, 1), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuMemFree_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuMemGetInfo_v2(&size, &size), CUDA_ERROR_INVALID_CONTEXT);
}

static int thread_failures;

static void *
use_memory(void *arg)
{
	CUdeviceptr blocks[32] = { 0 };
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (int i = 0; i < 3000; i++) {
		unsigned int at = (seed = seed * 1664525u + 1013904223u) >> 27;

		if (blocks[at]) {
			if (gpc_cuMemFree_v2(blocks[at]) != CUDA_SUCCESS)
				__atomic_add_fetch(&thread_failures, 1, __ATOMIC_RELAXED);
			blocks[at] = 0;
		} else if (gpc_cuMemAlloc_v2(&blocks[at], 1 + (seed >> 8) % 200000) !=
			   CUDA_SUCCESS) {
			__atomic_add_fetch(&thread_failures, 1, __ATOMIC_RELAXED);
		}
	}
	for (int i = 0; i < 32; i++) {
		if (blocks[i] && gpc_cuMemFree_v2(blocks[i]) != CUDA_SUCCESS)
			__atomic_add_fetch(&thread_failures, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

FAKE_WIRE_TEST(threads_allocate_and_free_at_once)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_memory, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(thread_failures, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
