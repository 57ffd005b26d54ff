/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/heap.h"
#include "client/alloc/tlsf.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GRANULE (2 * MIB)
#define BASE ((uint64_t)0x110000000000)
#define WINDOW (1024 * MIB)
#define BLOCKS 4096
#define ROUNDS 200000

static int owner_a, owner_b;
#define A ((void *)&owner_a)
#define B ((void *)&owner_b)

/* Model of the heap in the simplest form: one owner byte for each unit of the window. */
struct block {
	uint64_t address, size;
	void *owner;
};

struct model {
	struct gpc_heap *heap;
	struct block blocks[BLOCKS];
	int count;
	uint8_t *units; /* of the window: used by a block that is not reusable */
	unsigned int seed;
};

static int
create(void **state)
{
	struct gpc_heap *heap;

	assert_int_equal(gpc_heap_create(BASE, WINDOW, GRANULE, 4 * MIB, &heap), 0);
	*state = heap;
	return 0;
}

static int
destroy(void **state)
{
	gpc_heap_destroy(*state);
	return 0;
}

static struct gpc_heap_range
add_chunk(struct gpc_heap *heap, void *owner, uint64_t size)
{
	struct gpc_heap_range range;

	assert_int_equal(gpc_heap_reserve(heap, size, &range), 0);
	assert_int_equal(gpc_heap_add_chunk(heap, owner, &range), 0);
	return range;
}

static uint64_t
alloc(struct gpc_heap *heap, void *owner, uint64_t size)
{
	uint64_t address;

	assert_int_equal(gpc_heap_alloc(heap, owner, size, 1, &address), 0);
	return address;
}

static void
release(struct gpc_heap *heap, uint64_t address, uint64_t tag, uint64_t done)
{
	struct gpc_heap_range unmap;

	assert_int_equal(gpc_heap_free(heap, address, tag, done, &unmap), 0);
	assert_int_equal(unmap.size, 0);
}

static int
free_result(struct gpc_heap *heap, uint64_t address)
{
	struct gpc_heap_range unmap;

	return gpc_heap_free(heap, address, 0, 0, &unmap);
}

#define HEAP_TEST(test) UNIT_TEST_WITH(test, create, destroy)

HEAP_TEST(blocks_are_aligned_to_512_and_apart)
{
	struct gpc_heap *heap = *state;
	uint64_t first, second;

	add_chunk(heap, A, 4 * MIB);
	first = alloc(heap, A, 1);
	second = alloc(heap, A, 513);

	assert_int_equal(first % 512, 0);
	assert_int_equal(second % 512, 0);
	assert_true(second >= first + 512 || first >= second + 1024);
}

HEAP_TEST(an_owner_without_chunks_has_no_room)
{
	struct gpc_heap *heap = *state;
	uint64_t address;

	add_chunk(heap, A, 4 * MIB);

	assert_int_equal(gpc_heap_alloc(heap, B, 1, 1, &address), GP_E_RESOURCE);
	assert_int_equal(gpc_heap_alloc(heap, A, 1, 1, &address), 0);
}

HEAP_TEST(a_chunk_is_used_to_its_last_byte)
{
	struct gpc_heap *heap = *state;
	uint64_t address;

	add_chunk(heap, A, 4 * MIB);
	for (int i = 0; i < 4; i++)
		alloc(heap, A, MIB);

	assert_int_equal(gpc_heap_alloc(heap, A, 1, 1, &address), GP_E_RESOURCE);
	assert_int_equal(gpc_heap_free_bytes(heap, A), 0);
}

HEAP_TEST(freed_neighbours_become_one_block)
{
	struct gpc_heap *heap = *state;
	uint64_t blocks[8192];

	add_chunk(heap, A, 4 * MIB);
	for (int i = 0; i < 8192; i++)
		blocks[i] = alloc(heap, A, 512);
	for (int i = 0; i < 8192; i += 2)
		release(heap, blocks[i], 0, 0);
	for (int i = 1; i < 8192; i += 2)
		release(heap, blocks[i], 0, 0);

	for (int i = 0; i < 4; i++)
		alloc(heap, A, MIB);
}

