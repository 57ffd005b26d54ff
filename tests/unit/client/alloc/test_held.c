/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that are not to be used again yet. */
#include "client/alloc/held.h"
#include "tests/test.h"

static struct gpc_held held;

static void
the_oldest_goes_first_and_makes_room(void **state)
{
	struct gpc_heap_range range = { .base = 0, .size = 1 }, oldest;

	assert_false(gpc_held_take(&held, &oldest));
	for (; range.base < GPC_HELD_MAX; range.base++)
		assert_false(gpc_held_put(&held, &range, &oldest));
	/* Twice around. */
	for (; range.base < UINT64_C(3) * GPC_HELD_MAX; range.base++) {
		assert_true(gpc_held_put(&held, &range, &oldest));
		assert_int_equal(oldest.base, range.base - GPC_HELD_MAX);
	}
	for (uint64_t i = 0; i < GPC_HELD_MAX; i++) {
		assert_true(gpc_held_take(&held, &oldest));
		assert_int_equal(oldest.base, range.base - GPC_HELD_MAX + i);
	}
	assert_false(gpc_held_take(&held, &oldest));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_goes_first_and_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
