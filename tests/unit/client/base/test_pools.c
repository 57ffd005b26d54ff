/* SPDX-License-Identifier: Apache-2.0 */
/* pools.conf as the client library reads it: the pool of an address, whatever else is in the
 * file. */
#include "client/base/pools.h"
#include "client/connect/credentials.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/gp-pools-XXXXXX";
static char home[sizeof(folder) + 16], file_name[sizeof(home) + 16];
static const struct gp_url gpunode = { .scheme = "tls", .host = "gpunode", .port = 4833 };

static void
write_file(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The pool and the crl that this text has for tls://gpunode. */
static void
expect_text(const char *text, size_t size, const char *pool, const char *crl)
{
	char path[sizeof(home) + 16], error[GPC_POOLS_FAULT_MAX];
	struct gpc_credentials found;

	write_file(file_name, text, size);
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)), 0);
	assert_string_equal(found.pool, pool);
	if (crl) {
		(void)snprintf(path, sizeof(path), "%s/%s", home, crl);
		assert_string_equal(found.crl, path);
	} else {
		assert_null(found.crl);
	}
	gpc_credentials_fini(&found);
}
#define EXPECT(text, pool, crl) expect_text(text, sizeof(text) - 1, pool, crl)
#define LAB "[pool lab]\nurl = tls://gpunode\ncrl = a\n"

UNIT_TEST(invalid_lines_are_skipped)
{
	static char large[300 << 10];

	EXPECT("", "", NULL);
	EXPECT(LAB, "lab", "a");
	EXPECT("\xef\xbb\xbf" LAB, "lab", "a");
	EXPECT("\xef\xbb", "", NULL);
	EXPECT("# x\r\n\r\n[pool lab] ; x\r\nurl = tls://gpunode\r\ncrl = a # x\r\n", "lab", "a");
	EXPECT("url = tls://gpunode\ncrl = b\n[pools x]\nurl = tls://gpunode\n" LAB, "lab", "a");
	/* A section without a closing bracket has no name, so its lines are ignored. */
	EXPECT("[pool x\nurl = tls://gpunode\ncrl = b\n", "", NULL);
	EXPECT("[pool x\nurl = tls://gpunode\n" LAB, "lab", "a");
	EXPECT("[pool lab] x\nurl = tls://gpunode", "lab", NULL);
	EXPECT("[pool x]\n[pool y]\nurl = gopher://gpunode\n" LAB, "lab", "a");
	EXPECT("[pool x]\nurl = tls://other,,gopher://a, tls://GPUNODE\n", "", NULL);
	EXPECT("[pool x]\nurl = tls://other,,gopher://a,tls://GPUNODE/2\n", "x", NULL);
	/* Duplicate sections and keys. */
	EXPECT("[pool x]\nurl = tls://other\ncrl = b\n[pool x]\nurl = tls://gpunode\n", "", NULL);
	EXPECT(LAB "[pool lab]\nurl = tls://gpunode\ncrl = b\n", "lab", "a");
	EXPECT(LAB "crl = b\ncrl =\ncrl\nCRL = c\n", "lab", "b");
	EXPECT("\0" LAB, "", NULL);
	EXPECT("x\0y\n" LAB "crl = \0b\n\0", "lab", "a");
	memset(large, 'x', sizeof(large));
	memcpy(large, LAB, sizeof(LAB) - 1);
	/* A line is too long for its buffer; a file is too large. */
	expect_text(large, 5000, "lab", "a");
	expect_text(large, sizeof(large), "", NULL);
	memset(large + sizeof(LAB) - 1, '\n', sizeof(large) - sizeof(LAB) + 1);
	expect_text(large, 200 << 10, "lab", "a");
}

