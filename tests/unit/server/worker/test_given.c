/* SPDX-License-Identifier: Apache-2.0 */
/* How far a device pointer reaches that a generated call gives the driver. */
#include "server/worker/given.h"
#include "tests/test.h"

static void
rows_reach_to_the_last_byte_of_the_last(void **state)
{
	assert_int_equal(gpd_span(4, 16, 0, 1), 64);
	assert_int_equal(gpd_span(4, 16, 512, 3), 2 * 512 + 64);
	assert_int_equal(gpd_span(4, 16, 512, 1), 64);
	assert_int_equal(gpd_span(4, 0, 512, 2), 512);
	assert_int_equal(gpd_span(0, 16, 512, 1), 0);
}

static void
no_rows_reach_nowhere(void **state)
{
	assert_int_equal(gpd_span(UINT64_MAX, UINT64_MAX, UINT64_MAX, 0), 0);
}

static void
more_than_a_number_holds_is_more_than_there_is(void **state)
{
	assert_int_equal(gpd_span(1ull << 32, 1ull << 32, 0, 1), UINT64_MAX);
	assert_int_equal(gpd_span(1, 1, 1ull << 63, 3), UINT64_MAX);
	assert_int_equal(gpd_span(1ull << 32, (1ull << 32) - 1, 1ull << 32, 2), UINT64_MAX);
	assert_int_equal(gpd_span(1, UINT64_MAX - 1, 1, 2), UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_reach_to_the_last_byte_of_the_last),
		cmocka_unit_test(no_rows_reach_nowhere),
		cmocka_unit_test(more_than_a_number_holds_is_more_than_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
