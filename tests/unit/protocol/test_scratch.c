/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/scratch.h"
#include "tests/test.h"

#include <stdlib.h>

UNIT_TEST(items_are_zeroed_and_apart)
{
	struct gp_scratch scratch = { 0 };
	uint64_t *first = gp_scratch_alloc_cells(&scratch, 3, 2);
	uint64_t *second = gp_scratch_alloc_cells(&scratch, 1, 1);

	assert_non_null(first);
	assert_non_null(second);
	for (int i = 0; i < 6; i++)
		assert_int_equal(first[i], 0);
	first[5] = UINT64_MAX;
	assert_int_equal(*second, 0);
	gp_scratch_free(&scratch);
	assert_null(scratch.blocks);
}

UNIT_TEST(nothing_has_room_too)
{
	struct gp_scratch scratch = { 0 };

	assert_non_null(gp_scratch_alloc(&scratch, 0, 8));
	gp_scratch_free(&scratch);
}

UNIT_TEST(too_many_are_refused)
{
	struct gp_scratch scratch = { 0 };

	assert_null(gp_scratch_alloc(&scratch, GP_SCRATCH_MAX / 8 + 1, 8));
	assert_null(gp_scratch_alloc_cells(&scratch, SIZE_MAX, 3));
	gp_scratch_free(&scratch);
}

UNIT_TEST(what_is_adopted_goes_with_the_rest)
{
	struct gp_scratch scratch = { 0 };

	assert_true(gp_scratch_adopt(&scratch, malloc(8))); /* the sanitizer finds a leak */
	assert_true(gp_scratch_adopt(&scratch, NULL));
	gp_scratch_free(&scratch);
}

UNIT_TEST_MAIN(NULL, NULL)
