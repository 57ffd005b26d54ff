/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that fault: the result, the message, and that the engine continues to work. */
#include "common.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

GS_TEST_MODULE("torture")

static void
expect(int want, const char *message, const struct gs_test_launch *launch)
{
	struct gs_error error;
	int *out = gs_test_memory(4096);

	assert_int_equal(gs_test_launch(module, launch, &error), want);
	assert_int_equal(error.code, want);
	if (!strstr(error.text, message))
		fail_msg("'%s' does not contain '%s'", error.text, message);
	gs_test_run(module, &(struct gs_test_launch){ .kernel = "recursion",
						      .blocks = 4,
						      .threads = 64,
						      .params = &out,
						      .params_size = sizeof(out) });
	assert_int_equal(out[7], 13);
}

TEST(a_wild_store_is_an_illegal_address)
{
	int *out = gs_test_memory(256);
	const struct gs_test_launch launch = {
		.kernel = "wild_store", .blocks = 4, .threads = 32, .params = &out, .params_size = 8
	};

	expect(GS_ILLEGAL_ADDRESS, "kernel wild_store: illegal global address 0x1234 at PTX line ",
	       &launch);
}

TEST(a_page_without_permission_is_an_illegal_address)
{
	char *page = gs_test_forbidden_page();
	const struct gs_test_launch launch = {
		.kernel = "store_at", .blocks = 8, .threads = 64, .params = &page, .params_size = 8
	};

	expect(GS_ILLEGAL_ADDRESS, "kernel store_at: illegal global address", &launch);
}

TEST(an_address_without_memory_is_an_illegal_address)
{
	uint64_t address = 0x3000000000ull + GS_VA_BASE;
	const struct gs_test_launch launch = { .kernel = "store_at",
					       .blocks = 1,
					       .threads = 1,
					       .params = &address,
					       .params_size = 8 };

	expect(GS_ILLEGAL_ADDRESS, "0x113000000000 at PTX line ", &launch);
}

TEST(shared_memory_has_the_size_of_the_launch)
{
	const struct gs_test_launch launch = {
		.kernel = "shared_out_of_bounds", .blocks = 1, .threads = 32, .dynamic_shared = 64
	};

	/* Debug code uses generic addresses, which have no space of their own. */
	expect(GS_ILLEGAL_ADDRESS, "kernel shared_out_of_bounds: illegal ", &launch);
}

TEST(a_misaligned_address_has_its_own_error)
{
	int *out = gs_test_memory(256);
	const struct gs_test_launch launch = {
		.kernel = "misaligned", .blocks = 1, .threads = 1, .params = &out, .params_size = 8
	};

	expect(GS_MISALIGNED_ADDRESS, "misaligned address", &launch);
}

TEST(a_trap_fails_the_launch)
{
	int *out = gs_test_memory(4096);
	const struct gs_test_launch launch = {
		.kernel = "traps", .blocks = 2, .threads = 64, .params = &out, .params_size = 8
	};

	expect(GS_LAUNCH_FAILED, "trap at PTX line", &launch);
}

TEST(barriers_nobody_can_pass_fail_the_launch)
{
	int *out = gs_test_memory(4096);
	const struct gs_test_launch launch = {
		.kernel = "deadlock", .blocks = 1, .threads = 64, .params = &out, .params_size = 8
	};

	expect(GS_LAUNCH_FAILED, "deadlock at a barrier", &launch);
}

TEST(endless_recursion_overflows_the_stack)
{
	int *out = gs_test_memory(4096);
	const struct gs_test_launch launch = { .kernel = "stack_overflow",
					       .blocks = 1,
					       .threads = 40,
					       .params = &out,
					       .params_size = 8 };

	expect(GS_HARDWARE_STACK_ERROR, "stack overflow", &launch);
}

struct text {
	char bytes[8192];
	size_t len;
};

static void
collect(void *arg, const char *bytes, size_t len)
{
	struct text *text = arg;

	assert_true(text->len + len < sizeof(text->bytes));
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
}

