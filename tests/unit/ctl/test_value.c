/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write and read them. */
#include "ctl/value.h"
#include "tests/test.h"

#include <string.h>

UNIT_TEST(sizes_are_multiples_of_1024_in_every_spelling)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "1073741824", 1 << 30 },
		{ "1G", 1 << 30 },
		{ "1g", 1 << 30 },
		{ "1GB", 1 << 30 },
		{ "1GiB", 1 << 30 },
		{ "1.5 GiB", 3 << 29 },
		{ "512M", 512 << 20 },
		{ ".5K", 512 },
		{ "7B", 7 },
		{ "2T", (uint64_t)2 << 40 },
		{ "18446744073709551614", UINT64_MAX - 1 },
	};
	static const char *const bad[] = { "",    "G",    "1X",  "1.2.3",    "-1", "1e3",
					   "1GX", "1Gi2", "1 2", "9999999P", ".",  "0x10" };
	uint64_t bytes = 1;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(ctl_parse_bytes(good[i].text, &bytes));
		assert_true(bytes == good[i].bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (ctl_parse_bytes(bad[i], &bytes))
			fail_msg("\"%s\" is taken for %llu", bad[i], (unsigned long long)bytes);
		assert_int_equal(bytes, 77);
	}
}

UNIT_TEST(percentages_are_above_0_and_up_to_100)
{
	uint32_t hundredths;

	assert_true(ctl_parse_percent("33.33", &hundredths));
	assert_int_equal(hundredths, 3333);
	assert_true(ctl_parse_percent("100%", &hundredths));
	assert_int_equal(hundredths, 10000);
	assert_true(ctl_parse_percent("0.001", &hundredths));
	assert_int_equal(hundredths, 1);
	assert_false(ctl_parse_percent("0", &hundredths));
	assert_false(ctl_parse_percent("100.01", &hundredths));
	assert_false(ctl_parse_percent("50%%", &hundredths));
	assert_false(ctl_parse_percent("%", &hundredths));
	assert_false(ctl_parse_percent("", &hundredths));
}

UNIT_TEST(numbers_are_digits_within_their_range)
{
	uint64_t number;

	assert_true(ctl_parse_number("5", 5, 5, &number));
	assert_false(ctl_parse_number("6", 1, 5, &number));
	assert_false(ctl_parse_number(" 5", 1, 5, &number));
	assert_false(ctl_parse_number("+5", 1, 5, &number));
	assert_false(ctl_parse_number("99999999999999999999999", 0, UINT64_MAX, &number));
	assert_false(ctl_parse_number("", 0, 5, &number));
}

UNIT_TEST(a_setting_is_a_name_and_a_value)
{
	Gpupool__AdminSetting setting;

	assert_null(ctl_parse_setting("memory=25%", &setting));
	assert_int_equal(setting.key, GPUPOOL__ADMIN_SETTING__KEY__MEMORY);
	assert_int_equal(setting.share, 2500);
	assert_null(ctl_parse_setting("memory=none", &setting));
	assert_true(setting.number == UINT64_MAX);
	assert_null(ctl_parse_setting("sm=all", &setting));
	assert_int_equal(setting.number, 0);
	assert_int_equal(setting.share, 0);
	assert_null(ctl_parse_setting("priority=high", &setting));
	assert_int_equal(setting.number, 2);
	assert_null(ctl_parse_setting("limit=30%", &setting));
	assert_int_equal(setting.number, 30);
	assert_int_equal(setting.share, 0);
	assert_null(ctl_parse_setting("bandwidth=1GiB/s", &setting));
	assert_int_equal(setting.number, 1 << 30);
	assert_null(ctl_parse_setting("bandwidth=none", &setting));
	assert_true(setting.number == UINT64_MAX);
}

UNIT_TEST(what_is_wrong_with_a_setting_is_said)
{
	static const struct {
		const char *text, *wrong;
	} bad[] = {
		{ "memory", "sets none of" },
		{ "=5", "sets none of" },
		{ "memor=5", "sets none of" },
		{ "memory=", "is not a valid size" },
		{ "memory=5%x", "is not a valid size" },
		{ "sm=0", "is not a valid number of multiprocessors" },
		{ "sm=-1", "is not a valid number of multiprocessors" },
		{ "weight=1001", "is not a weight" },
		{ "limit=12.5%", "percentage from 1 to 100" },
		{ "share=101", "percentage from 0 to 100" },
		{ "limit=0", "percentage from 1 to 100" },
		{ "limit=%", "is not a whole" },
		{ "limit=5%%", "is not a whole" },
		{ "priority=3", "is not one of" },
		{ "bandwidth=/s", "bytes per second from 64K" },
	};
	Gpupool__AdminSetting setting;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *wrong = ctl_parse_setting(bad[i].text, &setting);

		if (!wrong || !strstr(wrong, bad[i].wrong))
			fail_msg("%s: %s", bad[i].text, wrong ? wrong : "taken");
	}
}

UNIT_TEST(sizes_and_times_are_short_for_people)
{
	char text[CTL_VALUE_MAX];

	assert_string_equal(ctl_format_bytes(0, text), "0 B");
	assert_string_equal(ctl_format_bytes(1023, text), "1023 B");
	assert_string_equal(ctl_format_bytes(3 << 29, text), "1.5 GiB");
	assert_string_equal(ctl_format_bytes((uint64_t)143771 << 20, text), "140 GiB");
	assert_string_equal(ctl_format_bytes(UINT64_MAX, text), "16 EiB");
	assert_string_equal(ctl_format_ns(2345000000, text), "2.35 s");
	assert_string_equal(ctl_format_ns((uint64_t)3725 * 1000000000, text), "1 h 02 m");
	assert_string_equal(ctl_format_age(59, text), "59 s");
	assert_string_equal(ctl_format_age(61, text), "1 m 01 s");
	assert_string_equal(ctl_format_age(90000, text), "1 d 01 h");
	assert_string_equal(ctl_priority_name(7), "?");
}

UNIT_TEST_MAIN(NULL, NULL)
