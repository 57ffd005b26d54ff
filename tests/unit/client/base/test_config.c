/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/config.h"
#include "client/base/log.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const CUuuid uuids[3] = {
	{ { 0x11, 0x22, 0x33, 0x44, 0x55 } },
	{ { 0x11, 0x22, 0x33, 0x44, 0x66 } },
	{ { (char)0xab, (char)0xcd, 1, 2, 3 } },
};

struct visible {
	const char *list;
	int count;
	int indices[3];
};

UNIT_TEST(visible_devices_are_those_that_the_driver_would_show)
{
	static const struct visible cases[] = {
		{ NULL, 3, { 0, 1, 2 } },
		{ "", 0, { 0 } },
		{ "-1", 0, { 0 } },
		{ "0", 1, { 0 } },
		{ "2,0", 2, { 2, 0 } },
		{ "0,1,2", 3, { 0, 1, 2 } },
		{ " 1 , 2 ", 2, { 1, 2 } },
		{ "0,-1,1", 1, { 0 } },
		{ "0,3,1", 1, { 0 } },
		{ "1,1,0", 1, { 1 } },
		{ "NoDevFiles", 0, { 0 } },
		{ "0x1", 0, { 0 } },
		{ "1,two", 1, { 1 } },
		{ "99999999999999999999", 0, { 0 } },
		{ ",0", 0, { 0 } },
		{ "GPU-abcd", 1, { 2 } },
		{ "GPU-ABCD,0", 2, { 2, 0 } },
		{ "GPU-1122334466", 0, { 0 } },
		{ "GPU-11223344-66", 1, { 1 } },
		{ "GPU-11223344-6600-0000-0000-000000000000", 1, { 1 } },
		{ "GPU-11223344", 0, { 0 } }, /* two begin so */
		{ "GPU-ffff", 0, { 0 } },
		{ "GPU-", 0, { 0 } },
		{ "MIG-abcd", 0, { 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int indices[3] = { -1, -1, -1 };
		int count = gpc_config_visible_devices(cases[i].list, uuids, 3, indices);

		if (count != cases[i].count)
			print_error("\"%s\"\n", cases[i].list);
		assert_int_equal(count, cases[i].count);
		for (int k = 0; k < count; k++)
			assert_int_equal(indices[k], cases[i].indices[k]);
	}
}

#define DAEMONS 4

static struct gp_url daemons[DAEMONS];
static int daemon_count;
static char refusal[512];

static int
read_daemons(void)
{
	*refusal = 0;
	return gpc_config_daemons(daemons, DAEMONS, &daemon_count, refusal, sizeof(refusal));
}

static void
assert_daemon(int i, const char *host, int port, int device)
{
	assert_string_equal(daemons[i].scheme, "tcp");
	assert_string_equal(daemons[i].host, host);
	assert_int_equal(daemons[i].port, port);
	assert_int_equal(daemons[i].device, device);
}

UNIT_TEST(daemons_are_those_of_remote_gpu)
{
	(void)unsetenv("REMOTE_GPU");
	assert_false(gpc_config_has_remote());
	assert_int_equal(read_daemons(), GP_E_INVALID);
	(void)setenv("REMOTE_GPU", "", 1);
	assert_false(gpc_config_has_remote());

	(void)setenv("REMOTE_GPU", "gpunode:4000/2", 1);
	assert_true(gpc_config_has_remote());
	assert_int_equal(read_daemons(), 0);
	assert_int_equal(daemon_count, 1);
	assert_daemon(0, "gpunode", 4000, 2);

	(void)setenv("REMOTE_GPU", "a,b:4000/1,a/3", 1);
	assert_int_equal(read_daemons(), 0);
	assert_int_equal(daemon_count, 3);
	assert_daemon(0, "a", 4833, GP_URL_ANY_DEVICE);
	assert_daemon(1, "b", 4000, 1);
	assert_daemon(2, "a", 4833, 3);
}

UNIT_TEST(devices_of_rcuda_are_understood)
{
	(void)unsetenv("REMOTE_GPU");
	(void)setenv("RCUDA_DEVICE_COUNT", "3", 1);
	(void)setenv("RCUDA_DEVICE_0", "node1", 1);
	(void)setenv("RCUDA_DEVICE_1", "node1:1", 1);
	(void)setenv("RCUDA_DEVICE_2", "node2@8308:2", 1);
	assert_true(gpc_config_has_remote());
	assert_int_equal(read_daemons(), 0);
	assert_int_equal(daemon_count, 3);
	assert_daemon(0, "node1", 4833, 0);
	assert_daemon(1, "node1", 4833, 1);
	assert_daemon(2, "node2", 8308, 2);

	/* Our own variable goes first. */
	(void)setenv("REMOTE_GPU", "other", 1);
	assert_int_equal(read_daemons(), 0);
	assert_int_equal(daemon_count, 1);
	(void)unsetenv("REMOTE_GPU");
	(void)unsetenv("RCUDA_DEVICE_1");
	assert_int_equal(read_daemons(), GP_E_INVALID);
	assert_string_equal(refusal, "RCUDA_DEVICE_1=: not set, but RCUDA_DEVICE_COUNT is greater");
	(void)setenv("RCUDA_DEVICE_1", "node1:x", 1);
	assert_int_equal(read_daemons(), GP_E_INVALID);
	assert_non_null(strstr(refusal, "RCUDA_DEVICE_1=node1:x: "));
	(void)setenv("RCUDA_DEVICE_COUNT", "many", 1);
	assert_int_equal(read_daemons(), GP_E_INVALID);
	assert_string_equal(refusal, "RCUDA_DEVICE_COUNT=many: not a number of devices");
	(void)unsetenv("RCUDA_DEVICE_COUNT");
}

UNIT_TEST(a_list_that_makes_no_sense_is_refused_in_words)
{
	(void)setenv("REMOTE_GPU", "a,,b", 1);
	assert_int_equal(read_daemons(), GP_E_INVALID);
	assert_non_null(strstr(refusal, "REMOTE_GPU=a,,b: "));
	assert_non_null(strstr(refusal, "item 2 of the list is empty"));
	(void)setenv("REMOTE_GPU", "foo://x", 1);
	assert_int_equal(read_daemons(), GP_E_INVALID);
	assert_non_null(strstr(refusal, "REMOTE_GPU=foo://x: "));
	assert_non_null(strstr(refusal, "unknown scheme \"foo\""));
}

UNIT_TEST(modules_are_loaded_lazily_unless_told_otherwise)
{
	(void)unsetenv("CUDA_MODULE_LOADING");
	assert_int_equal(gpc_config_module_loading(), CU_MODULE_LAZY_LOADING);
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	assert_int_equal(gpc_config_module_loading(), CU_MODULE_EAGER_LOADING);
	(void)setenv("CUDA_MODULE_LOADING", "LAZY", 1);
	assert_int_equal(gpc_config_module_loading(), CU_MODULE_LAZY_LOADING);
}

static void
forget_wishes(void)
{
	(void)unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	(void)unsetenv("CUDA_MPS_CLIENT_PRIORITY");
	(void)unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	(void)unsetenv("GPUPOOL_ISOLATION");
	(void)unsetenv("GPUPOOL_LANES");
	(void)unsetenv("GPUPOOL_STALL_MS");
	(void)unsetenv("GPUPOOL_TIMEOUT");
	(void)unsetenv("GPUPOOL_TENANT");
	(void)unsetenv("GPUPOOL_LOG");
	(void)unsetenv("GPUPOOL_SHM");
}

static void
expect_schemes(const char *list, const char *first, const char *second)
{
	struct gp_url urls[2];
	char error[256];
	int count;

	(void)setenv("REMOTE_GPU", list, 1);
	assert_int_equal(gpc_config_daemons(urls, 2, &count, error, sizeof(error)), 0);
	assert_int_equal(count, 2);
	assert_string_equal(urls[0].scheme, first);
	assert_string_equal(urls[1].scheme, second);
}

UNIT_TEST(a_bare_host_is_one_of_tls_where_there_is_a_token)
{
	(void)unsetenv("GPUPOOL_TOKEN_FILE");
	(void)unsetenv("GPUPOOL_TLS_CA");
	assert_false(gpc_config_has_credentials());
	expect_schemes("gpunode,other:4444/1", "tcp", "tcp");
	(void)setenv("GPUPOOL_TOKEN_FILE", "/some/where", 1);
	assert_true(gpc_config_has_credentials());
	expect_schemes("gpunode,other:4444/1", "tls", "tls");
	/* An explicit scheme is used as it is. */
	expect_schemes("tcp://gpunode,other", "tcp", "tls");
	expect_schemes("other,unix:///run/gpupool.sock", "tls", "unix");
	(void)unsetenv("GPUPOOL_TOKEN_FILE");
	(void)setenv("GPUPOOL_TLS_CA", "/some/where", 1);
	expect_schemes("gpunode,tcp://other", "tls", "tcp");
	(void)unsetenv("GPUPOOL_TLS_CA");
	(void)unsetenv("REMOTE_GPU");
}

UNIT_TEST(a_misspelt_name_is_found)
{
	static const char *const meant[] = { "REMOTE_GPUS", "REMOTEGPU",  "remote_gpu",
					     "RMEOTE_GPU",  "REMOTE_GUP", "REMOTE_CPU" };
	static const char *const others[] = { "REMOTE_IP", "REMOTE_USER", "REMOTE_HOST", "GPU" };
	char name[32];

	(void)unsetenv("REMOTE_GPU");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		(void)setenv(others[i], "x", 1);
	assert_false(gpc_config_find_misspelled(name, sizeof(name)));
	for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
		(void)setenv(meant[i], "x", 1);
		assert_true(gpc_config_find_misspelled(name, sizeof(name)));
		assert_string_equal(name, meant[i]);
		(void)unsetenv(meant[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		(void)unsetenv(others[i]);
}

UNIT_TEST(times_to_wait_are_read)
{
	static const struct {
		const char *text;
		unsigned int seconds;
	} good[] = { { "0", 0 }, { "90", 90 }, { "90s", 90 }, { "10m", 600 }, { "168h", 604800 } };
	static const char *const bad[] = { "",     "m",    "-1",
					   "10 m", "10d",  "1h3m",
					   "169h", "1.5h", "99999999999999999999" };
	unsigned int seconds;
	char error[256];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		(void)setenv("GPUPOOL_WAIT", good[i].text, 1);
		assert_int_equal(gpc_config_get_wait(&seconds, error, sizeof(error)), 0);
		assert_int_equal(seconds, good[i].seconds);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(gpc_config_parse_wait(bad[i], &seconds));
	(void)setenv("GPUPOOL_WAIT", "soon", 1);
	assert_int_equal(gpc_config_get_wait(&seconds, error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(
		error, "GPUPOOL_WAIT=soon: invalid time: use 90, 90s, 10m or 2h, at most a week");
	(void)unsetenv("GPUPOOL_WAIT");
	assert_int_equal(gpc_config_get_wait(&seconds, error, sizeof(error)), 0);
	assert_int_equal(seconds, 0);
}

UNIT_TEST(lanes_are_as_many_as_was_said_or_as_suit_the_link)
{
	struct gpc_session_options wish;
	char error[400], text[16];

	forget_wishes();
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
	assert_int_equal(wish.lanes, 0);
	for (unsigned int lanes = 1; lanes <= 16; lanes++) {
		(void)snprintf(text, sizeof(text), "%u", lanes);
		(void)setenv("GPUPOOL_LANES", text, 1);
		assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
		assert_int_equal(wish.lanes, lanes);
	}
	(void)setenv("GPUPOOL_LANES", "17", 1);
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(error, "GPUPOOL_LANES=17: not a number from 1 to 16");
	(void)unsetenv("GPUPOOL_LANES");
}

UNIT_TEST(without_wishes_nothing_is_asked_for)
{
	struct gpc_session_options wish;
	char error[256];

	forget_wishes();
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
	assert_int_equal(wish.thread_percentage, 0);
	assert_int_equal(wish.priority, 0);
	assert_int_equal(wish.memory_count, 0);
	assert_int_equal(wish.isolation, GPC_ISOLATION_ANY);
	assert_null(wish.tenant);
	/* Empty is as good as unset. */
	(void)setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "", 1);
	(void)setenv("GPUPOOL_TENANT", "", 1);
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
	assert_null(wish.tenant);
}

UNIT_TEST(wishes_are_read)
{
	struct gpc_session_options wish;
	char error[256];

	forget_wishes();
	(void)setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30", 1);
	(void)setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
	(void)setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G,2=512MB", 1);
	(void)setenv("GPUPOOL_ISOLATION", "process", 1);
	(void)setenv("GPUPOOL_TENANT", "alice", 1);
	(void)setenv("GPUPOOL_TIMEOUT", "86400", 1);
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
	assert_int_equal(wish.thread_percentage, 30);
	assert_int_equal(wish.priority, 1);
	assert_int_equal(wish.memory_count, 3);
	assert_int_equal(wish.memory[0], 1ul << 30);
	assert_int_equal(wish.memory[1], 0);
	assert_int_equal(wish.memory[2], 512ul << 20);
	assert_int_equal(wish.isolation, GPC_ISOLATION_SESSION);
	assert_string_equal(wish.tenant, "alice");
	assert_int_equal(gpc_config_timeout_ms(), 86400000);
	/* All that are not named. */
	(void)setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "*=2G,1=512M", 1);
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
	assert_int_equal(wish.memory_count, GPC_SESSION_OPTIONS_DEVICES);
	assert_int_equal(wish.memory[0], 2ul << 30);
	assert_int_equal(wish.memory[1], 512ul << 20);
	assert_int_equal(wish.memory[GPC_SESSION_OPTIONS_DEVICES - 1], 2ul << 30);
	(void)setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "0.4", 1);
	assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)), 0);
	assert_int_equal(wish.thread_percentage, 1);
	forget_wishes();
}