HEAP_TEST(chunks_double_up_to_64_mib)
{
	struct gpc_heap *heap = *state;
	const uint64_t expected[] = { 4, 8, 16, 32, 64, 64 };

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(gpc_heap_chunk_size(heap, A), expected[i] * MIB);
		add_chunk(heap, A, expected[i] * MIB);
	}
	assert_int_equal(gpc_heap_chunk_size(heap, B), 4 * MIB);
}

HEAP_TEST(only_the_start_of_a_live_block_can_be_freed)
{
	struct gpc_heap *heap = *state;
	uint64_t address;

	add_chunk(heap, A, 4 * MIB);
	address = alloc(heap, A, 2000);

	assert_int_equal(free_result(heap, address + 1), GP_E_INVALID);
	assert_int_equal(free_result(heap, address + 512), GP_E_INVALID);
	assert_int_equal(free_result(heap, address + 2048), GP_E_INVALID);
	assert_int_equal(free_result(heap, BASE - 512), GP_E_INVALID);
	assert_int_equal(free_result(heap, BASE + WINDOW), GP_E_INVALID);
	assert_int_equal(free_result(heap, 0), GP_E_INVALID);
	assert_int_equal(free_result(heap, address), 0);
	assert_int_equal(free_result(heap, address), GP_E_INVALID);
}

HEAP_TEST(waiting_memory_is_not_handed_out_before_its_work_is_done)
{
	struct gpc_heap *heap = *state;
	struct gpc_heap_block block;
	uint64_t blocks[4], address;

	add_chunk(heap, A, 4 * MIB);
	for (int i = 0; i < 4; i++)
		blocks[i] = alloc(heap, A, MIB);
	release(heap, blocks[1], 7, 6);
	release(heap, blocks[2], 8, 6);

	assert_int_equal(gpc_heap_deferred_bytes(heap), 2 * MIB);
	assert_int_equal(gpc_heap_free_bytes(heap, A), 2 * MIB);
	assert_false(gpc_heap_find(heap, blocks[1], &block));
	assert_int_equal(free_result(heap, blocks[1]), GP_E_INVALID);
	gpc_heap_reap(heap, 6, 6);
	assert_int_equal(gpc_heap_alloc(heap, A, 1, 1, &address), GP_E_RESOURCE);
	gpc_heap_reap(heap, 7, 7);
	assert_int_equal(alloc(heap, A, MIB), blocks[1]);
	assert_int_equal(gpc_heap_alloc(heap, A, 1, 1, &address), GP_E_RESOURCE);
	gpc_heap_reap(heap, 8, 8);
	assert_int_equal(alloc(heap, A, MIB), blocks[2]);
	assert_int_equal(gpc_heap_deferred_bytes(heap), 0);
}

HEAP_TEST(one_spare_chunk_is_kept_the_largest)
{
	struct gpc_heap *heap = *state;
	struct gpc_heap_range small = add_chunk(heap, A, 4 * MIB), large, unmap;
	uint64_t blocks[12];

	for (int i = 0; i < 4; i++)
		blocks[i] = alloc(heap, A, MIB);
	large = add_chunk(heap, A, 8 * MIB);
	for (int i = 4; i < 12; i++)
		blocks[i] = alloc(heap, A, MIB);
	for (int i = 0; i < 11; i++)
		release(heap, blocks[i], 0, 0);
	assert_int_equal(gpc_heap_free(heap, blocks[11], 0, 0, &unmap), 0);

	assert_int_equal(unmap.base, small.base);
	assert_int_equal(unmap.size, small.size);
	assert_true(gpc_heap_pop_spare(heap, &unmap));
	assert_int_equal(unmap.base, large.base);
	assert_false(gpc_heap_pop_spare(heap, &unmap));
}

