/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of workers, in a made-up /proc and /sys. */
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/worker_cgroup.h"
#include "server/supervisor/workers/worker_process.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define GROUP "sys/fs/cgroup/system.slice/gpupoold.service"
#define GIB ((uint64_t)1 << 30)

static char root[] = "/tmp/gp-cgroup-XXXXXX";

/* Writes a file, in folders that it creates. */
static void
put(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		(void)mkdir(path, 0700);
	}
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Returns the content of a file of the daemon's group; "": there is none. */
static const char *
get(const char *name)
{
	static char text[64];
	char path[512];
	FILE *file;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "%s/" GROUP "/%s", root, name);
	file = fopen(path, "re");
	if (file) {
		n = fread(text, 1, sizeof(text) - 1, file);
		(void)fclose(file);
	}
	text[n] = '\0';
	return text;
}

static void
put_own_group(void)
{
	char pid[32];

	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	put("proc/self/cgroup", "0::/system.slice/gpupoold.service\n");
	put(GROUP "/cgroup.procs", pid);
}

/* Returns false if the file system of the folder has no such attributes. */
static bool
delegate(void)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/" GROUP, root);
	return geteuid() != 0 || setxattr(path, "trusted.delegate", "1", 1, 0) == 0;
}

static int
set_up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/gp-cgroup-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int
tear_down(void **state)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

static void
expect_none(const char *expected)
{
	char reason[GPD_CGROUP_REASON_MAX];
	struct gpd_worker_cgroups cgroups;

	gpd_worker_cgroups_open(&cgroups, root, reason);
	assert_int_equal(cgroups.folder, -1);
	assert_non_null(strstr(reason, expected));
	/* Calls for workers do nothing. */
	gpd_worker_cgroup_create(&cgroups, 17);
	gpd_worker_cgroup_destroy(&cgroups, 17);
	assert_string_equal(get("worker-17/cgroup.procs"), "");
	gpd_worker_cgroups_close(&cgroups);
}

TEST(without_delegation_there_are_no_groups)
{
	expect_none("no group of version 2");
	put("proc/self/cgroup", "1:memory:/a\n");
	expect_none("no group of version 2");
	put("proc/self/cgroup", "0::/../outside\n");
	expect_none("no group of version 2");
	put("proc/self/cgroup", "0::/system.slice/gpupoold.service\n");
	expect_none("cannot open the daemon's group");
	put(GROUP "/cgroup.procs", "1\n2\n");
	expect_none("other processes");
	put_own_group();
	if (geteuid() == 0)
		expect_none("is not delegated");
}

TEST(a_group_in_which_no_others_can_be_created_is_left_as_it_was)
{
	char path[512], pid[32];

	put_own_group();
	if (!delegate())
		skip();
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	/* No file can be written there. */
	(void)snprintf(path, sizeof(path), "%s/" GROUP "/cgroup.subtree_control", root);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_none("cannot create groups below the daemon's (Is a directory)");
	assert_string_equal(get("cgroup.procs"), pid);
}

TEST(each_worker_has_a_group_while_it_exists)
{
	struct gpd_worker_process process = { .pid = 17, .memory_max = GPD_NO_LIMIT };
	char reason[GPD_CGROUP_REASON_MAX], pid[32], path[512];
	struct gpd_worker_cgroups cgroups;

	put_own_group();
	if (!delegate())
		skip();
	gpd_worker_cgroups_open(&cgroups, root, reason);
	assert_string_equal(reason, "");
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	assert_string_equal(get("supervisor/cgroup.procs"), pid);
	assert_string_equal(get("cgroup.subtree_control"), "+memory +cpu");
	gpd_worker_cgroup_create(&cgroups, 17);
	assert_string_equal(get("worker-17/cgroup.procs"), "17\n");
	gpd_worker_cgroup_limit(&cgroups, &process, GPD_NO_LIMIT);
	assert_string_equal(get("worker-17/memory.max"), "");
	gpd_worker_cgroup_limit(&cgroups, &process, 12 * GIB);
	assert_string_equal(get("worker-17/memory.max"), "12884901888");
	gpd_worker_cgroup_limit(&cgroups, &process, GPD_NO_LIMIT);
	assert_string_equal(get("worker-17/memory.max"), "max");
	/* The files of a control group vanish with it; these do not. */
	(void)snprintf(path, sizeof(path), "rm %s/" GROUP "/worker-17/*", root);
	assert_int_equal(system(path), 0);
	gpd_worker_cgroup_destroy(&cgroups, 17);
	(void)snprintf(path, sizeof(path), "%s/" GROUP "/worker-17", root);
	assert_int_equal(access(path, F_OK), -1);
	gpd_worker_cgroups_close(&cgroups);
}

TEST(a_workers_memory_is_that_of_the_tenants_it_serves)
{
	struct gpd_worker_process process = { .pid = 17, .spare = true };
	struct gpd_client_address *const address = (struct gpd_client_address *)&process;
	int fd;
	struct gpd_ledger *ledger = gpd_ledger_create(&fd);

	assert_non_null(ledger);
	assert_true(gpd_ledger_add_tenant(ledger, 1, "alice"));
	ledger->tenants[0].host_memory_max = 2 * GIB;
	ledger->tenants[1].host_memory_max = 5 * GIB;
	gpd_ledger_set_host_max(ledger, 3 * GIB);
	/* Spare, shared, of a tenant, of a session. */
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, GPD_NO_LIMIT),
			 GPD_NO_LIMIT);
	process.spare = false;
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, GPD_NO_LIMIT),
			 (8 + 2 + 3 + 2 + 5) * GIB);
	process.group = 2;
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, GPD_NO_LIMIT),
			 (8 + 2 + 3 + 5) * GIB);
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, 18 * GIB), 18 * GIB);
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, 16 * GIB), 8 * GIB);
	process.client_address = address;
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, GPD_NO_LIMIT),
			 GPD_NO_LIMIT);
	(void)gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 17);
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, GPD_NO_LIMIT),
			 (8 + 2 + 3 + 2) * GIB);
	gpd_ledger_set_host_max(ledger, GPD_NO_LIMIT);
	assert_int_equal(gpd_worker_cgroup_memory_max(ledger, &process, 2, GPD_NO_LIMIT),
			 GPD_NO_LIMIT);
	gpd_ledger_destroy(ledger);
	(void)close(fd);
}

UNIT_TEST_MAIN(NULL, NULL)
