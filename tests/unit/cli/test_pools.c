/* SPDX-License-Identifier: Apache-2.0 */
/* pools.conf: the parsed values, and the errors about invalid ones. */
#include "cli/pools.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "/home/u/.config/gpupool/pools.conf"

static int
parse(struct gpc_pools_config *pools, const char *text, const char *file, char *error)
{
	return gpc_pools_config_parse(pools, text, strlen(text), file, error, CLI_ERROR_MAX);
}

UNIT_TEST(all_keys_are_read)
{
	static const char text[] = "\xef\xbb\xbf# mine\n"
				   "\n"
				   "[pool lab]   ; the first\r\n"
				   "url = tls://gpunode:4444/1,tls://other\n"
				   "token=lab.token\n"
				   "  authority = /etc/ssl/ca.pem  # ours\n"
				   "certificate = ~/alice.pem\n"
				   "key = ~/alice.key\n"
				   "crl = sub/ca.crl\n"
				   "tenant = alice\n"
				   "gpus = 2\n"
				   "memory = 1.5G\n"
				   "sm = 50%\n"
				   "wait = 10m\n"
				   "[pool b.2_x-y]\n"
				   "url = unix:///run/gpupool#1.sock";
	struct gpc_pools_config pools = { .check = cli_pools_check };
	const struct gpc_pool_config *lab;
	char error[CLI_ERROR_MAX] = "";

	(void)setenv("HOME", "/home/u", 1);
	assert_int_equal(parse(&pools, text, FILE_NAME, error), 0);
	assert_int_equal(pools.count, 2);
	lab = cli_pools_find(&pools, "lab");
	assert_ptr_equal(lab, &pools.list[0]);
	assert_string_equal(lab->url, "tls://gpunode:4444/1,tls://other");
	assert_string_equal(lab->token, "/home/u/.config/gpupool/lab.token");
	assert_string_equal(lab->authority, "/etc/ssl/ca.pem");
	assert_string_equal(lab->certificate, "/home/u/alice.pem");
	assert_string_equal(lab->key, "/home/u/alice.key");
	assert_string_equal(lab->crl, "/home/u/.config/gpupool/sub/ca.crl");
	assert_string_equal(lab->tenant, "alice");
	assert_string_equal(lab->gpus, "2");
	assert_string_equal(lab->memory, "1.5G");
	assert_string_equal(lab->sm, "50%");
	assert_string_equal(lab->wait, "10m");
	assert_string_equal(lab->file, FILE_NAME);
	assert_int_equal(lab->line, 3);
	/* A # within a word is none of a comment. */
	assert_string_equal(pools.list[1].name, "b.2_x-y");
	assert_string_equal(pools.list[1].url, "unix:///run/gpupool#1.sock");
	assert_string_equal(pools.list[1].token, "");
	assert_null(cli_pools_find(&pools, "LAB"));
	gpc_pools_config_free(&pools);
}

UNIT_TEST(the_users_file_comes_before_the_machines)
{
	struct gpc_pools_config pools = { .check = cli_pools_check };
	char error[CLI_ERROR_MAX] = "";

	assert_int_equal(parse(&pools, "[pool lab]\nurl = tls://mine\n", "a", error), 0);
	assert_int_equal(parse(&pools, "[pool lab]\nurl = tls://theirs\n[pool c]\nurl = tls://c\n",
			       "b", error),
			 0);
	assert_string_equal(cli_pools_find(&pools, "lab")->url, "tls://mine");
	assert_string_equal(cli_pools_find(&pools, "c")->file, "b");
	gpc_pools_config_free(&pools);
}

static void
expect_error(const char *text, const char *expected)
{
	struct gpc_pools_config pools = { .check = cli_pools_check };
	char error[CLI_ERROR_MAX] = "";

	assert_int_equal(parse(&pools, text, "f", error), -1);
	assert_string_equal(error, expected);
	gpc_pools_config_free(&pools);
}

/* The others are in tests/integration/test_launcher.py, with the commands that use them. */
UNIT_TEST(what_makes_no_sense_is_named_with_its_line)
{
	static char long_line[6000];

	expect_error("\n\n[pools lab]\n", "f:3: [pools lab]: unknown section; use \"[pool NAME]\"");
	expect_error("[pool ]\n", "f:1: [pool]: unknown section; use \"[pool NAME]\"");
	expect_error("[pool a] url = tls://a\n",
		     "f:1: \"[pool a] url = tls://a\": a section is a line \"[pool NAME]\"");
	expect_error(
		"[pool ../a]\n",
		"f:1: \"../a\" is not a valid pool name: use letters, digits, \".\", \"_\", \"-\"");
	expect_error("[pool a]\nURL = tls://a\n",
		     "f:2: [pool a] URL: unknown key; did you mean url?");
	expect_error("[pool a]\nurl = tls://a\nsm = 101%\n",
		     "f:3: [pool a] sm: \"101%\" is not a valid percentage: use 50%");
	expect_error("[pool a]\nurl = tls://a\nwait = 1 week\n",
		     "f:3: [pool a] wait: \"1 week\" is not a valid time: use 90s, 10m or 2h, at "
		     "most a week");
	expect_error("[pool a]\n[pool b]\nurl = tls://b\n",
		     "f:1: [pool a] has no url: add \"url = tls://HOST\"");
	(void)setenv("HOME", "", 1);
	expect_error("[pool a]\nurl = tls://a\ntoken = ~/t\n", "f:3: token = ~/t: HOME is not set");
	memset(long_line, 'x', sizeof(long_line) - 1);
	expect_error(long_line, "f:1: longer than 4399 bytes");
}

UNIT_TEST(there_is_an_end_to_pools)
{
	char text[GPC_POOLS_MAX * 40 + 64] = "";

	for (int i = 0; i <= GPC_POOLS_MAX; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       "[pool p%d]\nurl = tls://a\n", i);
	expect_error(text, "f:129: more than 64 pools");
}

UNIT_TEST(a_pool_that_is_not_there_is_explained)
{
	static const struct {
		const char *name;
		bool is_one;
	} hosts[] = {
		{ "A", true },   { "x:4833", true },  { "x/1", true },
		{ "h:1", true }, { "x:4834", false }, { "h", false },
		{ "", false },   { "tls://a", true }, { "tls://tls://a", false },
	};
	const struct gpc_pool_config *found[2];
	struct gpc_pools_config pools = { .check = cli_pools_check };
	char error[CLI_ERROR_MAX] = "";

	cli_pools_explain(&pools, "lab", error, sizeof(error));
	assert_string_equal(error, "unknown pool \"lab\": no pools.conf names any; add it with "
				   "\"gpupool login lab tls://HOST\"");
	assert_int_equal(parse(&pools, "[pool lab]\nurl = tls://a\n[pool x]\nurl = tls://x,h:1\n",
			       "f", error),
			 0);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		assert_int_equal(cli_pools_with_address(&pools, hosts[i].name, found),
				 hosts[i].is_one);
	cli_pools_explain(&pools, "tls://tls://a", error, sizeof(error));
	assert_string_equal(error, "no pool has the address tls://tls://a: \"gpupool pools\" lists "
				   "them");
	cli_pools_explain(&pools, "lba", error, sizeof(error));
	assert_string_equal(error, "unknown pool \"lba\"; did you mean lab?");
	cli_pools_explain(&pools, "cluster", error, sizeof(error));
	assert_string_equal(error, "unknown pool \"cluster\" (lab, x); an address begins with its "
				   "scheme: tls://cluster");
	gpc_pools_config_free(&pools);
}

UNIT_TEST_MAIN(NULL, NULL)
