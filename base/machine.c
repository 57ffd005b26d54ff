/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_LIMIT UINT64_MAX

/* Reads the limit that a single cgroup directory sets. */
typedef uint64_t limit_read_fn(const char *folder);

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Reads at most two numbers from a file; "max" and negative numbers become NO_LIMIT. Returns how
 * many were read. */
static int
limit_file_read(const char *folder, const char *name, uint64_t numbers[2])
{
	char path[PATH_MAX + 32], words[2][24];
	FILE *file;
	int count;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	count = fscanf(file, "%23s %23s", words[0], words[1]);
	(void)fclose(file);
	for (int i = 0; i < count; i++)
		numbers[i] = *words[i] >= '0' && *words[i] <= '9' ? strtoull(words[i], NULL, 10)
								  : NO_LIMIT;
	return count;
}

static uint64_t
memory_read_v2(const char *folder)
{
	uint64_t numbers[2];

	return limit_file_read(folder, "memory.max", numbers) > 0 ? numbers[0] : NO_LIMIT;
}

static uint64_t
memory_read_v1(const char *folder)
{
	uint64_t numbers[2];

	return limit_file_read(folder, "memory.limit_in_bytes", numbers) > 0 ? numbers[0]
									     : NO_LIMIT;
}

static uint64_t
processors_from_quota(uint64_t quota, uint64_t period)
{
	if (quota == NO_LIMIT || period == NO_LIMIT || period == 0)
		return NO_LIMIT;
	return quota <= period ? 1 : (quota - 1) / period + 1;
}

static uint64_t
processors_read_v2(const char *folder)
{
	uint64_t numbers[2];

	return limit_file_read(folder, "cpu.max", numbers) == 2
		       ? processors_from_quota(numbers[0], numbers[1])
		       : NO_LIMIT;
}

static uint64_t
processors_read_v1(const char *folder)
{
	uint64_t quota[2], period[2];

	if (limit_file_read(folder, "cpu.cfs_quota_us", quota) < 1 ||
	    limit_file_read(folder, "cpu.cfs_period_us", period) < 1)
		return NO_LIMIT;
	return processors_from_quota(quota[0], period[0]);
}

/* The lowest limit of a cgroup and of all its visible ancestors. */
static uint64_t
cgroup_get_limit(const char *root, const char *mount, const char *group, limit_read_fn *read_limit)
{
	char folder[PATH_MAX];
	uint64_t least = NO_LIMIT;
	int top = snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup%s", root, mount);
	size_t room;

	if (top < 0 || (size_t)top >= sizeof(folder))
		return NO_LIMIT;
	/* The cgroup is outside of the process's cgroup namespace. */
	if (strstr(group, "/.."))
		group = "";
	/* The mount in a container may be rooted at any ancestor of the cgroup. */
	room = sizeof(folder) - (size_t)top;
	while (*group &&
	       ((size_t)snprintf(folder + top, room, "%s", group) >= room || access(folder, F_OK)))
		group += 1 + strcspn(group + 1, "/");
	if (!*group)
		folder[top] = '\0';
	for (;;) {
		least = min_u64(least, read_limit(folder));
		if (strlen(folder) <= (size_t)top)
			return least;
		*strrchr(folder, '/') = '\0';
	}
}

static bool
list_has(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; *list; list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',')) {
		if (strcspn(list, ",") == length && strncmp(list, name, length) == 0)
			return true;
	}
	return false;
}

/* Lines of /proc/self/cgroup are "ID:CONTROLLER,...:GROUP", without controllers in version 2. */
static uint64_t
cgroup_find_limit(const char *root, const char *controller, limit_read_fn *read_1,
		  limit_read_fn *read_2)
{
	char path[PATH_MAX], mount[32], *line = NULL;
	uint64_t least = NO_LIMIT;
	size_t size = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	(void)snprintf(mount, sizeof(mount), "/%s", controller);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0) {
		char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;

		if (!group)
			continue;
		*list++ = '\0';
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (!*list) {
			least = min_u64(least, cgroup_get_limit(root, "", group, read_2));
			/* Mount point of version 2 in the hybrid hierarchy, where version 1
			 * occupies the top. */
			least = min_u64(least, cgroup_get_limit(root, "/unified", group, read_2));
		} else if (list_has(list, controller)) {
			least = min_u64(least, cgroup_get_limit(root, mount, group, read_1));
		}
	}
	free(line);
	if (file)
		(void)fclose(file);
	return least;
}

uint64_t
gp_machine_memory(const char *root)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return min_u64(all, cgroup_find_limit(root, "memory", memory_read_v1, memory_read_v2));
}

unsigned int
gp_machine_processors(const char *root)
{
	cpu_set_t set;
	/* Fails on machines with more than 1024 processors, for which cpu_set_t is too small. */
	long count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
								  : sysconf(_SC_NPROCESSORS_ONLN);

	return (unsigned int)min_u64(
		count > 0 ? (uint64_t)count : 1,
		cgroup_find_limit(root, "cpu", processors_read_v1, processors_read_v2));
}