UNIT_TEST(a_wish_that_makes_no_sense_is_named)
{
	static const struct {
		const char *name, *value, *error;
	} cases[] = {
		{ "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "-3",
		  "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=-3: not a number above 0 and up to 100" },
		{ "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100.5",
		  "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100.5: not a number above 0 and up to 100" },
		{ "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "nan",
		  "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=nan: not a number above 0 and up to 100" },
		{ "CUDA_MPS_CLIENT_PRIORITY", "2",
		  "CUDA_MPS_CLIENT_PRIORITY=2: neither 0 (normal) nor 1 (below normal)" },
		{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "1G",
		  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1G: \"1G\" does not begin with DEVICE=SIZE, "
		  "as 0=16G does" },
		{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G,1=-5M",
		  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G,1=-5M: \"1=-5M\" does not begin with "
		  "DEVICE=SIZE, as 0=16G does" },
		{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=5K",
		  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=5K: \"0=5K\": a size is a number followed by "
		  "M or G" },
		{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=99999999999999G",
		  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=99999999999999G: \"0=99999999999999G\": a "
		  "size is a number followed by M or G" },
		{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "77=1G",
		  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=77=1G: invalid device 77" },
		{ "GPUPOOL_TIMEOUT", "abc",
		  "GPUPOOL_TIMEOUT=abc: not a whole number of seconds from 1 to 86400; use 30, or "
		  "leave it out" },
		{ "GPUPOOL_SHM", "yes", "GPUPOOL_SHM=yes: neither 0 nor 1" },
		{ "GPUPOOL_STALL_MS", "30s",
		  "GPUPOOL_STALL_MS=30s: not a number of milliseconds; use GPUPOOL_TIMEOUT, in "
		  "seconds" },
		{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "*",
		  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=*: \"*\" does not begin with DEVICE=SIZE, as "
		  "0=16G does" },
		{ "GPUPOOL_ISOLATION", "strict",
		  "GPUPOOL_ISOLATION=strict: is not one of shared, tenant, session" },
	};
	struct gpc_session_options wish;
	char error[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		forget_wishes();
		(void)setenv(cases[i].name, cases[i].value, 1);
		assert_int_equal(gpc_config_session_options(&wish, error, sizeof(error)),
				 GP_E_INVALID);
		assert_string_equal(error, cases[i].error);
	}
	forget_wishes();
}

UNIT_TEST(log_words_are_read_from_a_list)
{
	char error[256];

	assert_int_equal(gpc_log_parse(NULL), 0);
	assert_int_equal(gpc_log_parse(""), 0);
	assert_int_equal(gpc_log_parse("error"), GPC_LOG_ERROR);
	assert_int_equal(gpc_log_parse("info, stats,calls"),
			 GPC_LOG_INFO | GPC_LOG_STATS | GPC_LOG_CALLS);
	assert_int_equal(gpc_log_parse("errors,tables,,whatever"), GPC_LOG_TABLES);
	assert_int_equal(gpc_log_check("info, stats", error, sizeof(error)), 0);
	assert_int_equal(gpc_log_check(NULL, error, sizeof(error)), 0);
	assert_int_equal(gpc_log_check("info,verbose", error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(error,
			    "\"verbose\" is not one of error, info, stats, tables, calls, quiet");
}

int
main(void)
{
	/* This user's pools are not the tests'. */
	(void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	return unit_tests_run(NULL, NULL);
}
