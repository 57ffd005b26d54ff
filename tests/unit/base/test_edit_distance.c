/* SPDX-License-Identifier: Apache-2.0 */
#include "base/edit_distance.h"
#include "tests/test.h"

UNIT_TEST(distances_count_letters)
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

UNIT_TEST(the_word_that_is_most_like_it_is_found)
{
	static const char *const words[] = { "check", "devices", "env", "run" };

	assert_string_equal(gp_suggest("chekc", words, 4), "check");
	assert_string_equal(gp_suggest("device", words, 4), "devices");
	assert_string_equal(gp_suggest("rnu", words, 4), "run");
	assert_null(gp_suggest("status", words, 4));
	assert_null(gp_suggest("", words, 4));
	assert_null(gp_suggest("run", words, 0));
}

UNIT_TEST_MAIN(NULL, NULL)
