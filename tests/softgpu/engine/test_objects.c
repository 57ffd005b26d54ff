/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <stdlib.h>

#define THREADS 128

GS_TEST_MODULE("objects")

struct two {
	int *first;
	int *second;
};

static void
run(const char *kernel, unsigned int blocks, const void *params, size_t size)
{
	gs_test_run(module, &(struct gs_test_launch){ .kernel = kernel,
						      .blocks = blocks,
						      .threads = THREADS,
						      .params = params,
						      .params_size = size });
}

TEST(atomic_objects_count_over_blocks)
{
	struct {
		int *sum, *most, *out;
	} params = { gs_test_memory(256), gs_test_memory(256), gs_test_memory(1024) };

	run("atomics", 40, &params, sizeof(params));
	assert_int_equal(*params.sum, 40 * THREADS * 3);
	assert_int_equal(*params.most, 40 * THREADS - 1);
}

TEST(barrier_objects_have_phases_and_members)
{
	int *out = gs_test_memory(3 * THREADS * sizeof(int));

	run("barriers", 3, &out, sizeof(out));
	for (int i = 0; i < 3 * THREADS; i++) {
		int t = i % THREADS;

		assert_int_equal(out[i], 127 - t + 4 + (t == 77 ? 0 : 1000));
	}
}

TEST(copies_are_there_when_waited_for)
{
	struct two params = { gs_test_memory(THREADS * 16), gs_test_memory(THREADS * 16) };

	for (int i = 0; i < THREADS * 4; i++)
		params.first[i] = i * 3;
	run("asynchronous_copy", 1, &params, sizeof(params));
	for (int i = 0; i < THREADS * 4; i++)
		assert_int_equal(params.second[i], ((127 - i / 4) * 4 + i % 4) * 3);
}

TEST(pipelines_go_round)
{
	struct two params = { gs_test_memory(THREADS * 24), gs_test_memory(THREADS * 24) };

	for (int i = 0; i < THREADS * 6; i++)
		params.first[i] = i * 5;
	run("pipeline", 1, &params, sizeof(params));
	for (int i = 0; i < THREADS * 6; i++)
		assert_int_equal(params.second[i], (i / THREADS * THREADS + 127 - i % THREADS) * 5);
}

TEST(tiles_scan)
{
	struct two params = { gs_test_memory(THREADS * 4), gs_test_memory(THREADS * 4) };

	for (int i = 0; i < THREADS; i++)
		params.first[i] = i * 7 % 11;
	run("scans", 1, &params, sizeof(params));
	for (int t = 0; t < THREADS; t++) {
		int sum = 0;

		for (int i = t / 32 * 32; i <= t; i++)
			sum += params.first[i];
		assert_int_equal(params.second[t], sum);
	}
}

UNIT_TEST_MAIN(load_module, unload_module)