HEAP_TEST(a_chunk_in_use_is_never_spare)
{
	struct gpc_heap *heap = *state;
	struct gpc_heap_range range;
	uint64_t address;

	add_chunk(heap, A, 4 * MIB);
	address = alloc(heap, A, 1);

	assert_false(gpc_heap_pop_spare(heap, &range));
	release(heap, address, 2, 1);
	assert_false(gpc_heap_pop_spare(heap, &range));
	gpc_heap_reap(heap, 2, 2);
	assert_true(gpc_heap_pop_spare(heap, &range));
	assert_int_equal(gpc_heap_free_bytes(heap, A), 0);
}

HEAP_TEST(unmapped_addresses_come_back_when_the_unmapping_is_done)
{
	struct gpc_heap *heap = *state;
	struct gpc_heap_range all, unmap, again;

	assert_int_equal(gpc_heap_reserve(heap, WINDOW, &all), 0);
	assert_int_equal(gpc_heap_add_large(heap, A, &all, WINDOW - 5, 9), 0);
	assert_int_equal(gpc_heap_free(heap, all.base, 0, 0, &unmap), 0);

	assert_int_equal(unmap.base, all.base);
	assert_int_equal(unmap.size, all.size);
	assert_int_equal(gpc_heap_reserve(heap, GRANULE, &again), GP_E_RESOURCE);
	gpc_heap_defer_range(heap, &unmap, 3);
	gpc_heap_reap(heap, 3, 2);
	assert_int_equal(gpc_heap_reserve(heap, GRANULE, &again), GP_E_RESOURCE);
	gpc_heap_reap(heap, 2, 3);
	assert_int_equal(gpc_heap_reserve(heap, WINDOW, &again), 0);
	gpc_heap_unreserve(heap, &again);
}

HEAP_TEST(addresses_are_found_inside_blocks_only)
{
	struct gpc_heap *heap = *state;
	struct gpc_heap_range range;
	struct gpc_heap_block block;
	uint64_t small;

	add_chunk(heap, A, 4 * MIB);
	small = alloc(heap, A, 700000);
	assert_int_equal(gpc_heap_reserve(heap, 300 * MIB + 1, &range), 0);
	assert_false(gpc_heap_find(heap, range.base, &block));
	assert_int_equal(gpc_heap_add_large(heap, B, &range, 300 * MIB + 1, 42), 0);

	assert_true(gpc_heap_find(heap, small + 699999, &block));
	assert_int_equal(block.address, small);
	assert_int_equal(block.size, 700000);
	assert_ptr_equal(block.owner, A);
	assert_true(gpc_heap_find(heap, range.base + 250 * MIB, &block));
	assert_int_equal(block.address, range.base);
	assert_int_equal(block.size, 300 * MIB + 1);
	assert_int_equal(block.id, 42);
	assert_ptr_equal(block.owner, B);
	assert_false(gpc_heap_find(heap, range.base + 300 * MIB + 1, &block));
	assert_false(gpc_heap_find(heap, small + 700000, &block));
	assert_false(gpc_heap_find(heap, 0x1234, &block));
}

HEAP_TEST(an_owner_leaves_with_all_it_has)
{
	struct gpc_heap *heap = *state;
	struct gpc_heap_range range;
	uint64_t mapped = 0, kept, address;

	add_chunk(heap, A, 4 * MIB);
	add_chunk(heap, A, 8 * MIB);
	add_chunk(heap, B, 4 * MIB);
	kept = alloc(heap, B, 100);
	alloc(heap, A, 100);
	release(heap, alloc(heap, A, 1000), 5, 4);
	assert_int_equal(gpc_heap_reserve(heap, 6 * MIB, &range), 0);
	assert_int_equal(gpc_heap_add_large(heap, A, &range, 6 * MIB, 1), 0);

	while (gpc_heap_pop_mapping(heap, A, &range)) {
		mapped += range.size;
		gpc_heap_defer_range(heap, &range, 1);
		assert_int_equal(gpc_heap_alloc(heap, A, 1, 1, &address), GP_E_RESOURCE);
	}

	assert_int_equal(mapped, 18 * MIB);
	gpc_heap_reap(heap, 9, 9);
	release(heap, kept, 0, 0);
	assert_int_equal(gpc_heap_chunk_size(heap, A), 4 * MIB);
}