/* What is skipped is named, the first fault of all. */
UNIT_TEST(a_fault_is_kept)
{
	static const struct {
		const char *text, *fault;
	} cases[] = {
		{ LAB, "" },
		{ LAB "cr = b\nx\n", ":4: [pool lab] cr: unknown key; did you mean crl?" },
		{ "[pool x]\nurl = gopher://a\n" LAB,
		  ":2: [pool x] url: \"gopher://a\": unknown scheme \"gopher\" (known: tls, tcp, "
		  "unix, rdma, rdma+tcp)" },
		{ "[pool x]\n" LAB, ":1: [pool x] has no url: add \"url = tls://HOST\"" },
		{ LAB LAB, ":4: [pool lab]: duplicate of line 1" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpc_pools_config pools = { 0 };
		char expected[GPC_POOLS_FAULT_MAX] = "";

		write_file(file_name, cases[i].text, strlen(cases[i].text));
		assert_int_equal(gpc_pools_config_read_file(&pools, file_name, NULL, 0), 0);
		if (*cases[i].fault)
			(void)snprintf(expected, sizeof(expected), "%s%s", file_name,
				       cases[i].fault);
		assert_string_equal(pools.fault, expected);
		gpc_pools_config_free(&pools);
	}
}

UNIT_TEST(of_two_pools_the_one_with_a_token_is_taken)
{
	char lab[sizeof(home) + 16], b[sizeof(home) + 16], error[GPC_POOLS_FAULT_MAX],
		expected[GPC_POOLS_FAULT_MAX];
	struct gpc_credentials found;

	(void)snprintf(lab, sizeof(lab), "%s/lab.token", home);
	(void)snprintf(b, sizeof(b), "%s/b.token", home);
	write_file(b, "", 0);
	EXPECT(LAB "[pool b]\nurl = tls://other,tls://gpunode\ncrl = c\n", "b", "c");
	EXPECT(LAB "[pool c]\nurl = tls://gpunode\ncertificate = x\n", "c", NULL);
	EXPECT(LAB "[pool b]\nurl = tls://other\n", "lab", "a");
	write_file(lab, "", 0);
	write_file(file_name, LAB "[pool b]\nurl = tls://GPUNODE\n",
		   strlen(LAB "[pool b]\nurl = tls://GPUNODE\n"));
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)),
			 GP_E_INVALID);
	assert_false(gpc_credentials_any(&found));
	(void)snprintf(expected, sizeof(expected),
		       "tls://gpunode:4833/0: pool lab (%s:1) and pool b (%s:4) both have this "
		       "address, each with credentials of its own: \"gpupool run -p lab\" uses the "
		       "first, GPUPOOL_TOKEN_FILE any other",
		       file_name, file_name);
	assert_string_equal(error, expected);
	/* The same ones under two names. */
	EXPECT("[pool x]\nurl = tls://gpunode\ntoken = lab.token\n"
	       "[pool y]\nurl = tls://gpunode\ntoken = lab.token\nmemory = 1G\n",
	       "x", NULL);
	assert_int_equal(unlink(lab), 0);
	assert_int_equal(unlink(b), 0);
}

UNIT_TEST(a_secret_is_no_path)
{
	EXPECT(LAB "crl = gpt_aaaaaaaaaa_"
		   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n",
	       "lab", "a");
}

UNIT_TEST(what_is_no_file_has_no_pools)
{
	struct gpc_pools_config pools = { 0 };
	char error[256], expected[256];
	struct gpc_credentials found;

	assert_int_equal(unlink(file_name), 0);
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)), 0);
	assert_false(gpc_credentials_any(&found));
	assert_int_equal(gpc_pools_config_read_file(&pools, file_name, error, sizeof(error)), 0);

	assert_int_equal(mkdir(file_name, 0700), 0);
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)), 0);
	assert_false(gpc_credentials_any(&found));
	assert_int_equal(gpc_pools_config_read_file(&pools, file_name, error, sizeof(error)), -1);
	(void)snprintf(expected, sizeof(expected), "%s: is a folder, not a file", file_name);
	assert_string_equal(error, expected);
	assert_int_equal(rmdir(file_name), 0);

	/* No program writes into this pipe. */
	assert_int_equal(mkfifo(file_name, 0600), 0);
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)), 0);
	assert_false(gpc_credentials_any(&found));
	assert_int_equal(unlink(file_name), 0);

	/* Not readable, for root neither. */
	assert_int_equal(symlink("pools.conf", file_name), 0);
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)), 0);
	assert_false(gpc_credentials_any(&found));
	assert_int_equal(gpc_pools_config_read_file(&pools, file_name, error, sizeof(error)), -1);
	(void)snprintf(expected, sizeof(expected), "%s: Too many levels of symbolic links",
		       file_name);
	assert_string_equal(error, expected);
	assert_int_equal(unlink(file_name), 0);
	gpc_pools_config_free(&pools);
}

