/* SPDX-License-Identifier: Apache-2.0 */
#include "base/similar.h"
#include "tests/test.h"

static void
distances_count_letters(void **state)
{
	assert_int_equal(gp_edit_distance("", ""), 0);
	assert_int_equal(gp_edit_distance("run", "run"), 0);
	assert_int_equal(gp_edit_distance("RUN", "run"), 0);
	assert_int_equal(gp_edit_distance("", "run"), 3);
	assert_int_equal(gp_edit_distance("devces", "devices"), 1);
	assert_int_equal(gp_edit_distance("deviecs", "devices"), 1);
	assert_int_equal(gp_edit_distance("deices", "device"), 2);
	assert_int_equal(gp_edit_distance("kitten", "sitting"), 3);
	/* Without more work than for short ones. */
	assert_int_equal(gp_edit_distance("12345678901234567890123456789012", "1234"), 32);
}

static void
the_word_that_is_most_like_it_is_found(void **state)
{
	static const char *const words[] = { "check", "devices", "env", "run" };

	assert_string_equal(gp_suggest("chekc", words, 4), "check");
	assert_string_equal(gp_suggest("device", words, 4), "devices");
	assert_string_equal(gp_suggest("rnu", words, 4), "run");
	assert_null(gp_suggest("status", words, 4));
	assert_null(gp_suggest("", words, 4));
	assert_null(gp_suggest("run", words, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_count_letters),
		cmocka_unit_test(the_word_that_is_most_like_it_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