HEAP_TEST(senseless_windows_and_sizes_are_refused)
{
	struct gpc_heap *heap = *state, *other;
	struct gpc_heap_range range;
	uint64_t address;

	assert_int_equal(gpc_heap_create(BASE + 1, WINDOW, GRANULE, 0, &other), GP_E_INVALID);
	assert_int_equal(gpc_heap_create(BASE, GRANULE - 1, GRANULE, 0, &other), GP_E_INVALID);
	assert_int_equal(gpc_heap_create(BASE, WINDOW, 3 * MIB, 0, &other), GP_E_INVALID);
	assert_int_equal(gpc_heap_create(BASE, WINDOW, 4096, 0, &other), GP_E_INVALID);
	assert_int_equal(gpc_heap_alloc(heap, A, 0, 1, &address), GP_E_INVALID);
	assert_int_equal(gpc_heap_alloc(heap, A, MIB + 1, 1, &address), GP_E_INVALID);
	assert_int_equal(gpc_heap_reserve(heap, 0, &range), GP_E_INVALID);
	assert_int_equal(gpc_heap_reserve(heap, WINDOW + 1, &range), GP_E_RESOURCE);
	assert_int_equal(gpc_heap_reserve(heap, UINT64_MAX, &range), GP_E_RESOURCE);
}

HEAP_TEST(a_window_of_many_zones_is_found_in_all_of_them)
{
	const uint64_t zone = GRANULE * GPC_TLSF_REGION_UNITS;
	struct gpc_heap_range ranges[3], rest;
	struct gpc_heap_block block;
	struct gpc_heap *heap;

	assert_int_equal(gpc_heap_create(BASE, 2 * zone + GRANULE, GRANULE, 0, &heap), 0);
	assert_int_equal(gpc_heap_reserve(heap, zone, &ranges[0]), 0);
	assert_int_equal(gpc_heap_reserve(heap, zone, &ranges[1]), 0);
	assert_int_equal(gpc_heap_reserve(heap, 1, &ranges[2]), 0);
	assert_int_equal(gpc_heap_reserve(heap, 1, &rest), GP_E_RESOURCE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gpc_heap_add_large(heap, A, &ranges[i], ranges[i].size, 5), 0);
		assert_true(gpc_heap_find(heap, ranges[i].base + ranges[i].size - 1, &block));
		assert_int_equal(block.address, ranges[i].base);
	}
	gpc_heap_destroy(heap);
}

static unsigned int
draw(struct model *model)
{
	model->seed = model->seed * 1664525u + 1013904223u;
	return model->seed >> 8;
}

static void
paint(struct model *model, uint64_t address, uint64_t size, uint8_t from, uint8_t to)
{
	uint8_t *units = model->units + (address - BASE) / 512;

	for (uint64_t i = 0; i < (size + 511) / 512; i++) {
		assert_int_equal(units[i], from);
		units[i] = to;
	}
}

static void
model_alloc(struct model *model)
{
	struct block *block = &model->blocks[model->count];
	struct gpc_heap_block found;
	int r;

	if (model->count == BLOCKS)
		return;
	block->owner = draw(model) % 2 ? A : B;
	block->size = draw(model) % 8 ? 1 + draw(model) % 20000 : 1 + draw(model) % MIB;
	r = gpc_heap_alloc(model->heap, block->owner, block->size, 1, &block->address);
	if (r == GP_E_RESOURCE) {
		struct gpc_heap_range range;
		uint64_t size = GRANULE << draw(model) % 3;

		if (gpc_heap_reserve(model->heap, size, &range))
			return;
		assert_int_equal(gpc_heap_add_chunk(model->heap, block->owner, &range), 0);
		r = gpc_heap_alloc(model->heap, block->owner, block->size, 1, &block->address);
	}
	assert_int_equal(r, 0);
	paint(model, block->address, block->size, 0, 1);
	assert_true(gpc_heap_find(model->heap, block->address + draw(model) % block->size, &found));
	assert_int_equal(found.address, block->address);
	assert_int_equal(found.size, block->size);
	assert_ptr_equal(found.owner, block->owner);
	model->count++;
}

