/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"
#include "transport/timeout.h"
#include "transport/transport.h"

#include <limits.h>
#include <stdio.h>

static void
expect(const char *seconds, const char *milliseconds, unsigned int ms, bool given, const char *text)
{
	char said[256];
	unsigned int got;
	bool got_given;

	assert_int_equal(
		gp_timeout_parse(seconds, milliseconds, &got, &got_given, said, sizeof(said)), 0);
	assert_int_equal(got, ms);
	assert_int_equal(got_given, given);
	assert_string_equal(said, text);
	assert_int_equal(gp_timeout_get_ms(seconds, milliseconds), ms);
}

UNIT_TEST(seconds_are_a_number_or_the_default)
{
	expect(NULL, NULL, 30000, false, "");
	expect("", "", 30000, false, "");
	expect("1", NULL, 1000, true, "");
	expect("86400", NULL, 86400000, true, "");
}

UNIT_TEST(an_invalid_number_is_named_with_its_range)
{
	static const char *const wrong[] = { "0",  "-1", "86401", "99999999999999999999",
					     "5s", " 5", "1.5",   "many" };
	char said[256], text[256];
	unsigned int ms;
	bool given;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(text, sizeof(text),
			       "GPUPOOL_TIMEOUT=%s: not a whole number of seconds from 1 to 86400; "
			       "use 30, or leave it out",
			       wrong[i]);
		/* Whatever else is set. */
		assert_int_equal(gp_timeout_parse(wrong[i], "100", &ms, &given, said, sizeof(said)),
				 GP_E_INVALID);
		assert_string_equal(said, text);
		assert_int_equal(gp_timeout_get_ms(wrong[i], NULL), GP_CONN_TIMEOUT_MS);
	}
}

UNIT_TEST(the_earlier_form_holds_with_a_warning)
{
	static const char warning[] = "GPUPOOL_STALL_MS is the earlier form of GPUPOOL_TIMEOUT, "
				      "which is in seconds: use GPUPOOL_TIMEOUT=%s";
	char said[256], text[256];
	unsigned int ms;
	bool given;

	(void)snprintf(text, sizeof(text), warning, "2");
	expect(NULL, "1500", 1500, true, text);
	(void)snprintf(text, sizeof(text), warning, "86400");
	expect(NULL, "0", 0, true, text);
	expect("", "99999999999999999999", INT_MAX, true, text);
	expect("7", "1500", 7000, true, "GPUPOOL_STALL_MS has no effect beside GPUPOOL_TIMEOUT");
	assert_int_equal(gp_timeout_parse(NULL, "-1", &ms, &given, said, sizeof(said)),
			 GP_E_INVALID);
	assert_string_equal(said, "GPUPOOL_STALL_MS=-1: not a number of milliseconds; use "
				  "GPUPOOL_TIMEOUT, in seconds");
}

UNIT_TEST(a_time_is_written_in_seconds)
{
	char text[GP_TIMEOUT_TEXT_MAX];

	gp_timeout_format(30000, text);
	assert_string_equal(text, "30 s");
	gp_timeout_format(1050, text);
	assert_string_equal(text, "1.050 s");
	gp_timeout_format(UINT_MAX, text);
	assert_string_equal(text, "4294967.295 s");
}

UNIT_TEST_MAIN(NULL, NULL)
