/* SPDX-License-Identifier: Apache-2.0 */
/* The library as programs use it: opened by name, and queried for functions before cuInit(). */
#include "tests/test.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef CUresult (*get_proc_address)(const char *name, void **function_p, int version,
				     cuuint64_t flags, CUdriverProcAddressQueryResult *status_p);

#define LEGACY CU_GET_PROC_ADDRESS_LEGACY_STREAM
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static const struct symbol {
	const char *name;
	const char *base;
	int since;
	cuuint64_t flags;
} symbols[] = {
#define GP_SYMBOL(name, base, since) { #name, #base, since, LEGACY },
#define GP_SYMBOL_PTDS(name, base, since) { #name, #base, since, PER_THREAD },
#define GP_SYMBOL_PTSZ(name, base, since) { #name, #base, since, PER_THREAD },
#include "codegen/api/symbols.h"
};

static void *library;
static get_proc_address ask;

static int
open_library(void **state)
{
	library = dlopen(getenv("GP_TEST_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		print_error("%s\n", dlerror());
		return -1;
	}
	ask = (get_proc_address)dlsym(library, "cuGetProcAddress_v2");
	return ask ? 0 : -1;
}

static int
close_library(void **state)
{
	return dlclose(library);
}

UNIT_TEST(every_symbol_is_found_by_its_base_name_and_version)
{
	for (size_t i = 0; i < COUNT(symbols); i++) {
		const struct symbol *symbol = &symbols[i];
		CUdriverProcAddressQueryResult status = 99;
		void *function = NULL;

		assert_int_equal(
			ask(symbol->base, &function, symbol->since, symbol->flags, &status),
			CUDA_SUCCESS);
		assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
		assert_non_null(function);
		assert_ptr_equal(function, dlsym(library, symbol->name));
	}
}

UNIT_TEST(graphics_functions_are_not_supported)
{
	static const char *const names[] = { "cuGraphicsGLRegisterImage", "cuGLCtxCreate",
					     "cuEGLStreamConsumerConnect", "cuVDPAUGetDevice" };
	CUresult (*function)(void *, unsigned int, unsigned int, unsigned int);

	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(ask(names[i], (void **)&function, 13000, LEGACY, NULL),
				 CUDA_SUCCESS);
		assert_non_null(function);
		assert_int_equal(function(NULL, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
	}
}

UNIT_TEST(functions_of_other_systems_are_not_found)
{
	static const char *const names[] = { "cuEventCreateFromEGLSync", "cuWGLGetDevice" };

	for (size_t i = 0; i < COUNT(names); i++) {
		CUdriverProcAddressQueryResult status = 99;
		void *function = &function;

		assert_int_equal(ask(names[i], &function, 13000, LEGACY, &status), CUDA_SUCCESS);
		assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
		assert_null(function);
		assert_null(dlsym(library, names[i]));
	}
}

UNIT_TEST(first_query_of_the_runtime_is_answered)
{
	void *function = &function;

	assert_int_equal(ask("", &function, 0, 0, NULL), CUDA_SUCCESS);
	assert_null(function);
}

UNIT_TEST(version_of_the_driver_is_known_before_init)
{
	CUresult (*get_version)(int *) = (CUresult(*)(int *))dlsym(library, "cuDriverGetVersion");
	int version = 0;

	assert_non_null(get_version);
	assert_int_equal(get_version(&version), CUDA_SUCCESS);
	assert_true(version >= 12000);
}

UNIT_TEST_MAIN(open_library, close_library)
