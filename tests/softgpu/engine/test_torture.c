/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

GS_TEST_MODULE("torture")

struct two {
	int *first;
	int *second;
};

static void
run(const char *kernel, unsigned int blocks, unsigned int threads, const void *params, size_t size)
{
	gs_test_run(module, &(struct gs_test_launch){ .kernel = kernel,
						      .blocks = blocks,
						      .threads = threads,
						      .params = params,
						      .params_size = size });
}

static int *
run_one(const char *kernel, unsigned int threads)
{
	int *out = gs_test_memory(65536);

	run(kernel, 1, threads, &out, sizeof(out));
	return out;
}

TEST(both_arms_of_a_branch_meet_at_a_barrier)
{
	int *out = run_one("divergent_barrier", 64);

	for (int t = 0; t < 64; t++)
		assert_int_equal(out[t], t % 2 ? 63 - t : 63 - t + 1000);
}

TEST(lanes_of_one_warp_alternate_with_a_lock)
{
	int *memory = gs_test_memory(256);

	run("spin_lock", 2, 64, &(struct two){ memory + 1, memory }, sizeof(struct two));
	assert_int_equal(memory[0], 128);
	memory[0] = 0;
	run("spin_lock_in_loop", 4, 64, &(struct two){ memory + 1, memory }, sizeof(struct two));
	assert_int_equal(memory[0], 256);
}

TEST(a_warp_that_spins_lets_others_run)
{
	int *memory = gs_test_memory(1024);

	run("producer_consumer", 1, 64, &(struct two){ memory + 100, memory }, sizeof(struct two));
	for (int t = 0; t < 32; t++)
		assert_int_equal(memory[t], 7);
}

static uint64_t
processor_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

TEST(threads_that_sleep_use_no_processor)
{
	int *memory = gs_test_memory(1024);
	struct {
		int *out;
		int rounds;
	} params = { memory, 50 };
	uint64_t begin = gp_now_ns(), used = processor_ns();

	/* 64 threads: two warps, which sleep at the same time. */
	run("sleeping", 1, 64, &params, sizeof(params));
	assert_true(gp_now_ns() - begin > 20000000);
	assert_true(processor_ns() - used < (gp_now_ns() - begin) / 2);
	for (int t = 0; t < 32; t++)
		assert_int_equal(memory[t], 5);
}

TEST(functions_recurse)
{
	static const int fibonacci[] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
	int *out = run_one("recursion", 64);

	for (int t = 0; t < 64; t++)
		assert_int_equal(out[t], fibonacci[t % 12]);
}

TEST(objects_made_by_new_have_virtual_functions)
{
	int *out = gs_test_memory(256);
	struct gs_heap *heap;

	assert_int_equal(gs_heap_create(1 << 20, &heap), GS_OK);
	gs_test_run(module, &(struct gs_test_launch){ .kernel = "virtual_calls",
						      .blocks = 1,
						      .threads = 64,
						      .params = &out,
						      .params_size = sizeof(out),
						      .heap = heap });
	for (int t = 0; t < 64; t++)
		assert_int_equal(out[t], t % 3 == 0 ? t : t % 3 == 1 ? t * 2 : t + 100);
	gs_heap_destroy(heap);
}

TEST(functions_are_called_through_pointers)
{
	struct {
		int *out;
		int which;
	} params = { gs_test_memory(256), 1 };

	run("function_pointers", 1, 64, &params, sizeof(params));
	for (int t = 0; t < 64; t++)
		assert_int_equal(params.out[t], t % 2 ? t + 1 : t * t);
}

TEST(barriers_reduce)
{
	int *out = run_one("barrier_reductions", 256);

	for (int t = 0; t < 256; t++)
		assert_int_equal(out[t], 86 + 0 + 10000);
}

TEST(barriers_wait_for_no_thread_that_has_exited)
{
	struct {
		int *out;
		int n;
	} params = { gs_test_memory(1024), 77 };

	run("early_exit", 1, 128, &params, sizeof(params));
	for (int t = 0; t < 77; t++)
		assert_int_equal(params.out[t], 76 - t);
}

TEST(named_barriers_count_threads)
{
	int *out = run_one("named_barriers", 96);

	for (int t = 32; t < 96; t++)
		assert_int_equal(out[t], t % 32 + 5);
}

TEST(all_blocks_of_a_cooperative_grid_meet)
{
	struct two params = { gs_test_memory(4096), gs_test_memory(4096) };

	gs_test_run(module, &(struct gs_test_launch){ .kernel = "grid_sync",
						      .blocks = 8,
						      .threads = 128,
						      .params = &params,
						      .params_size = sizeof(params),
						      .cooperative = true });
	assert_int_equal(params.second[0], 1023 + 1024);
	for (int t = 1; t < 1024; t++)
		assert_int_equal(params.second[t], 1023 - t);
}

TEST(groups_are_of_the_lanes_that_came_together)
{
	int *out = run_one("coalesced_groups", 32);
	int rank = 0;

	for (int t = 0; t < 32; t++)
		assert_int_equal(out[t], t & 4 ? 1600 + rank++ : 16000);
}

TEST(shuffles_in_both_arms_mean_each_other)
{
	int *out = run_one("shuffle_in_both_arms", 32);

	for (int t = 0; t < 32; t++)
		assert_int_equal(out[t], t < 16 ? 201 : 32);
}

