/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the driver's functions, filled from a library that lacks some. */
#include "server/worker/device/driver.h"
#include "tests/test.h"

UNIT_TEST(each_function_is_listed_once)
{
	assert_true(gpd_driver_function_count > 0);
	for (size_t i = 0; i < gpd_driver_function_count; i++) {
		assert_true(gpd_driver_functions[i].offset % sizeof(void *) == 0);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(gpd_driver_functions[j].name,
						gpd_driver_functions[i].name);
	}
}

UNIT_TEST(a_missing_function_is_not_supported)
{
	char error[200];

	assert_int_equal(gpd_driver_open(FEW_FUNCTIONS, true, error, sizeof(error)), 0);
	assert_true(gpd_driver_has(cuInit));
	assert_false(gpd_driver_has(cuGreenCtxDestroy));
	assert_int_equal(gpd_driver.cuGreenCtxDestroy(NULL), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpd_driver.cuInit(0), CUDA_SUCCESS);
	assert_false(gpd_driver.software);
}

UNIT_TEST(a_library_without_a_required_function_is_refused)
{
	char error[200];

	assert_int_equal(gpd_driver_open("libc.so.6", true, error, sizeof(error)), -1);
	assert_string_equal(error, "libc.so.6: not a CUDA driver library: it has no cuInit");
}

UNIT_TEST_MAIN(NULL, NULL)
