/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/size_text.h"
#include "tests/test.h"

UNIT_TEST(sizes_are_such_as_people_read)
{
	char text[GPD_SIZE_TEXT_MAX];

	assert_string_equal(gpd_size_format(0, text), "0 bytes");
	assert_string_equal(gpd_size_format(1023, text), "1023 bytes");
	assert_string_equal(gpd_size_format(1536, text), "1.5 KiB");
	assert_string_equal(gpd_size_format(4194335, text), "4.0 MiB");
	assert_string_equal(gpd_size_format(UINT64_C(80) << 30, text), "80 GiB");
	assert_string_equal(gpd_size_format(UINT64_MAX, text), "16 EiB");
}

UNIT_TEST_MAIN(NULL, NULL)
