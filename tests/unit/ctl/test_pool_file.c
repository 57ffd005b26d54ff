/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pool_file.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

UNIT_TEST(options_are_taken_out_of_the_words)
{
	char *words[] = { "create", "--expires", "30d",           "alice",
			  "-o",     "file",      "--comment=a=b", "--force" };
	const char *expires = NULL, *output = NULL, *comment = NULL, *folder = NULL;
	bool force = false;
	const struct ctl_option options[] = { { "--expires", "-e", &expires, NULL },
					      { "--output", "-o", &output, NULL },
					      { "--comment", NULL, &comment, NULL },
					      { "--directory", "-D", &folder, NULL },
					      { "--force", NULL, NULL, &force } };
	int count = 8;

	assert_int_equal(ctl_parse_options(options, 5, &count, words), 0);
	assert_int_equal(count, 2);
	assert_string_equal(words[0], "create");
	assert_string_equal(words[1], "alice");
	assert_string_equal(expires, "30d");
	assert_string_equal(output, "file");
	assert_string_equal(comment, "a=b");
	assert_null(folder);
	assert_true(force);
}

UNIT_TEST(two_hyphens_end_the_options)
{
	char *words[] = { "--force", "--", "--expires", "--", "-x" };
	char *value[] = { "--expires", "--", "-x" };
	const char *expires = NULL;
	bool force = false;
	const struct ctl_option options[] = { { "--expires", "-e", &expires, NULL },
					      { "--force", NULL, NULL, &force } };
	int count = 5;

	assert_int_equal(ctl_parse_options(options, 2, &count, words), 0);
	assert_true(force);
	assert_null(expires);
	assert_int_equal(count, 3);
	assert_string_equal(words[0], "--expires");
	assert_string_equal(words[1], "--");
	assert_string_equal(words[2], "-x");
	/* As an option's value they end nothing, as with getopt(). */
	count = 3;
	assert_int_equal(ctl_parse_options(options, 2, &count, value), -1);
	assert_string_equal(expires, "--");
}

UNIT_TEST(options_that_are_none_are_refused)
{
	const char *expires = NULL;
	bool force = false;
	const struct ctl_option options[] = { { "--expires", "-e", &expires, NULL },
					      { "--force", NULL, NULL, &force } };
	char *unknown[] = { "--expire", "3d" }, *missing[] = { "--expires" },
	     *surplus[] = { "--force=yes" };
	int count = 2;

	assert_int_equal(ctl_parse_options(options, 2, &count, unknown), -1);
	count = 1;
	assert_int_equal(ctl_parse_options(options, 2, &count, missing), -1);
	count = 1;
	assert_int_equal(ctl_parse_options(options, 2, &count, surplus), -1);
	assert_false(force);
}

UNIT_TEST(durations_have_a_unit)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = { { "90s", 90 },         { "30m", 1800 },       { "12h", 43200 },
		     { "30d", 2592000 },    { "2w", 1209600 },     { "1y", 31536000 },
		     { "999999s", 999999 }, { "never", INT64_MAX } };
	static const char *const wrong[] = { "",     "30",   "d",    "0d",      "-1d",
					     "1.5d", "30 d", "30dd", "1000000y" };
	int64_t seconds;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(ctl_parse_duration(good[i].text, &seconds));
		assert_int_equal(seconds, good[i].seconds);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(ctl_parse_duration(wrong[i], &seconds));
}

UNIT_TEST(a_file_is_replaced_only_by_force)
{
	char folder[] = "/tmp/gpupool-file-XXXXXX", below[64], path[80], text[8] = "";
	struct stat status;
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(below, sizeof(below), "%s/a/b", folder);
	snprintf(path, sizeof(path), "%s/file", below);
	assert_int_equal(ctl_make_folder(below), 0);
	assert_int_equal(ctl_make_folder(below), 0);
	assert_int_equal(ctl_write_file(path, "one", 3, 0600, false), 0);
	assert_int_equal(ctl_write_file(path, "two", 3, 0600, false), -1);
	file = fopen(path, "r");
	assert_int_equal(fread(text, 1, sizeof(text), file), 3);
	fclose(file);
	assert_string_equal(text, "one");
	assert_int_equal(ctl_write_file(path, "three", 5, 0600, true), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 5);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(unlink(path), 0);
	/* Nothing else was left there. */
	assert_int_equal(rmdir(below), 0);
	*strrchr(below, '/') = 0;
	assert_int_equal(rmdir(below), 0);
	assert_int_equal(rmdir(folder), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
