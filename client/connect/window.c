/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Smaller gaps cannot contain a window; ignoring them keeps the list short. */
#define GAP_MIN ((uint64_t)1 << 36)
/* Most processes can map nothing from this address on. */
#define USER_ADDRESS_END ((uint64_t)1 << 47)

/* Returns -EEXIST if something is mapped there. */
static int
range_reserve(uint64_t base, uint64_t size)
{
	void *wanted = (void *)(uintptr_t)base;
	/* A direct system call, because ThreadSanitizer's mmap() may replace an address by NULL. */
	void *found = (void *)syscall(
		SYS_mmap, wanted, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (found == wanted)
		return 0;
	if (found == MAP_FAILED)
		return -errno;
	/* Kernels before 4.17 treat the address as a hint. */
	(void)munmap(found, size);
	return -EEXIST;
}

int
gpc_window_reserve(uint64_t base, uint64_t size)
{
	int r = range_reserve(base, size);

	return r == 0 || r == -ENOMEM ? r : GP_E_INVALID;
}

int
gpc_window_reserve_pages(uint64_t base, uint64_t size)
{
	int r = range_reserve(base, size);

	if (r == -ENOMEM && base >= USER_ADDRESS_END)
		return 0;
	return r == 0 || r == -ENOMEM || r == -EAGAIN ? r : GP_E_INVALID;
}

void
gpc_window_release(uint64_t base, uint64_t size)
{
	(void)munmap((void *)(uintptr_t)base, size);
}

static int
range_add(struct gpc_window_range **ranges_p, size_t *count_p, uint64_t start, uint64_t end)
{
	struct gpc_window_range *ranges = *ranges_p;
	size_t count = *count_p;

	if (count > 0 && start - (ranges[count - 1].base + ranges[count - 1].size) < GAP_MIN) {
		ranges[count - 1].size = end - ranges[count - 1].base;
		return 0;
	}
	ranges = realloc(ranges, (count + 1) * sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	ranges[count] = (struct gpc_window_range){ start, end - start };
	*ranges_p = ranges;
	*count_p = count + 1;
	return 0;
}

int
gpc_window_occupied(struct gpc_window_range **ranges_p, size_t *count_p)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct gpc_window_range *ranges = NULL;
	size_t count = 0, line_size = 0;
	char *line = NULL;
	int r = 0;

	if (!maps)
		return -errno;
	while (r == 0 && getline(&line, &line_size, maps) > 0) {
		uint64_t start, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start)
			r = range_add(&ranges, &count, start, end);
	}
	free(line);
	(void)fclose(maps);
	if (r != 0) {
		free(ranges);
		return r;
	}
	*ranges_p = ranges;
	*count_p = count;
	return 0;
}
