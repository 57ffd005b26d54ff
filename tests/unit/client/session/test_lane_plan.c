/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/lane_plan.h"
#include "tests/test.h"

#define MS 1000000ull

UNIT_TEST(on_a_short_link_lanes_go_by_the_cores)
{
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t round_trip = i ? MS / 5 : 0;

		assert_int_equal(gpc_lane_count(15, 1, round_trip, false), 0);
		assert_int_equal(gpc_lane_count(15, 3, round_trip, false), 0);
		assert_int_equal(gpc_lane_count(15, 4, round_trip, false), 2);
		assert_int_equal(gpc_lane_count(15, 16, round_trip, false), 7);
		assert_int_equal(gpc_lane_count(15, 64, round_trip, false), 7);
	}
}

UNIT_TEST(on_a_long_link_they_go_by_the_round_trip)
{
	assert_int_equal(gpc_lane_count(15, 1, MS, false), 2);
	assert_int_equal(gpc_lane_count(15, 2, 2 * MS, false), 4);
	assert_int_equal(gpc_lane_count(15, 2, 30 * MS, false), 7);
	assert_int_equal(gpc_lane_count(15, 16, MS, false), 7);
}

UNIT_TEST(there_are_no_more_than_allowed_and_never_one_alone)
{
	assert_int_equal(gpc_lane_count(3, 16, 0, false), 3);
	assert_int_equal(gpc_lane_count(1, 16, 30 * MS, false), 0);
	assert_int_equal(gpc_lane_count(0, 16, 30 * MS, false), 0);
	assert_int_equal(gpc_lane_count(15, 64, 30 * MS, true), 3);
}

UNIT_TEST(a_copy_that_nobody_waits_for_goes_over_lanes_earlier)
{
	assert_int_equal(gpc_lane_copy_min(false), GPC_LANE_COPY_MIN);
	assert_true(gpc_lane_copy_min(true) < GPC_LANE_COPY_MIN);
}

UNIT_TEST_MAIN(NULL, NULL)
