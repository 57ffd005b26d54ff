/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_alias.h"

#include "client/base/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* A shared mapping of a file. */
struct mapping {
	uint64_t start, end, offset;
	uint64_t major, minor, inode;
};

struct mappings {
	struct mapping *list;
	size_t count, capacity;
};

static bool
mappings_add(struct mappings *all, const struct mapping *mapping)
{
	struct mapping *list = gpc_list_grow(all->list, all->count, &all->capacity, sizeof(*list));

	if (!list)
		return false;
	all->list = list;
	all->list[all->count++] = *mapping;
	return true;
}

static void
mappings_read(struct mappings *all)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t capacity = 0;

	while (file && getline(&line, &capacity, file) > 0) {
		struct mapping one;
		char flags[5];

		if (sscanf(line,
			   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx64 ":%" SCNx64
			   " %" SCNu64,
			   &one.start, &one.end, flags, &one.offset, &one.major, &one.minor,
			   &one.inode) == 7 &&
		    flags[3] == 's' && one.inode && !mappings_add(all, &one))
			break;
	}
	free(line);
	if (file)
		(void)fclose(file);
}

/* Translates the part [start, end) of one mapping to the other. Returns false if the other does not
 * contain any of it. */
static bool
mapping_find_part(const struct mapping *one, const struct mapping *other, uint64_t *start,
		  uint64_t *end)
{
	uint64_t from = one->offset + (*start - one->start), to = from + (*end - *start);
	uint64_t last = other->offset + (other->end - other->start);

	if (one->major != other->major || one->minor != other->minor || one->inode != other->inode)
		return false;
	from = from > other->offset ? from : other->offset;
	to = to < last ? to : last;
	if (from >= to)
		return false;
	*start = other->start + (from - other->offset);
	*end = other->start + (to - other->offset);
	return true;
}

uint64_t
gpc_host_alias_find(uint64_t address, uint64_t size, gpc_host_alias_filter *matters, void *arg)
{
	struct mappings all = { 0 };
	uint64_t found = 0;

	mappings_read(&all);
	for (size_t i = 0; i < all.count && !found; i++) {
		const struct mapping *one = &all.list[i];
		uint64_t start = one->start > address ? one->start : address;
		uint64_t end = one->end < address + size ? one->end : address + size;

		for (size_t j = 0; start < end && j < all.count && !found; j++) {
			uint64_t from = start, to = end;

			if (j != i && mapping_find_part(one, &all.list[j], &from, &to) &&
			    ((from < address + size && to > address) || matters(arg, from, to)))
				found = from;
		}
	}
	free(all.list);
	return found;
}

/* Since Linux 6.5, a shared mapping of a file with writeback cannot be pinned for writing
 * (mm/gup.c, writable_file_mapping_allowed()). */
static bool
kernel_pins_no_files(void)
{
	struct utsname name;
	unsigned int major, minor;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 5));
}

/* device: major number of the file's device, which is 0 for memory and for file systems without a
 * disk. */
static bool
part_is_pinnable(const char *flags, uint64_t device, bool read_only)
{
	if (read_only)
		return flags[0] == 'r' || flags[1] == 'w';
	return flags[1] == 'w' && !(flags[3] == 's' && device != 0 && kernel_pins_no_files());
}

bool
gpc_host_alias_is_pinnable(uint64_t address, uint64_t size, bool read_only)
{
	FILE *file = fopen("/proc/self/maps", "re");
	bool pinnable = true;
	char *line = NULL;
	size_t capacity = 0;

	while (file && pinnable && getline(&line, &capacity, file) > 0) {
		uint64_t start, end, device;
		char flags[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %" SCNx64, &start, &end, flags,
			   &device) != 4)
			continue;
		if (start >= address + size)
			break;
		pinnable = end <= address || part_is_pinnable(flags, device, read_only);
	}
	free(line);
	if (file)
		(void)fclose(file);
	return pinnable;
}
