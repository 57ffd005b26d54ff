/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/port_owner.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTENING 0x0a

struct owner {
	unsigned long inode;
	unsigned int user;
};

/* Searches a table of /proc/net. */
static bool
find_socket(const char *table, uint16_t port, struct owner *owner)
{
	FILE *file = fopen(table, "re");
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file)) {
		unsigned int its_port, state;

		found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %u %*d %lu",
			       &its_port, &state, &owner->user, &owner->inode) == 4 &&
			its_port == port && state == LISTENING;
	}
	if (file)
		(void)fclose(file);
	return found;
}

static bool
has_socket(const char *process, unsigned long inode)
{
	char path[300], wanted[48], link[48];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/fd", process);
	(void)snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		ssize_t length;

		(void)snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", process, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		link[length < 0 ? 0 : length] = 0;
		found = strcmp(link, wanted) == 0;
	}
	if (folder)
		(void)closedir(folder);
	return found;
}

static void
read_process_name(const char *process, char name[32])
{
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/comm", process);
	file = fopen(path, "re");
	if (!file || !fgets(name, 32, file))
		(void)snprintf(name, 32, "unknown");
	if (file)
		(void)fclose(file);
	name[strcspn(name, "\n")] = 0;
}

void
gpd_port_describe_owner(uint16_t port, char *text, size_t size)
{
	struct owner owner;
	struct dirent *entry;
	bool seen = false;
	DIR *processes;
	char name[32];

	text[0] = 0;
	if (!find_socket("/proc/net/tcp", port, &owner) &&
	    !find_socket("/proc/net/tcp6", port, &owner))
		return;
	processes = opendir("/proc");
	while (processes && !seen && (entry = readdir(processes))) {
		if (atoi(entry->d_name) <= 0 || !has_socket(entry->d_name, owner.inode))
			continue;
		seen = true;
		read_process_name(entry->d_name, name);
		(void)snprintf(text, size, " (in use by process %.16s, %s)", entry->d_name, name);
	}
	if (!seen)
		(void)snprintf(text, size, " (in use by a process of user %u)", owner.user);
	if (processes)
		(void)closedir(processes);
}