static void
expect_error(const char *text, size_t size, const char *expected)
{
	struct gpc_pools_config pools = { 0 };
	char error[256];

	assert_int_equal(gpc_pools_config_parse(&pools, text, size, "f", error, sizeof(error)), -1);
	assert_string_equal(error, expected);
	gpc_pools_config_free(&pools);
}

UNIT_TEST(a_file_that_is_too_large_is_an_error_with_a_buffer)
{
	static char large[256 << 10];
	struct gpc_pools_config pools = { 0 };
	char error[256], expected[256];

	memset(large, '\n', sizeof(large));
	write_file(file_name, large, sizeof(large));
	assert_int_equal(gpc_pools_config_read_file(&pools, file_name, error, sizeof(error)), -1);
	(void)snprintf(expected, sizeof(expected),
		       "%s: too large for a pools.conf: at most 256 KiB", file_name);
	assert_string_equal(error, expected);
	write_file(file_name, large, sizeof(large) - 1);
	assert_int_equal(gpc_pools_config_read_file(&pools, file_name, error, sizeof(error)), 0);
	gpc_pools_config_free(&pools);
}

UNIT_TEST(with_a_buffer_the_first_invalid_line_is_named)
{
	static const char zero[] = LAB "crl\0 = b\n";
	static const char twice[] = LAB "\r\n" LAB;

	expect_error(zero, sizeof(zero) - 1, "f:4: contains a zero byte: this is not a text file");
	expect_error(twice, sizeof(twice) - 1, "f:5: [pool lab]: duplicate of line 1");
}

static void
expect_tls(const char *text, bool tls)
{
	struct gp_url bare = gpunode;

	(void)snprintf(bare.scheme, sizeof(bare.scheme), "tcp");
	write_file(file_name, text, strlen(text));
	assert_int_equal(gpc_pools_config_want_tls(&bare), tls);
}

UNIT_TEST(a_host_without_a_scheme_has_that_of_its_pool)
{
	char path[sizeof(home) + 16], error[GPC_POOLS_FAULT_MAX];
	struct gpc_credentials found;

	expect_tls("[pool lab]\nurl = tls://gpunode\n", true);
	expect_tls("[pool lab]\nurl = tls://gpunode:4834\n", false);
	expect_tls("[pool lab]\nurl = tcp://gpunode\ncrl = a\n", false);
	expect_tls("[pool lab]\nurl = rdma://gpunode\ncrl = a\n", false);
	expect_tls("[pool lab]\nurl = tcp://gpunode\n[pool x]\nurl = tls://other,tls://gpunode\n",
		   true);
	/* In the pool, too, a host needs no scheme: then the credentials decide, as in REMOTE_GPU.
	 */
	expect_tls("[pool lab]\nurl = gpunode\n", false);
	expect_tls("[pool lab]\nurl = gpunode\nauthority = a\n", true);
	(void)snprintf(path, sizeof(path), "%s/lab.token", home);
	write_file(path, "", 0);
	expect_tls("[pool lab]\nurl = gpunode\n", true);
	assert_int_equal(gpc_credentials_find(&gpunode, &found, error, sizeof(error)), 0);
	assert_string_equal(found.token, path);
	gpc_credentials_fini(&found);
	assert_int_equal(unlink(path), 0);
}

int
main(void)
{
	int failed;

	if (!mkdtemp(folder))
		return 1;
	(void)setenv("XDG_CONFIG_HOME", folder, 1);
	(void)snprintf(home, sizeof(home), "%s/gpupool", folder);
	(void)snprintf(file_name, sizeof(file_name), "%s/pools.conf", home);
	failed = mkdir(home, 0700) ? 1 : unit_tests_run(NULL, NULL);
	(void)unlink(file_name);
	(void)rmdir(home);
	(void)rmdir(folder);
	return failed;
}
