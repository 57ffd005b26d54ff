/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups, in a made-up /proc and /sys. */
#include "base/machine.h"
#include "tests/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL UINT64_MAX

static char root[] = "/tmp/gp-machine-XXXXXX";

/* One file, in folders that it makes. */
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

static int
begin(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/gp-machine-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int
end(void **state)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* memory: ALL for what the machine has. */
static void
expect(uint64_t memory, unsigned int processors)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned int count;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	count = (unsigned int)CPU_COUNT(&set);
	assert_int_equal(gp_machine_memory(root), memory < machine ? memory : machine);
	assert_int_equal(gp_machine_processors(root), processors < count ? processors : count);
}

#define TEST(test) UNIT_TEST_WITH(test, begin, end)

TEST(without_groups_all_counts)
{
	expect(ALL, UINT32_MAX);
	put("proc/self/cgroup", "0::/\n");
	expect(ALL, UINT32_MAX);
	put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
	expect(ALL, UINT32_MAX);
}

TEST(version_2)
{
	put("proc/self/cgroup", "0::/system.slice/gpupoold.service\n");
	put("sys/fs/cgroup/system.slice/gpupoold.service/memory.max", "max\n");
	put("sys/fs/cgroup/system.slice/gpupoold.service/cpu.max", "max 100000\n");
	expect(ALL, UINT32_MAX);
	put("sys/fs/cgroup/system.slice/gpupoold.service/memory.max", "8388608\n");
	put("sys/fs/cgroup/system.slice/gpupoold.service/cpu.max", "150000 100000\n");
	expect(8388608, 2);
	put("sys/fs/cgroup/system.slice/gpupoold.service/cpu.max", "1000 100000\n");
	expect(8388608, 1);
}

TEST(a_group_around_it_counts)
{
	put("proc/self/cgroup", "0::/a/b/c\n");
	put("sys/fs/cgroup/a/b/c/memory.max", "16777216\n");
	put("sys/fs/cgroup/a/b/memory.max", "max\n");
	put("sys/fs/cgroup/a/memory.max", "4194304\n");
	put("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
	expect(4194304, 1);
	/* In a container its own group is at the top. */
	put("sys/fs/cgroup/memory.max", "2097152\n");
	expect(2097152, 1);
}

TEST(version_1)
{
	put("proc/self/cgroup", "9:name=systemd:/x\n"
				"4:memory:/jobs/one\n"
				"3:cpuset:/\n"
				"2:cpu,cpuacct:/jobs\n"
				"0::/x\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
	expect(ALL, UINT32_MAX);
	put("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "8388608\n");
	put("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "100000\n");
	expect(8388608, 1);
	put("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "4194304\n");
	expect(4194304, 1);
	/* Version 2 beside it. */
	put("sys/fs/cgroup/unified/x/memory.max", "2097152\n");
	expect(2097152, 1);
}

/* The file names the groups of the machine, while the container sees its own and those below. */
TEST(a_container_without_a_namespace)
{
	put("proc/self/cgroup", "4:memory:/docker/0123/job\n2:cpu:/docker/0123\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "8388608\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	expect(8388608, 1);
	put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4194304\n");
	expect(4194304, 1);
}

TEST(nonsense_does_not_count)
{
	put("sys/fs/cgroup/memory.max", "many\n");
	put("sys/fs/cgroup/cpu.max", "100000 0\n");
	put("sys/fs/memory.max", "4096\n");
	put("proc/self/cgroup", "\n:\n4:memory\n0::/../..\n0::\n0::/none/\n");
	expect(ALL, UINT32_MAX);
	put("sys/fs/cgroup/memory.max", "");
	put("sys/fs/cgroup/cpu.max", "100000\n");
	expect(ALL, UINT32_MAX);
}

UNIT_TEST_MAIN(NULL, NULL)
