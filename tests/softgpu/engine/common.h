/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's tests share: device memory, modules, launches. Failures end the test. */
#ifndef GS_TEST_COMMON_H
#define GS_TEST_COMMON_H

#include "softgpu/engine/engine.h"
#include "tests/test.h"

/* Zeroed device memory; all of it is given back by gs_test_teardown. */
void *gs_test_memory(size_t size);
/* A page that no access may touch. */
void *gs_test_forbidden_page(void);

/* PTX of the build, by the name of its source; GS_TEST_VARIANT says how it was compiled. */
struct gs_module *gs_test_load(const char *name);
struct gs_module *gs_test_load_text(const char *text);
/* Expects the load to fail with 218 and the text in its message. */
void gs_test_refuse(const char *text, const char *message);

/* Expects the load to succeed and kernel k to be refused, at launch, with the text in the reason.
 */
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
/* The same, and it must succeed. */
void gs_test_run(const struct gs_module *module, const struct gs_test_launch *launch);

int gs_test_setup(void **state);
int gs_test_teardown(void **state);

#endif