TEST(a_failed_assertion_prints_its_position)
{
	struct text text = { .len = 0 };
	int limit = 33;
	const struct gs_test_launch launch = { .kernel = "asserts",
					       .blocks = 1,
					       .threads = 40,
					       .params = &limit,
					       .params_size = sizeof(limit),
					       .print_error = collect,
					       .print_arg = &text };

	expect(GS_ASSERT, "assertion failed", &launch);
	assert_non_null(strstr(text.bytes, "torture.cu:"));
	assert_non_null(strstr(text.bytes, "block: [0,0,0], thread: [33,0,0] Assertion "
					   "`(int)threadIdx.x < limit` failed.\n"));
	assert_non_null(strstr(text.bytes, "thread: [39,0,0]"));
	assert_null(strstr(text.bytes, "thread: [32,0,0]"));
}

TEST(printf_knows_the_usual_conversions)
{
	struct text text = { .len = 0 };
	struct {
		int *out;
		float x;
	} params = { gs_test_memory(256), 2.5f };
	const struct gs_test_launch launch = { .kernel = "prints",
					       .blocks = 1,
					       .threads = 32,
					       .params = &params,
					       .params_size = sizeof(params),
					       .print = collect,
					       .print_arg = &text };

	gs_test_run(module, &launch);
	assert_string_equal(text.bytes,
			    "-7  2.50|abc   |z|1099511627776|ff|%|0x110000001000|   9\n");
	assert_int_equal(params.out[0], 9);
}

static void *
set_after_a_while(void *arg)
{
	usleep(30000);
	*(volatile int *)arg = 1;
	return NULL;
}

static void
cancel_while_running(const char *kernel)
{
	volatile int cancel = 0;
	int *out = gs_test_memory(256);
	const struct gs_test_launch launch = { .kernel = kernel,
					       .blocks = 5,
					       .threads = 256,
					       .params = &out,
					       .params_size = sizeof(out),
					       .cancel = &cancel };
	pthread_t thread;

	assert_int_equal(
		pthread_create(&thread, NULL, set_after_a_while, (void *)(uintptr_t)&cancel), 0);
	expect(GS_CANCELLED, "cancelled", &launch);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(an_endless_kernel_can_be_cancelled)
{
	cancel_while_running("endless");
	cancel_while_running("endless_sleep");
}

TEST(the_heap_is_bounded)
{
	struct {
		uint64_t *out;
		uint64_t size;
	} params = { gs_test_memory(1024), 4096 };
	struct gs_test_launch launch = { .kernel = "allocates",
					 .blocks = 1,
					 .threads = 64,
					 .params = &params,
					 .params_size = sizeof(params) };
	struct gs_heap *heap;
	int given = 0;

	gs_test_run(module, &launch);
	assert_int_equal(params.out[0], 0);
	assert_int_equal(gs_heap_create(16 * 4096, &heap), GS_OK);
	launch.heap = heap;
	for (int round = 0; round < 2; round++) {
		gs_test_run(module, &launch);
		given = 0;
		for (int t = 0; t < 64; t++)
			given += params.out[t] != 0;
		assert_int_equal(given, 16);
		launch.kernel = "frees";
		gs_test_run(module, &launch);
		launch.kernel = "allocates";
	}
	launch.kernel = "frees";
	expect(GS_ILLEGAL_ADDRESS, "illegal heap address", &launch);
	gs_heap_destroy(heap);
}

TEST(bad_launches_are_refused)
{
	int *out = gs_test_memory(4096);
	struct gs_launch launch = { .function = gs_module_function(module, "recursion"),
				    .grid = { 1, 1, 1 },
				    .block = { 1025, 1, 1 },
				    .params = &out,
				    .params_size = sizeof(out) };
	struct gs_error error;

	assert_int_equal(gs_launch(&launch, &error), GS_INVALID_VALUE);
	launch.block[0] = 0;
	assert_int_equal(gs_launch(&launch, &error), GS_INVALID_VALUE);
	launch.block[0] = 64;
	launch.params_size = 7;
	assert_int_equal(gs_launch(&launch, &error), GS_INVALID_VALUE);
	launch.params_size = 8;
	launch.dynamic_shared = 1u << 20;
	assert_int_equal(gs_launch(&launch, &error), GS_INVALID_VALUE);
	launch.dynamic_shared = 0;
	assert_int_equal(gs_launch(&launch, &error), GS_OK);
}

UNIT_TEST_MAIN(load_module, unload_module)
