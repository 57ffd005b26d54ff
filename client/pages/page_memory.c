/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/page_memory.h"

#include "transport/descriptor.h"
#include "transport/own_fd.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* So many descriptors at most: they are the program's, too. */
#define DESCRIPTORS_MAX 64

static atomic_int descriptors;

static void *
program_at(const struct gpc_page_memory *memory, uint64_t offset)
{
	return (void *)(uintptr_t)(memory->base + offset);
}

/* Nobody's memory, at the program's addresses. */
static int
reserve(const struct gpc_page_memory *memory)
{
	return mmap(program_at(memory, 0), memory->size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED
		       ? -errno
		       : 0;
}

static int
map_twice(struct gpc_page_memory *memory, int fd)
{
	void *mirror;

	if (ftruncate(fd, (off_t)memory->size))
		return -errno;
	mirror =
		mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (mirror == MAP_FAILED)
		return -errno;
	if (mmap(program_at(memory, 0), memory->size, PROT_NONE,
		 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		int r = -errno;

		(void)munmap(mirror, memory->size);
		return r;
	}
	memory->mirror = mirror;
	return 0;
}

int
gpc_page_memory_init(struct gpc_page_memory *memory, uint64_t base, uint64_t size, bool watched)
{
	int fd = gp_fd_away(memfd_create("gpupool-managed", MFD_CLOEXEC)), r;

	if (fd < 0)
		return -errno;
	*memory = (struct gpc_page_memory){ .base = base, .size = size, .fd = -1 };
	gp_own_fd_mark(fd);
	r = map_twice(memory, fd);
	if (r == 0 && watched && atomic_fetch_add(&descriptors, 1) < DESCRIPTORS_MAX) {
		memory->fd = fd;
		return 0;
	}
	if (r == 0 && watched)
		atomic_fetch_sub(&descriptors, 1);
	(void)close(fd);
	return r;
}

void
gpc_page_memory_settle(struct gpc_page_memory *memory)
{
	if (memory->fd < 0)
		return;
	gp_own_fd_close(memory->fd);
	memory->fd = -1;
	atomic_fetch_sub(&descriptors, 1);
}

void
gpc_page_memory_fini(struct gpc_page_memory *memory)
{
	(void)reserve(memory);
	(void)munmap(memory->mirror, memory->size);
	gpc_page_memory_settle(memory);
}

int
gpc_page_memory_protect(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
			int protection)
{
	return mprotect(program_at(memory, offset), size, protection) ? -errno : 0;
}

bool
gpc_page_memory_knows(const struct gpc_page_memory *memory)
{
	return memory->fd >= 0 && gp_own_fd_is(memory->fd);
}

bool
gpc_page_memory_written(const struct gpc_page_memory *memory, uint64_t *at, uint64_t end,
			uint64_t *size_p)
{
	off_t data = (off_t)*at, hole = (off_t)end;

	if (*at >= end)
		return false;
	if (gpc_page_memory_knows(memory)) {
		data = lseek(memory->fd, (off_t)*at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			return false;
		if (data >= 0)
			hole = lseek(memory->fd, data, SEEK_HOLE);
		if (data < 0 || hole < 0) {
			data = (off_t)*at;
			hole = (off_t)end;
		}
	}
	if ((uint64_t)data >= end)
		return false;
	*at = (uint64_t)data;
	*size_p = ((uint64_t)hole < end ? (uint64_t)hole : end) - (uint64_t)data;
	return true;
}

void
gpc_page_memory_drop(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size)
{
	(void)madvise(memory->mirror + offset, size, MADV_REMOVE);
}

bool
gpc_page_memory_begin_saving(struct gpc_page_memory *memory)
{
	void *saved = mmap(NULL, memory->size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memory->saved = saved == MAP_FAILED ? NULL : saved;
	return memory->saved != NULL;
}

void
gpc_page_memory_save(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
		     bool sparse)
{
	uint64_t end = offset + size;

	if (!sparse)
		memcpy(memory->saved + offset, memory->mirror + offset, size);
	for (uint64_t at = offset; sparse && gpc_page_memory_written(memory, &at, end, &size);
	     at += size)
		memcpy(memory->saved + at, memory->mirror + at, size);
}

void
gpc_page_memory_begin_child(struct gpc_page_memory *memory)
{
	(void)reserve(memory);
	(void)munmap(memory->mirror, memory->size);
	gpc_page_memory_settle(memory);
}

void
gpc_page_memory_restore(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size)
{
	(void)mremap(memory->saved + offset, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		     program_at(memory, offset));
}

void
gpc_page_memory_forget_saved(struct gpc_page_memory *memory)
{
	if (memory->saved)
		(void)munmap(memory->saved, memory->size);
	memory->saved = NULL;
}
