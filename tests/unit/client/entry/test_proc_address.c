/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/proc_address.h"
#include "tests/test.h"

#define DRIVER 12080
#define NEWEST (-1)
#define LEGACY CU_GET_PROC_ADDRESS_LEGACY_STREAM
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
#define NONE (-1)

enum {
	ALLOC,
	ALLOC_V2,
	BATCH,
	BATCH_V2,
	GET_PROC,
	GET_PROC_V2,
	COPY,
	COPY_V2,
	COPY_V2_PTDS,
	FUTURE
};

static const char function_0, function_1;

const void *const gpc_entry_address[] = {
	[GET_PROC] = &function_0,
	[GET_PROC_V2] = &function_1,
	[FUTURE] = NULL,
};

const struct gpc_proc_entry gpc_proc_table[] = {
	{ "cuFuture", 0, 13000, FUTURE },
	{ "cuGetProcAddress", 0, 11030, GET_PROC },
	{ "cuGetProcAddress", 0, 12000, GET_PROC_V2 },
	{ "cuMemAlloc", 0, 2000, ALLOC },
	{ "cuMemAlloc", 0, 3020, ALLOC_V2 },
	{ "cuMemcpyBatch", 0, 12080, BATCH },
	{ "cuMemcpyBatch", 0, 13000, BATCH_V2 },
	{ "cuMemcpyHtoD", 0, 2000, COPY },
	{ "cuMemcpyHtoD", 0, 3020, COPY_V2 },
	{ "cuMemcpyHtoD", 1, 7000, COPY_V2_PTDS },
};
const size_t gpc_proc_count = sizeof(gpc_proc_table) / sizeof(gpc_proc_table[0]);

static void
expect(const char *base, int version, cuuint64_t flags, int symbol,
       CUdriverProcAddressQueryResult status)
{
	const struct gpc_proc_entry *entry = NULL;
	CUdriverProcAddressQueryResult got = 99;

	assert_int_equal(gpc_proc_lookup(gpc_proc_table, gpc_proc_count, base, version, flags,
					 DRIVER, &entry, &got),
			 CUDA_SUCCESS);
	assert_int_equal(got, status);
	assert_int_equal(entry ? entry->symbol : NONE, symbol);
}

UNIT_TEST(newest_version_that_is_not_above_the_one_asked_for_is_found)
{
	expect("cuMemAlloc", 2000, 0, ALLOC, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemAlloc", 3019, 0, ALLOC, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemAlloc", 3020, 0, ALLOC_V2, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemAlloc", 12080, 0, ALLOC_V2, CU_GET_PROC_ADDRESS_SUCCESS);
}

UNIT_TEST(version_above_the_drivers_is_fine_and_minus_one_is_the_newest)
{
	expect("cuMemAlloc", 99999, 0, ALLOC_V2, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemAlloc", NEWEST, 0, ALLOC_V2, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemcpyHtoD", NEWEST, PER_THREAD, COPY_V2_PTDS, CU_GET_PROC_ADDRESS_SUCCESS);
}

UNIT_TEST(version_below_the_first_is_not_sufficient)
{
	expect("cuMemAlloc", 0, 0, NONE, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	expect("cuMemAlloc", 1999, LEGACY, NONE, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

UNIT_TEST(what_is_newer_than_the_driver_does_not_exist)
{
	expect("cuFuture", 13000, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("cuFuture", NEWEST, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("cuMemcpyBatch", 13000, 0, BATCH, CU_GET_PROC_ADDRESS_SUCCESS);
}

UNIT_TEST(names_that_are_no_base_names_are_not_found)
{
	expect("", 13000, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("cuMemAlloc_v2", 13000, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("cuMemcpyHtoD_v2_ptds", 13000, PER_THREAD, NONE,
	       CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("cuMemAll", 13000, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("aaa", 13000, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	expect("zzz", 13000, 0, NONE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

UNIT_TEST(legacy_flag_is_the_default)
{
	expect("cuMemcpyHtoD", 13000, 0, COPY_V2, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemcpyHtoD", 13000, LEGACY, COPY_V2, CU_GET_PROC_ADDRESS_SUCCESS);
}

UNIT_TEST(per_thread_class_is_never_mended_from_the_legacy_one)
{
	expect("cuMemcpyHtoD", 7000, PER_THREAD, COPY_V2_PTDS, CU_GET_PROC_ADDRESS_SUCCESS);
	expect("cuMemcpyHtoD", 6999, PER_THREAD, NONE, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

UNIT_TEST(function_without_a_per_thread_class_is_found_in_the_legacy_one)
{
	expect("cuMemAlloc", 7000, PER_THREAD, ALLOC_V2, CU_GET_PROC_ADDRESS_SUCCESS);
}

UNIT_TEST(unknown_flags_are_invalid_and_touch_nothing)
{
	CUdriverProcAddressQueryResult status = 99;
	void *function = &status;

	assert_int_equal(gpc_proc_address_v2("cuMemAlloc", &function, 13000, 4, DRIVER, &status),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_proc_address_v1("cuMemAlloc", &function, 13000, 1ull << 33, DRIVER),
			 CUDA_ERROR_INVALID_VALUE);
	assert_ptr_equal(function, &status);
	assert_int_equal(status, 99);
}

UNIT_TEST(second_version_succeeds_with_null_when_nothing_fits)
{
	CUdriverProcAddressQueryResult status = 99;
	void *function = &status;

	assert_int_equal(gpc_proc_address_v2("", &function, 0, 0, DRIVER, NULL), CUDA_SUCCESS);
	assert_null(function);

	function = &status;
	assert_int_equal(gpc_proc_address_v2("cuMemAlloc", &function, 1, 0, DRIVER, &status),
			 CUDA_SUCCESS);
	assert_null(function);
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

UNIT_TEST(first_version_fails_and_touches_nothing_when_nothing_fits)
{
	void *function = &function;

	assert_int_equal(gpc_proc_address_v1("cuNone", &function, 13000, 0, DRIVER),
			 CUDA_ERROR_NOT_FOUND);
	assert_int_equal(gpc_proc_address_v1("cuMemAlloc", &function, 1, 0, DRIVER),
			 CUDA_ERROR_NOT_FOUND);
	assert_ptr_equal(function, &function);
}

UNIT_TEST(both_versions_yield_the_function_that_the_table_names)
{
	CUdriverProcAddressQueryResult status = 99;
	void *function = NULL;

	assert_int_equal(gpc_proc_address_v1("cuGetProcAddress", &function, 11040, 0, DRIVER),
			 CUDA_SUCCESS);
	assert_ptr_equal(function, &function_0);
	assert_int_equal(
		gpc_proc_address_v2("cuGetProcAddress", &function, 12000, 0, DRIVER, &status),
		CUDA_SUCCESS);
	assert_ptr_equal(function, &function_1);
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

UNIT_TEST(missing_name_or_output_is_an_invalid_value)
{
	void *function = NULL;

	assert_int_equal(gpc_proc_address_v1(NULL, &function, 13000, 0, DRIVER),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_proc_address_v1("cuMemAlloc", NULL, 13000, 0, DRIVER),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_proc_address_v2(NULL, &function, 13000, 0, DRIVER, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_proc_address_v2("cuMemAlloc", NULL, 13000, 0, DRIVER, NULL),
			 CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST_MAIN(NULL, NULL)
