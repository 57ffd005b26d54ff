/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/sessions.h"
#include "tests/test.h"

UNIT_TEST(a_nap_is_a_small_part_of_the_wait)
{
	uint64_t last = 0;

	for (uint64_t waited = 1; waited < UINT64_C(1000000000000); waited *= 2) {
		uint64_t nap = gpd_sessions_nap_ns(waited);

		assert_true(nap >= last);
		assert_true(nap >= 2000);
		assert_true(nap == 2000 || nap <= waited / 32);
		assert_true(nap <= 50000 || nap <= waited / 512);
		last = nap;
	}
}

UNIT_TEST(waiting_for_seconds_costs_few_polls)
{
	assert_int_equal(gpd_sessions_nap_ns(UINT64_C(1500000000)), 2000000);
	assert_int_equal(gpd_sessions_nap_ns(UINT64_MAX), 2000000);
	/* A short step is polled as before. */
	assert_int_equal(gpd_sessions_nap_ns(320000), 10000);
	assert_int_equal(gpd_sessions_nap_ns(10000000), 50000);
}

UNIT_TEST_MAIN(NULL, NULL)
