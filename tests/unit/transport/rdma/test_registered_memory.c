/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"
#include "transport/rdma/registered_memory.h"
#include "transport/transport.h"

static uint8_t bytes[1000];

static bool
is_kept(size_t at, size_t size)
{
	struct gp_memory *found = gp_memory_acquire(bytes + at, size);

	if (found)
		gp_memory_release();
	return found != NULL;
}

UNIT_TEST(what_lies_in_one_kept_range_is_found)
{
	gp_memory_register(bytes + 100, 100);
	gp_memory_register(bytes + 300, 50);
	gp_memory_register(bytes + 200, 100);

	assert_true(is_kept(100, 100));
	assert_true(is_kept(199, 1));
	assert_true(is_kept(200, 100));
	assert_true(is_kept(349, 1));
	assert_false(is_kept(99, 1));
	assert_false(is_kept(150, 51));
	assert_false(is_kept(350, 1));
	assert_false(is_kept(0, 1000));
	gp_memory_unregister(bytes + 100);
	gp_memory_unregister(bytes + 200);
	gp_memory_unregister(bytes + 300);
}

UNIT_TEST(a_range_that_overlaps_another_is_not_kept)
{
	gp_memory_register(bytes + 100, 100);
	gp_memory_register(bytes + 150, 100);
	gp_memory_register(bytes + 50, 51);
	gp_memory_register(bytes, 1000);

	assert_true(is_kept(100, 100));
	assert_false(is_kept(200, 1));
	assert_false(is_kept(50, 1));
	/* Nor is it forgotten, whose other half is not. */
	gp_memory_unregister(bytes + 150);
	assert_true(is_kept(150, 1));
	gp_memory_unregister(bytes + 100);
	assert_false(is_kept(100, 1));
}

UNIT_TEST(what_was_forgotten_can_be_kept_again)
{
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 100; i++)
			gp_memory_register(bytes + (i * 37 % 100) * 10, 10);
		for (size_t i = 0; i < 100; i++)
			assert_true(is_kept(i * 10, 10));
		for (size_t i = 0; i < 100; i++)
			gp_memory_unregister(bytes + (i * 61 % 100) * 10);
		for (size_t i = 0; i < 100; i++)
			assert_false(is_kept(i * 10, 1));
	}
}

UNIT_TEST(addresses_near_the_end_of_memory_do_not_wrap)
{
	gp_memory_register(bytes + 100, 100);

	assert_false(is_kept(150, SIZE_MAX));
	assert_false(is_kept(150, SIZE_MAX - 150));
	gp_memory_unregister(bytes + 100);
}

UNIT_TEST_MAIN(NULL, NULL)
