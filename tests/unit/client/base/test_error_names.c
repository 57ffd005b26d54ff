/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/error_names.h"
#include "tests/test.h"

#include <string.h>

static void
expect(CUresult error, const char *expected_name, const char *expected_string)
{
	const char *name = NULL, *string = NULL;

	assert_int_equal(gpc_error_name(error, &name), CUDA_SUCCESS);
	assert_int_equal(gpc_error_string(error, &string), CUDA_SUCCESS);
	assert_string_equal(name, expected_name);
	assert_string_equal(string, expected_string);
}

UNIT_TEST(known_errors_have_their_name_and_description)
{
	expect(CUDA_SUCCESS, "CUDA_SUCCESS", "no error");
	expect(CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument");
	expect(CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory");
	expect(CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
	       "an illegal memory access was encountered");
	expect(CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error");
}

UNIT_TEST(every_name_and_description_is_its_own)
{
	const char *names[1000], *strings[1000];
	int known = 0;

	for (int error = 0; error < 1000; error++) {
		if (gpc_error_name((CUresult)error, &names[known]) != CUDA_SUCCESS)
			continue;
		assert_int_equal(gpc_error_string((CUresult)error, &strings[known]), CUDA_SUCCESS);
		assert_true(strlen(strings[known]) > 0);
		for (int i = 0; i < known; i++)
			assert_string_not_equal(names[i], names[known]);
		known++;
	}
	assert_true(known > 100);
}

UNIT_TEST(unknown_value_is_an_invalid_value_and_yields_null)
{
	static const int unknown[] = { -1, 9, 998, 1000, 0x7fffffff };
	const char *name = "", *string = "";

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		name = string = "";
		assert_int_equal(gpc_error_name((CUresult)unknown[i], &name),
				 CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(gpc_error_string((CUresult)unknown[i], &string),
				 CUDA_ERROR_INVALID_VALUE);
		assert_null(name);
		assert_null(string);
	}
}

UNIT_TEST(missing_output_is_an_invalid_value)
{
	assert_int_equal(gpc_error_name(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_error_string(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST_MAIN(NULL, NULL)
