/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/mapping_quota.h"
#include "tests/test.h"

/* Returns the number of objects that the session gets. */
static unsigned int
acquire_all(struct gpd_mapping_quota *quota, atomic_uint *used)
{
	unsigned int count = 0;

	while (gpd_mapping_quota_acquire(quota, used))
		count++;
	return count;
}

UNIT_TEST(a_session_has_its_part_when_others_have_the_rest)
{
	struct gpd_mapping_quota quota = { .part = 2, .max = 10, .more = 12 };
	atomic_uint one = 0, two = 0, three = 0;

	assert_int_equal(acquire_all(&quota, &one), 10);
	assert_int_equal(acquire_all(&quota, &two), 6);
	assert_int_equal(acquire_all(&quota, &three), 2);
	assert_int_equal(quota.extra, 12);
	/* Another session gets the ones that a session releases. */
	for (int i = 0; i < 3; i++)
		gpd_mapping_quota_release(&quota, &one);
	assert_int_equal(acquire_all(&quota, &three), 3);
}

UNIT_TEST(what_is_released_can_be_had_again)
{
	struct gpd_mapping_quota quota = { .part = 2, .max = 6, .more = 100 };
	atomic_uint used = 0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(acquire_all(&quota, &used), 6);
		assert_int_equal(used, 6);
		while (used)
			gpd_mapping_quota_release(&quota, &used);
		assert_int_equal(quota.extra, 0);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