static void
model_unmapped(struct model *model, const struct gpc_heap_range *range)
{
	for (uint64_t i = 0; i < range->size / 512; i++)
		assert_int_equal(model->units[(range->base - BASE) / 512 + i], 0);
	gpc_heap_defer_range(model->heap, range, 0);
}

static void
model_free(struct model *model)
{
	struct gpc_heap_range unmap;
	struct gpc_heap_block found;
	struct block *block;

	if (model->count == 0)
		return;
	block = &model->blocks[draw(model) % (unsigned int)model->count];
	paint(model, block->address, block->size, 1, 0);
	assert_int_equal(gpc_heap_free(model->heap, block->address, 0, 0, &unmap), 0);
	if (unmap.size)
		model_unmapped(model, &unmap);
	assert_false(gpc_heap_find(model->heap, block->address, &found));
	*block = model->blocks[--model->count];
}

static void
model_unmap(struct model *model)
{
	struct gpc_heap_range range;

	while (draw(model) % 2 && gpc_heap_pop_spare(model->heap, &range))
		model_unmapped(model, &range);
	gpc_heap_reap(model->heap, 0, 0);
}

/* Phases of growth and of shrinking, so that both full and empty heaps are met. */
HEAP_TEST(random_use_agrees_with_a_simple_model)
{
	struct model *model = calloc(1, sizeof(*model));
	struct gpc_heap_range all;

	assert_non_null(model);
	model->heap = *state;
	model->units = calloc(1, WINDOW / 512);
	model->seed = 20241;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned int grow = i / 20000 % 2 ? 40 : 60;

		if (draw(model) % 100 < grow)
			model_alloc(model);
		else
			model_free(model);
		if (i % 1000 == 0)
			model_unmap(model);
	}
	while (model->count > 0)
		model_free(model);
	while (gpc_heap_pop_spare(model->heap, &all))
		gpc_heap_defer_range(model->heap, &all, 0);
	gpc_heap_reap(model->heap, 0, 0);
	assert_int_equal(gpc_heap_free_bytes(model->heap, NULL), 0);
	assert_int_equal(gpc_heap_reserve(model->heap, WINDOW, &all), 0);
	gpc_heap_unreserve(model->heap, &all);
	free(model->units);
	free(model);
}

struct worker {
	pthread_t thread;
	struct gpc_heap *heap;
	unsigned int seed;
	int failed;
};

/* Its own blocks never overlap another thread's: each unit of the map is written by its owner. */
static uint32_t claimed[64 * MIB / 512];

static void
claim(struct worker *worker, uint64_t address, uint64_t size, uint32_t from, uint32_t to)
{
	for (uint64_t i = 0; i < (size + 511) / 512; i++) {
		uint32_t *unit = &claimed[(address - BASE) / 512 + i];

		worker->failed |= __atomic_exchange_n(unit, to, __ATOMIC_RELAXED) != from;
	}
}

static void *
work(void *arg)
{
	struct worker *worker = arg;
	struct block blocks[64] = { 0 };

	for (int i = 0; i < 20000; i++) {
		unsigned int at = (worker->seed = worker->seed * 1664525u + 1013904223u) >> 26;
		struct gpc_heap_range unmap;
		struct block *block = &blocks[at];

		if (block->size) {
			claim(worker, block->address, block->size, 1, 0);
			worker->failed |=
				gpc_heap_free(worker->heap, block->address, 0, 0, &unmap) != 0;
			block->size = 0;
			continue;
		}
		block->size = 1 + (worker->seed >> 8) % 30000;
		if (gpc_heap_alloc(worker->heap, A, block->size, 1, &block->address)) {
			block->size = 0;
			continue;
		}
		claim(worker, block->address, block->size, 0, 1);
	}
	return NULL;
}

HEAP_TEST(threads_never_share_a_block)
{
	struct worker workers[4];

	memset(claimed, 0, sizeof(claimed));
	add_chunk(*state, A, 4 * MIB);
	for (unsigned int i = 0; i < 4; i++) {
		workers[i] = (struct worker){ .heap = *state, .seed = i * 77 };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].failed, 0);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
