/* SPDX-License-Identifier: Apache-2.0 */
/* Random pool operations of several streams and threads, many thousand times, compared with a
 * model. */
#include "tests/unit/client/pool_fixture.h"

#include <pthread.h>
#include <string.h>

/* Model of the allocator in the simplest form: live blocks, and frees in flight. */
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

TEST(memory_is_one_streams_until_its_work_is_done)
{
	static struct model model;
	unsigned int seed = 7;

	memset(&model, 0, sizeof(model));
	fake.lazy = true;
	fake.busy = true;
	for (int i = 0; i < 20000; i++) {
		struct piece *piece = &model.live[(seed = seed * 1664525u + 1013904223u) >> 26];
		CUstream stream = seed >> 20 & 1 ? FAKE_WIRE_STREAM : NULL;

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
					      : 2 * FAKE_WIRE_MIB * (1 + (seed >> 6) % 10);
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

#define LARGE_THREADS 8
#define LARGE_EACH 3
#define LARGE (10 * FAKE_WIRE_MIB)

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
	CUstream stream = (uintptr_t)arg % 2 ? FAKE_WIRE_STREAM : NULL;

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

TEST(threads_allocate_and_free_at_once)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_pool, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(thread_failures, 0);
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}

/* Each mapping holds one block, so what one thread has mapped another may take before it. */
static void *
keep_large_blocks(void *arg)
{
	CUdeviceptr *blocks = arg;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < LARGE_EACH; i++)
			expect(gpc_cuMemAllocAsync(&blocks[i], LARGE, NULL) == CUDA_SUCCESS);
		for (int i = 0; i < LARGE_EACH; i++)
			expect(gpc_cuMemFreeAsync(blocks[i], NULL) == CUDA_SUCCESS);
		synchronize(fake.legacy);
		(void)gpc_cuMemPoolTrimTo(default_pool(), 0);
	}
	return NULL;
}

TEST(what_others_take_is_mapped_again)
{
	CUdeviceptr blocks[LARGE_THREADS][LARGE_EACH];
	pthread_t threads[LARGE_THREADS];

	thread_failures = 0;
	for (int i = 0; i < LARGE_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, keep_large_blocks, blocks[i]),
				 0);
	for (int i = 0; i < LARGE_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(thread_failures, 0);
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
