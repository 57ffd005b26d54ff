/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/similar.h"
#include "server/common/base/size_text.h"
#include "tests/test.h"

#include <string.h>

static const char *
meant(const char *word)
{
	static const char *const words[] = { "status", "device", "client",
					     "tenant", "top",    "time-share" };
	struct gpd_similar similar = { .word = word };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		gpd_similar_try(&similar, words[i]);
	return similar.best;
}

static void
a_word_that_is_near_is_found(void **state)
{
	assert_string_equal(meant("statsu"), "status");
	assert_string_equal(meant("stauts"), "status");
	assert_string_equal(meant("Tenant"), "tenant");
	assert_string_equal(meant("tenents"), "tenant");
	assert_string_equal(meant("tpo"), "top");
	assert_string_equal(meant("timeshare"), "time-share");
}

static void
what_is_far_is_none(void **state)
{
	static char longer[200];

	memset(longer, 'a', sizeof(longer) - 1);
	assert_null(meant("frobnicate"));
	assert_null(meant("x"));
	assert_null(meant(""));
	assert_null(meant(longer));
}

static void
sizes_are_such_as_people_read(void **state)
{
	char text[GPD_SIZE_TEXT_MAX];

	assert_string_equal(gpd_size_text(0, text), "0 bytes");
	assert_string_equal(gpd_size_text(1023, text), "1023 bytes");
	assert_string_equal(gpd_size_text(1536, text), "1.5 KiB");
	assert_string_equal(gpd_size_text(4194335, text), "4.0 MiB");
	assert_string_equal(gpd_size_text(UINT64_C(80) << 30, text), "80 GiB");
	assert_string_equal(gpd_size_text(UINT64_MAX, text), "16 EiB");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_that_is_near_is_found),
		cmocka_unit_test(what_is_far_is_none),
		cmocka_unit_test(sizes_are_such_as_people_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
