/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of the software device's engine: device memory, modules, launches. Errors fail
 * the test. */
#ifndef GS_TEST_COMMON_H
#define GS_TEST_COMMON_H

#include "softgpu/engine/engine.h"
#include "tests/test.h"

/* Returns zeroed device memory, which gs_test_teardown() frees. */
void *gs_test_memory(size_t size);
/* Returns a page without access permissions. */
void *gs_test_forbidden_page(void);

/* Loads PTX of the build by the name of its source. GS_TEST_VARIANT names the compiler options. */
struct gs_module *gs_test_load(const char *name);
struct gs_module *gs_test_load_text(const char *text);
/* Asserts that loading fails with error 218 (CUDA_ERROR_INVALID_PTX) and with this text in its
 * message. */
void gs_test_refuse(const char *text, const char *message);

/* Asserts that loading succeeds, and that a launch of kernel k is rejected with this text in the
 * reason. */
void gs_test_unsupported(const char *text, const char *message);

struct gs_test_launch {
	const char *kernel;
	unsigned int blocks;
	unsigned int threads;
	const void *params;
	size_t params_size;
	uint32_t dynamic_shared;
	bool cooperative;
	const volatile int *cancel;
	struct gs_heap *heap;
	gs_print_func *print;
	gs_print_func *print_error;
	void *print_arg;
};

int gs_test_launch(const struct gs_module *module, const struct gs_test_launch *launch,
		   struct gs_error *error);
/* Launches and asserts success. */
void gs_test_run(const struct gs_module *module, const struct gs_test_launch *launch);

int gs_test_setup(void **state);
int gs_test_teardown(void **state);

#define TEST(test) UNIT_TEST_WITH(test, gs_test_setup, gs_test_teardown)

/* Defines `module`, and load_module() and unload_module() for UNIT_TEST_MAIN(): one module of the
 * build that all tests of a file share. */
#define GS_TEST_MODULE(name)                                                                       \
	static struct gs_module *module;                                                           \
	static int load_module(void **state)                                                       \
	{                                                                                          \
		assert_int_equal(gs_test_setup(state), 0);                                         \
		module = gs_test_load(name);                                                       \
		return 0;                                                                          \
	}                                                                                          \
	static int unload_module(void **state)                                                     \
	{                                                                                          \
		gs_module_unload(module);                                                          \
		return 0;                                                                          \
	}

#endif
