/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the configuration: how it is written, the sample, and the manual's examples. */
#include "tests/unit/server/config_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

UNIT_TEST(file_may_be_written_in_many_ways)
{
	struct gpd_config *config = parsed("\xef\xbb\xbf# a byte order mark, and lines of DOS\r\n"
					   "[tenant a] ; one\r\n"
					   "\r\n"
					   "  weight=3 ; three\r\n"
					   "\tlimit : 30 # thirty\r\n"
					   "memory\t=\t4G\r\n"
					   "  [tenant b]\r\n"
					   "weight = 7");

	assert_int_equal(config->tenant_count, 3);
	assert_int_equal(config->tenants[1].devices[0].weight, 3);
	assert_int_equal(config->tenants[1].devices[0].limit, 30);
	assert_amount(&config->tenants[1].devices[0].memory, 4 * GIB, 0);
	assert_int_equal(config->tenants[2].devices[0].weight, 7);
	gpd_config_free(config);
}

UNIT_TEST(list_goes_on_after_a_comma)
{
	static const struct refusal refusals[] = {
		{ "[tenant a]\nusers = alice,\n[tenant b]\n",
		  "gpupoold.conf:2: [tenant a] users: list ends with a comma" },
		{ "[tenant a]\nusers = alice,\n",
		  "gpupoold.conf:2: [tenant a] users: list ends with a comma" },
		{ "[tenant a]\nusers = alice,\nweight = 3\n",
		  "gpupoold.conf:3: [tenant a] users = weight = 3: \"weight = 3\" is not a valid "
		  "user name (1 to 63 characters, no blanks; a list is alice,bob)" },
	};
	struct gpd_config *config = parsed("[tenant a]\n"
					   "users = alice, ; first\n"
					   "  bob, # second\n"
					   "\n"
					   "# nobody\n"
					   "carol\n"
					   "weight = 3\n"
					   "devices = 1,\n"
					   "2\n");

	assert_int_equal(config->tenants[1].user_count, 3);
	assert_string_equal(config->tenants[1].users[1], "bob");
	assert_string_equal(config->tenants[1].users[2], "carol");
	assert_int_equal(config->tenants[1].devices[0].weight, 3);
	assert_int_equal(config->tenants[1].devices[0].allowed, 0);
	assert_int_equal(config->tenants[1].devices[2].allowed, 1);
	gpd_config_free(config);
	ASSERT_ALL_REFUSED(refusals);
}

static void
assert_load_refused(const void *bytes, size_t size, const char *wanted)
{
	char path[] = "/tmp/gpupoold.conf.XXXXXX", error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config;
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	close(fd);
	r = gpd_config_load(path, &config, error, sizeof(error));
	unlink(path);
	assert_int_equal(r, GP_E_INVALID);
	assert_memory_equal(error, path, strlen(path));
	assert_string_equal(error + strlen(path), wanted);
}

UNIT_TEST(file_is_loaded_or_refused_by_name)
{
	char path[] = "/tmp/gpupoold.conf.XXXXXX", error[GPD_CONFIG_ERROR_MAX] = "";
	static const char text[] = "[tenant a]\nweight = 3\n";
	struct gpd_config *config = NULL;
	int fd = mkstemp(path);
	char *large;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	assert_int_equal(gpd_config_load(path, &config, error, sizeof(error)), 0);
	assert_int_equal(config->tenants[1].devices[0].weight, 3);
	gpd_config_free(config);
	unlink(path);

	config = NULL;
	assert_int_equal(gpd_config_load("/nowhere/gpupoold.conf", &config, error, sizeof(error)),
			 -ENOENT);
	assert_string_equal(error, "/nowhere/gpupoold.conf: No such file or directory");
	assert_int_equal(gpd_config_load("/", &config, error, sizeof(error)), -EISDIR);
	assert_string_equal(error, "/: Is a directory");
	assert_null(config);

	assert_load_refused("[tenant a]\nweight = 3\0\n", 23,
			    ":2: not a text file: contains a zero byte");
	large = malloc((1 << 20) + 1);
	assert_non_null(large);
	memset(large, '\n', (1 << 20) + 1);
	assert_load_refused(large, (1 << 20) + 1, ": larger than 1 MiB");
	free(large);
}

UNIT_TEST(sample_changes_nothing_as_it_stands)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *sample, *none;
	int r = gpd_config_load(getenv("GP_TEST_CONFIG"), &sample, error, sizeof(error));

	if (r)
		print_error("%s\n", error);
	assert_int_equal(r, 0);
	assert_int_equal(gpd_config_load(NULL, &none, error, sizeof(error)), 0);
	assert_int_equal(sample->tenant_count, 1);
	/* It stands there, and says nothing. */
	free(sample->tenants->lines);
	sample->tenants->lines = NULL;
	sample->tenants->line = 0;
	assert_memory_equal(sample->tenants, none->tenants, sizeof(*none->tenants));
	gpd_config_free(sample);
	gpd_config_free(none);
}

/* The text of the page's next example from *page_p on, without its marks; false: no more. */
static bool
next_example(const char **page_p, char *text, size_t size)
{
	const char *begin = strstr(*page_p, "\n.nf\n"), *end;
	size_t length = 0;

	if (!begin)
		return false;
	begin += strlen("\n.nf\n");
	end = strstr(begin, ".fi\n");
	assert_non_null(end);
	for (const char *c = begin; c < end; c++)
		if (*c != '\\') {
			assert_true(length + 1 < size);
			text[length++] = *c;
		}
	text[length] = 0;
	*page_p = end;
	return true;
}

UNIT_TEST(examples_of_the_manual_are_taken)
{
	static char page[1 << 16];
	FILE *file = fopen(getenv("GP_TEST_CONFIG_PAGE"), "re");
	char example[1024];
	const char *at;
	int count = 0;

	assert_non_null(file);
	(void)fread(page, 1, sizeof(page) - 1, file);
	fclose(file);
	at = strstr(page, ".SH EXAMPLES\n");
	assert_non_null(at);
	for (; next_example(&at, example, sizeof(example)); count++)
		gpd_config_free(parsed(example));
	assert_int_equal(count, 3);
}

UNIT_TEST_MAIN(NULL, NULL)
