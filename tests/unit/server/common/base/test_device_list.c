/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/device_list.h"
#include "tests/test.h"

#include <string.h>

UNIT_TEST(a_list_is_read_as_it_was_written)
{
	struct gpd_device_list list = { .used = 0x5, .contexts = 0x4, .count = 3 }, again;
	char text[GPD_DEVICE_LIST_TEXT_MAX];

	for (int i = 0; i < 3; i++)
		memset(list.uuids[i], 0x10 + i, sizeof(list.uuids[i]));
	gpd_device_list_format(&list, text);
	assert_string_equal(text, "5:4,GPU-10101010-1010-1010-1010-101010101010,"
				  "GPU-11111111-1111-1111-1111-111111111111,"
				  "GPU-12121212-1212-1212-1212-121212121212");
	assert_true(gpd_device_list_parse(text, &again));
	assert_memory_equal(&again, &list, sizeof(list));
	assert_true(gpd_device_list_has(&again, 0));
	assert_false(gpd_device_list_has(&again, 1));
	assert_true(gpd_device_list_has(&again, 2));
	assert_false(gpd_device_list_has(&again, 3));
	assert_false(gpd_device_list_has(&again, -1));
}

UNIT_TEST(the_longest_list_fits)
{
	struct gpd_device_list list = { .used = UINT32_MAX,
					.contexts = UINT32_MAX,
					.count = GPD_DEVICE_LIST_MAX },
			       again;
	char text[GPD_DEVICE_LIST_TEXT_MAX];

	gpd_device_list_format(&list, text);
	assert_true(gpd_device_list_parse(text, &again));
	assert_int_equal(again.count, GPD_DEVICE_LIST_MAX);
	assert_true(gpd_device_list_has(&again, GPD_DEVICE_LIST_MAX - 1));
}

UNIT_TEST(before_devices_are_known_a_list_has_numbers_alone)
{
	struct gpd_device_list list;

	assert_true(gpd_device_list_parse("fffffffe:2", &list));
	assert_int_equal(list.contexts, 2);
	assert_int_equal(list.count, 0);
	assert_false(gpd_device_list_has(&list, 0));
	assert_true(gpd_device_list_has(&list, 31));
}

UNIT_TEST(other_texts_are_no_lists)
{
	static const char *const texts[] = {
		"",
		"x",
		"1",
		"1:",
		"1ffffffff:1",
		"1:1ffffffff",
		"1:1,",
		"1:1,GPU-",
		"1:1,GPU-10101010-1010-1010-1010-1010101010",
		"1:1,GPU-10101010-1010-1010-1010-101010101010x",
		"1:1,MIG-10101010-1010-1010-1010-101010101010",
		"1 2",
		"1:1 2",
	};
	struct gpd_device_list list;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (gpd_device_list_parse(texts[i], &list))
			fail_msg("\"%s\" is a list", texts[i]);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
