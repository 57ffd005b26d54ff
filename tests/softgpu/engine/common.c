/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_SIZE (64u << 20)
#define PAGE 4096u

static uint8_t *arena;
static size_t used;

int
gs_test_setup(void **state)
{
	if (!arena) {
		void *want = (void *)(uintptr_t)(GS_VA_BASE + (1ull << 30));

		arena = mmap(want, ARENA_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		assert_ptr_equal(arena, want);
	}
	used = 0;
	assert_int_equal(gs_engine_init(NULL), GS_OK);
	return 0;
}

int
gs_test_teardown(void **state)
{
	assert_int_equal(mprotect(arena, ARENA_SIZE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(madvise(arena, ARENA_SIZE, MADV_DONTNEED), 0);
	return 0;
}

void *
gs_test_memory(size_t size)
{
	void *memory = arena + used;

	used += (size + 255) & ~(size_t)255;
	assert_true(used <= ARENA_SIZE);
	return memory;
}

void *
gs_test_forbidden_page(void)
{
	void *page;

	used = (used + PAGE - 1) & ~(size_t)(PAGE - 1);
	page = gs_test_memory(PAGE);
	assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
	return page;
}

static struct gs_module *
load(const char *text, size_t size)
{
	struct gs_module *module = NULL;
	struct gs_error error;

	if (gs_module_load(text, size, &module, &error) != GS_OK)
		fail_msg("%s", error.text);
	return module;
}

struct gs_module *
gs_test_load(const char *name)
{
	const char *folder = getenv("GS_TEST_PTX");
	const char *variant = getenv("GS_TEST_VARIANT");
	char path[4096];
	struct gs_module *module;
	char *text = malloc(4u << 20);
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s_%s.ptx", folder ? folder : ".", name,
		 variant ? variant : "plain");
	file = fopen(path, "rb");
	if (!file || !text)
		fail_msg("cannot read %s", path);
	size = fread(text, 1, 4u << 20, file);
	fclose(file);
	module = load(text, size);
	free(text);
	return module;
}

struct gs_module *
gs_test_load_text(const char *text)
{
	return load(text, strlen(text));
}

void
gs_test_refuse(const char *text, const char *message)
{
	struct gs_module *module = NULL;
	struct gs_error error;

	assert_int_equal(gs_module_load(text, strlen(text), &module, &error), GS_INVALID_PTX);
	assert_null(module);
	assert_int_equal(error.code, GS_INVALID_PTX);
	if (!strstr(error.text, message))
		fail_msg("'%s' does not contain '%s'", error.text, message);
}

void
gs_test_unsupported(const char *text, const char *message)
{
	struct gs_module *module = gs_test_load_text(text);
	const struct gs_test_launch launch = { .kernel = "k", .blocks = 1, .threads = 1 };
	struct gs_function_info info;
	struct gs_error error;

	gs_function_info(gs_module_function(module, "k"), &info);
	assert_non_null(info.unsupported);
	if (!strstr(info.unsupported, message))
		fail_msg("'%s' does not contain '%s'", info.unsupported, message);
	assert_int_equal(gs_test_launch(module, &launch, &error), GS_NOT_SUPPORTED);
	assert_string_equal(error.text, info.unsupported);
	gs_module_unload(module);
}

int
gs_test_launch(const struct gs_module *module, const struct gs_test_launch *test,
	       struct gs_error *error)
{
	struct gs_launch launch = {
		.function = gs_module_function(module, test->kernel),
		.grid = { test->blocks, 1, 1 },
		.block = { test->threads, 1, 1 },
		.dynamic_shared = test->dynamic_shared,
		.params = test->params,
		.params_size = test->params_size,
		.cooperative = test->cooperative,
		.cancel = test->cancel,
		.heap = test->heap,
		.print = test->print,
		.print_error = test->print_error,
		.print_arg = test->print_arg,
	};

	assert_non_null(launch.function);
	return gs_launch(&launch, error);
}

void
gs_test_run(const struct gs_module *module, const struct gs_test_launch *test)
{
	struct gs_error error;

	if (gs_test_launch(module, test, &error) != GS_OK)
		fail_msg("%s: %d: %s", test->kernel, error.code, error.text);
}
