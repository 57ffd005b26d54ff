/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that the program has set, and those that it was started with. */
#include "base/environment.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char variable[] = "GPUPOOL_TEST_VARIABLE";

UNIT_TEST(variable_is_found_by_its_whole_name)
{
	static const char block[] = "AB=1\0A=2\0=3\0ABC\0A=4\0EMPTY=";

	assert_string_equal(gp_environment_find(block, sizeof(block), "A"), "2");
	assert_string_equal(gp_environment_find(block, sizeof(block), "AB"), "1");
	assert_string_equal(gp_environment_find(block, sizeof(block), "EMPTY"), "");
	assert_null(gp_environment_find(block, sizeof(block), "ABC"));
	assert_null(gp_environment_find(block, sizeof(block), "B"));
	assert_null(gp_environment_find(block, 0, "AB"));
}

UNIT_TEST(cleared_environment_is_what_it_was)
{
	/* CMocka's own. */
	static const char format[] = "CMOCKA_MESSAGE_OUTPUT";
	char *wanted = getenv(format) ? strdup(getenv(format)) : NULL;

	assert_string_equal(gp_environment_get(variable), "at start");
	assert_int_equal(setenv(variable, "changed", 1), 0);
	assert_string_equal(gp_environment_get(variable), "changed");
	assert_int_equal(setenv(variable, "", 1), 0);
	assert_string_equal(gp_environment_get(variable), "");
	assert_int_equal(clearenv(), 0);
	assert_string_equal(gp_environment_get(variable), "at start");
	assert_null(gp_environment_get("GPUPOOL_ANOTHER_VARIABLE"));
	if (wanted)
		(void)setenv(format, wanted, 1);
	free(wanted);
}

int
main(int argc, char **argv)
{
	/* A process that is started with the variable. */
	if (argc < 2) {
		(void)setenv(variable, "at start", 1);
		(void)execl("/proc/self/exe", argv[0], "started", (char *)NULL);
		return 1;
	}
	return unit_tests_run(NULL, NULL);
}