TEST(warp_functions_give_what_is_documented)
{
	int *out = run_one("warp_functions", 32);

	for (int t = 0; t < 32; t++) {
		assert_int_equal(out[t * 8 + 0], t < 2 ? t : t - 2);
		assert_int_equal(out[t * 8 + 1], t % 16 + 3 < 16 ? t + 3 : t);
		assert_int_equal(out[t * 8 + 2], t ^ 5);
		assert_int_equal(out[t * 8 + 3], (int)0xaaaaaaaau);
		assert_int_equal(out[t * 8 + 4], 3);
		assert_int_equal(out[t * 8 + 5], (int)(0xffu << (t / 8 * 8)));
		assert_int_equal(out[t * 8 + 6], -1);
		assert_int_equal(out[t * 8 + 7], 1);
	}
}

TEST(lanes_meet_after_a_loop)
{
	int *out = run_one("divergent_loop", 32);

	for (int t = 0; t < 32; t++) {
		int sum = 0;

		for (int i = 0; i < t; i++)
			sum += i % 7 == 3 ? 2 : 1;
		assert_int_equal(out[t], sum + 3200);
	}
}

TEST(switches_reach_every_case)
{
	int *out = run_one("switches", 64);

	for (int t = 0; t < 64; t++) {
		const int want[9] = { 5, t * 3, t ^ 77, -t, t * t, t << 3, 1000 - t, 1, 1 };

		assert_int_equal(out[t], want[t % 9]);
	}
}

TEST(parameters_may_be_large)
{
	struct {
		int values[60];
		int *out;
		char tail;
	} params = { .out = gs_test_memory(256), .tail = -3 };

	for (int i = 0; i < 60; i++)
		params.values[i] = i * i;
	run("large_parameter", 1, 64, &params, sizeof(params));
	for (int t = 0; t < 64; t++)
		assert_int_equal(params.out[t], (t % 60) * (t % 60) - 3);
}

TEST(every_thread_has_local_memory)
{
	struct {
		int *out;
		int n;
	} params = { gs_test_memory(1024), 5 };

	run("local_array", 1, 96, &params, sizeof(params));
	for (int t = 0; t < 96; t++)
		assert_int_equal(params.out[t], ((t + 5) & 31) * t);
}

TEST(vectors_keep_their_elements_in_order)
{
	struct {
		int *in, *out;
		double *in2, *out2;
		uint8_t *in3, *out3;
	} p = { gs_test_memory(1024), gs_test_memory(1024), gs_test_memory(1024),
		gs_test_memory(1024), gs_test_memory(256),  gs_test_memory(256) };

	for (int i = 0; i < 256; i++) {
		p.in[i] = i * 3;
		p.in3[i] = (uint8_t)(i * 7);
	}
	for (int i = 0; i < 128; i++)
		p.in2[i] = i + 0.5;
	run("vectors", 1, 64, &p, sizeof(p));
	for (int t = 0; t < 64; t++) {
		for (int k = 0; k < 4; k++) {
			assert_int_equal(p.out[t * 4 + k], p.in[t * 4 + 3 - k]);
			assert_int_equal(p.out3[(63 - t) * 4 + k], p.in3[t * 4 + (k + 3) % 4]);
		}
		assert_true(p.out2[t * 2] == p.in2[(63 - t) * 2 + 1]);
		assert_true(p.out2[t * 2 + 1] == p.in2[(63 - t) * 2]);
	}
}

TEST(blocks_and_threads_have_three_dimensions)
{
	int *out = gs_test_memory(24 * 48 * 4);
	struct gs_error error;
	const struct gs_launch launch = {
		.function = gs_module_function(module, "block_index"),
		.grid = { 2, 3, 4 },
		.block = { 6, 4, 2 },
		.params = &out,
		.params_size = sizeof(out),
	};

	assert_int_equal(gs_launch(&launch, &error), GS_OK);
	for (int i = 0; i < 24 * 48; i++)
		assert_int_equal(out[i], i / 48 * 1000 + i % 48);
}

TEST(variables_are_initialized_and_kept)
{
	static const int table[4] = { 3, 1, 4, 1 };
	struct gs_module *own = gs_test_load("torture");
	int *out = gs_test_memory(256);
	uint64_t address;
	uint64_t size;

	for (int round = 0; round < 2; round++) {
		gs_test_run(own, &(struct gs_test_launch){ .kernel = "variables",
							   .blocks = 1,
							   .threads = 32,
							   .params = &out,
							   .params_size = sizeof(out) });
		for (int t = 0; t < 32; t++)
			assert_int_equal(out[t], table[t & 3] + 40 + round + 'e');
	}
	assert_int_equal(gs_module_global(own, "counter", &address, &size), GS_OK);
	assert_int_equal(size, 4);
	assert_int_equal(*(int *)(uintptr_t)address, 42);
	assert_int_equal(gs_module_global(own, "nothing", &address, &size), GS_NOT_FOUND);
	gs_module_unload(own);
}

TEST(one_worker_runs_blocks_in_order)
{
	struct {
		unsigned int *next, *out;
	} params = { gs_test_memory(256), gs_test_memory(400 * 4) };

	assert_int_equal(gs_engine_workers(), 1);
	run("order_of_blocks", 400, 64, &params, sizeof(params));
	for (unsigned int i = 0; i < 400; i++)
		assert_int_equal(params.out[i], i);
}

int
main(void)
{
	const char *workers = getenv("GS_WORKERS");

	if (!workers || strcmp(workers, "1") != 0)
		cmocka_set_skip_filter("one_worker_*");
	return unit_tests_run(load_module, unload_module);
}
