/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for tests of the software device's engine: device memory, modules, launches.
 *
 * Threads: the test's thread.
 * Errors: failures fail the test.
 */
#ifndef GS_TEST_COMMON_H
#define GS_TEST_COMMON_H

#include "softgpu/engine/engine.h"
#include "tests/test.h"

/* Returns zeroed device memory, which is valid until gs_test_teardown(). */
void *gs_test_memory(size_t size);
/* Returns a page of device memory without access permissions, which is valid until
 * gs_test_teardown(). */
void *gs_test_forbidden_page(void);

/* Loads a PTX file of the build, given the name of its source, and returns the module, which the
 * caller unloads. The environment variable GS_TEST_VARIANT names the compiler options of the file;
 * by default "plain". */
struct gs_module *gs_test_load(const char *name);
/* Loads PTX text and returns the module, which the caller unloads. */
struct gs_module *gs_test_load_text(const char *text);
/* Asserts that loading the text fails with GS_INVALID_PTX, and that `message` is part of the error
 * text. */
void gs_test_refuse(const char *text, const char *message);

/* Asserts that loading the text succeeds, that a launch of its kernel k fails with
 * GS_NOT_SUPPORTED, and that `message` is part of the reason. */
void gs_test_unsupported(const char *text, const char *message);

/* A one-dimensional launch; see struct gs_launch for the members. */
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

/* Launches a kernel of the module and waits for it. Returns the result of gs_launch() and stores
 * the reason of a failure in *error. */
int gs_test_launch(const struct gs_module *module, const struct gs_test_launch *launch,
		   struct gs_error *error);
/* Launches a kernel, waits for it and asserts success. */
void gs_test_run(const struct gs_module *module, const struct gs_test_launch *launch);

/* CMocka setup and teardown of a test; return 0. The setup starts the engine once per process. */
int gs_test_setup(void **state);
int gs_test_teardown(void **state);

/* Defines a test with this setup. */
#define TEST(test) UNIT_TEST_WITH(test, gs_test_setup, gs_test_teardown)

/* Defines `module`, a module of the build that all tests of a file share, and its group setup and
 * teardown load_module() and unload_module() for UNIT_TEST_MAIN(). */
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
