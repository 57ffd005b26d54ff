/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/worker_cgroup.h"

#include "server/common/base/log.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Memory of a worker beside what its clients use: NVIDIA's driver with its compilers, and for each
 * device a context and staging buffers. */
#define MARGIN ((uint64_t)8 << 30)
#define MARGIN_PER_DEVICE ((uint64_t)1 << 30)

#define NAME_SIZE 32

/* A file of a control group takes a whole value per write. Only in tests it does not exist yet. */
static int
file_write(int folder, const char *name, const char *text)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Writes the path of this process's group below the mount point, or "", to path. */
static void
own_group_find(const char *root, char *path, size_t size)
{
	char name[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;

	path[0] = '\0';
	(void)snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
	file = fopen(name, "re");
	while (file && getline(&line, &room, file) > 0) {
		if (strncmp(line, "0::/", 4) == 0)
			(void)snprintf(path, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
	}
	free(line);
	if (file)
		(void)fclose(file);
}

/* Returns whether this process is the only one in the group. */
static bool
group_is_own(int folder)
{
	char text[64] = "", expected[NAME_SIZE];
	int fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	(void)snprintf(expected, sizeof(expected), "%d\n", (int)getpid());
	return n > 0 && strcmp(text, expected) == 0;
}

/* For another user than root the owner of the files is enough. */
static bool
group_is_delegated(int folder)
{
	char value[2] = "";

	return geteuid() != 0 ||
	       (fgetxattr(folder, "trusted.delegate", value, sizeof(value)) == 1 &&
		value[0] == '1') ||
	       (fgetxattr(folder, "user.delegate", value, sizeof(value)) == 1 && value[0] == '1');
}

/* Moves a process to the group of this name, which is created. */
static int
group_create(int folder, const char *name, pid_t process)
{
	char file[NAME_SIZE + 16], number[NAME_SIZE];

	if (mkdirat(folder, name, 0755) && errno != EEXIST)
		return -errno;
	(void)snprintf(file, sizeof(file), "%s/cgroup.procs", name);
	(void)snprintf(number, sizeof(number), "%d\n", (int)process);
	return file_write(folder, file, number);
}

static int
group_set_up(int folder)
{
	char number[NAME_SIZE];
	int r = group_create(folder, "supervisor", getpid());

	if (r == 0)
		r = file_write(folder, "cgroup.subtree_control", "+memory +cpu");
	if (r == 0) {
		/* The supervisor stays responsive while its workers are busy. */
		(void)file_write(folder, "supervisor/cpu.weight", "1000");
		return 0;
	}
	(void)snprintf(number, sizeof(number), "%d\n", (int)getpid());
	(void)file_write(folder, "cgroup.procs", number);
	(void)unlinkat(folder, "supervisor", AT_REMOVEDIR);
	return r;
}

void
gpd_worker_cgroups_open(struct gpd_worker_cgroups *cgroups, const char *root, char *reason)
{
	char group[PATH_MAX], path[2 * PATH_MAX];
	int r;

	reason[0] = '\0';
	cgroups->folder = -1;
	own_group_find(root, group, sizeof(group));
	if (!group[0] || strstr(group, "/..")) {
		(void)snprintf(reason, GPD_CGROUP_REASON_MAX,
			       "the daemon is in no group of "
			       "version 2 that it can see");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", root, group);
	cgroups->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroups->folder < 0)
		(void)snprintf(reason, GPD_CGROUP_REASON_MAX, "cannot open the daemon's group: %s",
			       strerror(errno));
	else if (!group_is_own(cgroups->folder))
		(void)snprintf(reason, GPD_CGROUP_REASON_MAX,
			       "other processes are in the daemon's group");
	else if (!group_is_delegated(cgroups->folder))
		(void)snprintf(reason, GPD_CGROUP_REASON_MAX,
			       "the daemon's group is not delegated: set Delegate=yes in its unit");
	else if ((r = group_set_up(cgroups->folder)))
		(void)snprintf(reason, GPD_CGROUP_REASON_MAX,
			       "cannot create groups below the daemon's (%s): set Delegate=yes and "
			       "ProtectControlGroups=no in its unit",
			       strerror(-r));
	if (reason[0])
		gpd_worker_cgroups_close(cgroups);
}

void
gpd_worker_cgroups_close(struct gpd_worker_cgroups *cgroups)
{
	if (cgroups->folder >= 0)
		close(cgroups->folder);
	cgroups->folder = -1;
}

static void
group_name(pid_t worker, char *name)
{
	(void)snprintf(name, NAME_SIZE, "worker-%d", (int)worker);
}

void
gpd_worker_cgroup_create(const struct gpd_worker_cgroups *cgroups, pid_t worker)
{
	char name[NAME_SIZE], file[NAME_SIZE + 24];
	int r;

	if (cgroups->folder < 0)
		return;
	group_name(worker, name);
	r = group_create(cgroups->folder, name, worker);
	if (r)
		gpd_warning("worker %d: no control group: %s", (int)worker, strerror(-r));
	(void)snprintf(file, sizeof(file), "%s/memory.oom.group", name);
	if (r == 0)
		(void)file_write(cgroups->folder, file, "1");
}

void
gpd_worker_cgroup_destroy(const struct gpd_worker_cgroups *cgroups, pid_t worker)
{
	char name[NAME_SIZE];

	group_name(worker, name);
	if (cgroups->folder >= 0)
		(void)unlinkat(cgroups->folder, name, AT_REMOVEDIR);
}

static uint64_t
add(uint64_t a, uint64_t b)
{
	return a > GPD_NO_LIMIT - b ? GPD_NO_LIMIT : a + b;
}

static uint64_t
get_allowed_memory(const struct gpd_ledger *ledger, const struct gpd_worker_process *process,
		   unsigned int devices)
{
	uint64_t sum = add(atomic_load(&ledger->host_max), MARGIN + devices * MARGIN_PER_DEVICE);
	const struct gpd_ledger_session *entry;

	if (gpd_worker_process_is_dedicated(process)) {
		entry = gpd_ledger_next(ledger, NULL, process->pid);
		return entry ? add(sum, ledger->tenants[entry->tenant].host_memory_max)
			     : GPD_NO_LIMIT;
	}
	if (process->spare)
		return GPD_NO_LIMIT;
	if (process->group)
		return add(sum, ledger->tenants[process->group - 1].host_memory_max);
	/* Any tenant may have sessions there. */
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (ledger->tenants[i].name[0])
			sum = add(sum, ledger->tenants[i].host_memory_max);
	}
	return sum;
}

uint64_t
gpd_worker_cgroup_memory_max(const struct gpd_ledger *ledger,
			     const struct gpd_worker_process *process, unsigned int devices,
			     uint64_t machine)
{
	uint64_t bytes = get_allowed_memory(ledger, process, devices);

	return bytes > machine ? machine / 2 : bytes;
}

void
gpd_worker_cgroup_limit(const struct gpd_worker_cgroups *cgroups,
			struct gpd_worker_process *process, uint64_t bytes)
{
	char name[NAME_SIZE], file[NAME_SIZE + 16], text[NAME_SIZE] = "max";
	int r;

	if (cgroups->folder < 0 || bytes == process->memory_max)
		return;
	process->memory_max = bytes;
	group_name(process->pid, name);
	(void)snprintf(file, sizeof(file), "%s/memory.max", name);
	if (bytes != GPD_NO_LIMIT)
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	r = file_write(cgroups->folder, file, text);
	if (r)
		gpd_warning("worker %d: its memory is not limited: %s", (int)process->pid,
			    strerror(-r));
}
