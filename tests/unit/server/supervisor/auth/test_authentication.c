/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/pool_folder.h"
#include "server/supervisor/auth/authentication.h"
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[96];
static char error[GPD_TOKEN_ERROR_MAX];
static struct gpd_authentication authentication;
static struct gpd_principal pass = { .by = GPD_AUTH_BY_TOKEN, .tenant = "alice" };

/* A gate with a file that has the token of the pass. */
static int
open_gate(void **state)
{
	static const struct gpd_config config;
	struct gp_token token;

	snprintf(folder, sizeof(folder), "/tmp/gpupool-gate-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/tokens", folder);
	if (gpd_tokens_create(path, "alice", INT64_MAX, "", &token, error, sizeof(error)))
		return -1;
	memcpy(pass.token, token.id, sizeof(pass.token));
	return gpd_authentication_open(&authentication, &config, path, false, error, sizeof(error));
}

static int
close_gate(void **state)
{
	char lock[128];

	gpd_authentication_close(&authentication);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	(void)unlink(lock);
	(void)unlink(path);
	return rmdir(folder);
}

/* Its time is the test's, so that it shows whether it is the first failure that counts. */
static const char *
look(int64_t now_ms)
{
	gpd_authentication_refresh(&authentication, now_ms);
	return gpd_authentication_recheck(&authentication, &pass, now_ms);
}

#define GATE_TEST(test) UNIT_TEST_WITH(test, open_gate, close_gate)

GATE_TEST(sessions_outlive_tokens_that_cannot_be_read_by_the_grace)
{
	const struct gpd_principal user = { .by = GPD_AUTH_BY_USER };
	char aside[128];

	snprintf(aside, sizeof(aside), "%s.aside", path);
	assert_null(look(5000));
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);

	assert_null(look(6000));
	assert_int_not_equal(authentication.store.file.wrong, 0);
	assert_null(look(6000 + GPD_AUTHENTICATION_GRACE_MS - 1));
	assert_non_null(strstr(look(6000 + GPD_AUTHENTICATION_GRACE_MS), "cannot be checked"));
	assert_null(gpd_authentication_recheck(&authentication, &user,
					       6000 + GPD_AUTHENTICATION_GRACE_MS));

	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	assert_null(look(90000));
	assert_int_equal(authentication.store.file.wrong, 0);
}

GATE_TEST(each_time_that_they_cannot_be_read_has_a_grace_of_its_own)
{
	char other[128];

	snprintf(other, sizeof(other), "%s/none", folder);
	for (int64_t now_ms = 1000; now_ms < 100000; now_ms += 40000) {
		assert_int_equal(rename(path, other), 0);
		/* A link that leads nowhere but to itself. */
		assert_int_equal(symlink(path, path), 0);
		assert_null(look(now_ms));
		assert_null(look(now_ms + GPD_AUTHENTICATION_GRACE_MS - 1));
		assert_non_null(look(now_ms + GPD_AUTHENTICATION_GRACE_MS));
		assert_int_equal(rename(other, path), 0);
		assert_null(look(now_ms + GPD_AUTHENTICATION_GRACE_MS + 1));
	}
}

/* Where the configuration names another file, or none any more. */
GATE_TEST(tokens_are_not_dropped_for_a_file_that_there_is_not)
{
	static struct gpd_config config;
	static struct gpd_reload_report reloaded;
	char usual[128], other[128], expected[384];

	authentication.option = NULL;
	snprintf(usual, sizeof(usual), "%s/none", folder);
	assert_int_equal(setenv(GPD_FOLDER_VARIABLE, usual, 1), 0);
	snprintf(other, sizeof(other), "%s/token", folder);
	for (int i = 0; i < 2; i++) {
		snprintf(config.tokens, sizeof(config.tokens), "%s", i ? "" : other);
		memset(&reloaded, 0, sizeof(reloaded));
		gpd_authentication_reload(&authentication, &config, 1000, &reloaded);
		snprintf(expected, sizeof(expected), "partly applied: tokens unchanged: %s%s: %s",
			 i ? usual : other, i ? "/tokens" : "", strerror(ENOENT));
		assert_string_equal(reloaded.error, expected);
		assert_string_equal(authentication.store.file.path, path);
		assert_null(look(2000));
	}
	/* Where there are none it is no loss. */
	assert_int_equal(unlink(path), 0);
	gpd_authentication_refresh(&authentication, 3000);
	memset(&reloaded, 0, sizeof(reloaded));
	gpd_authentication_reload(&authentication, &config, 3000, &reloaded);
	assert_string_equal(reloaded.error, "");
	assert_string_not_equal(authentication.store.file.path, path);
	assert_int_equal(unsetenv(GPD_FOLDER_VARIABLE), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
