/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/page_memory.h"

#include "base/file_limit.h"
#include "client/pages/page_faults.h"
#include "client/pages/page_userfault.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Missing in older C libraries. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* Maximum number of descriptors used, as they count against the program's limit. */
#define DESCRIPTORS_MAX 64

/* Size that is mapped first when a range is opened; each further step doubles what is mapped. */
#define OPEN_FIRST ((uint64_t)256 << 10)

static atomic_int descriptors;

static void *
program_get_pointer(const struct gpc_page_memory *memory, uint64_t offset)
{
	return (void *)(uintptr_t)(memory->base + offset);
}

/* Reserves the program's addresses, inaccessible. */
static int
program_reserve(const struct gpc_page_memory *memory)
{
	return mmap(program_get_pointer(memory, 0), memory->size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED
		       ? -errno
		       : 0;
}

/* Creates the memory as a file, whose written parts the kernel reports; or anonymously, if the
 * program's limits allow no more descriptors or no file of that size. */
static void *
memory_map(uint64_t size, int *fd_p)
{
	int fd = gp_fd_move_above_stdio(memfd_create("gpupool-managed", MFD_CLOEXEC));
	void *memory = MAP_FAILED;
	struct gp_sigxfsz limit;
	int r;

	*fd_p = -1;
	if (fd >= 0) {
		gp_fd_guard_mark(fd);
		gp_sigxfsz_block(&limit);
		r = ftruncate(fd, (off_t)size);
		gp_sigxfsz_restore(&limit);
		if (r == 0)
			memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (memory == MAP_FAILED)
			(void)close(fd);
		else
			*fd_p = fd;
	}
	if (memory == MAP_FAILED)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory;
}

/* Maps the same memory at the program's addresses, inaccessible. A forked child does not inherit
 * the mapping, where it would see stale data. */
static int
program_map(const struct gpc_page_memory *memory)
{
	void *program = program_get_pointer(memory, 0);
	int r = 0;

	if (mremap(memory->backing, 0, memory->size, MREMAP_MAYMOVE | MREMAP_FIXED, program) ==
	    MAP_FAILED)
		return -errno;
	if (memory->is_userfault)
		r = madvise(program, memory->size, MADV_DONTFORK)
			    ? -errno
			    : gpc_page_userfault_register(memory->base, memory->size);
	else if (madvise(program, memory->size, MADV_DONTFORK) ||
		 mprotect(program, memory->size, PROT_NONE))
		r = -errno;
	if (r)
		(void)program_reserve(memory);
	return r;
}

int
gpc_page_memory_init(struct gpc_page_memory *memory, uint64_t base, uint64_t size, bool watched)
{
	int fd, r;

	*memory = (struct gpc_page_memory){
		.base = base,
		.size = size,
		.fd = -1,
		.is_userfault = gpc_page_faults_mechanism() == GPC_PAGE_FAULTS_USERFAULT,
	};
	memory->backing = memory_map(size, &fd);
	if (memory->backing == MAP_FAILED)
		return -errno;
	r = program_map(memory);
	if (r)
		(void)munmap(memory->backing, size);
	if (r == 0 && watched && fd >= 0) {
		if (atomic_fetch_add(&descriptors, 1) < DESCRIPTORS_MAX) {
			memory->fd = fd;
			return 0;
		}
		atomic_fetch_sub(&descriptors, 1);
	}
	if (fd >= 0)
		(void)close(fd);
	return r;
}

void
gpc_page_memory_settle(struct gpc_page_memory *memory)
{
	if (memory->fd < 0)
		return;
	gp_fd_guard_close(memory->fd);
	memory->fd = -1;
	atomic_fetch_sub(&descriptors, 1);
}

void
gpc_page_memory_fini(struct gpc_page_memory *memory)
{
	gpc_page_userfault_drop_refused(memory->base, memory->size);
	(void)program_reserve(memory);
	(void)munmap(memory->backing, memory->size);
	gpc_page_memory_settle(memory);
}

static int
signal_set(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
	   enum gpc_page_rights to)
{
	static const int protections[] = {
		[GPC_PAGE_RIGHTS_NONE] = PROT_NONE,
		[GPC_PAGE_RIGHTS_READ] = PROT_READ,
		[GPC_PAGE_RIGHTS_WRITE] = PROT_READ | PROT_WRITE,
		[GPC_PAGE_RIGHTS_FREE] = PROT_READ | PROT_WRITE,
	};

	return mprotect(program_get_pointer(memory, offset), size, protections[to]) ? -errno : 0;
}

static int
userfault_map_once(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
		   bool is_writable)
{
	uint64_t base = memory->base + offset;

	return is_writable ? gpc_page_userfault_map(base, size)
			   : gpc_page_userfault_map_protected(base, size, memory->backing + offset);
}

/* Maps the memory's pages for the program, and allocates missing ones. */
static int
userfault_map(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
	      bool is_writable)
{
	int r = userfault_map_once(memory, offset, size, is_writable);

	if (r != -EFAULT)
		return r;
	if (madvise(memory->backing + offset, size, MADV_POPULATE_WRITE))
		return -errno;
	return userfault_map_once(memory, offset, size, is_writable);
}

static int
userfault_close(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size)
{
	/* The program may have locked its memory. */
	return madvise(program_get_pointer(memory, offset), size, MADV_DONTNEED_LOCKED) ? -errno
											: 0;
}

/* Maps a small part first, so that its threads resume while the rest is mapped. */
static int
userfault_open(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
	       bool is_writable)
{
	uint64_t step = OPEN_FIRST, end = offset + size;
	bool is_written = false;
	int r = 0;

	for (uint64_t at = offset; r >= 0 && at < end; at += step, step = at - offset) {
		if (step > end - at)
			step = end - at;
		r = userfault_map(memory, at, step, is_writable || is_written);
		is_written |= r > 0;
	}
	if (r >= 0 && is_written) {
		r = gpc_page_userfault_protect(memory->base + offset, size, true);
		r = r ? r : 1;
	}
	/* On failure no pages are left mapped whose presence is not recorded. */
	if (r < 0)
		(void)userfault_close(memory, offset, size);
	return r;
}

static int
userfault_set(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
	      enum gpc_page_rights from, enum gpc_page_rights to)
{
	uint64_t base = memory->base + offset;
	int r = 0;

	if (to == GPC_PAGE_RIGHTS_FREE)
		return gpc_page_userfault_unregister(base, size);
	if (from == GPC_PAGE_RIGHTS_FREE)
		r = gpc_page_userfault_register(base, size);
	if (r)
		return r;
	if (to == GPC_PAGE_RIGHTS_NONE)
		return userfault_close(memory, offset, size);
	if (from == GPC_PAGE_RIGHTS_NONE)
		return userfault_open(memory, offset, size, to == GPC_PAGE_RIGHTS_WRITE);
	return gpc_page_userfault_protect(base, size, to == GPC_PAGE_RIGHTS_WRITE);
}

int
gpc_page_memory_set(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
		    enum gpc_page_rights from, enum gpc_page_rights to)
{
	return memory->is_userfault ? userfault_set(memory, offset, size, from, to)
				    : signal_set(memory, offset, size, to);
}

int
gpc_page_memory_reopen(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
		       enum gpc_page_rights rights)
{
	/* Without a registration no thread waits. */
	if (!memory->is_userfault || rights == GPC_PAGE_RIGHTS_FREE)
		return 0;
	return userfault_open(memory, offset, size, rights == GPC_PAGE_RIGHTS_WRITE);
}

bool
gpc_page_memory_tracks_writes(const struct gpc_page_memory *memory)
{
	return memory->fd >= 0 && gp_fd_guard_is_marked(memory->fd);
}

bool
gpc_page_memory_written(const struct gpc_page_memory *memory, uint64_t *at, uint64_t end,
			uint64_t *size_p)
{
	off_t data = (off_t)*at, hole = (off_t)end;

	if (*at >= end)
		return false;
	if (gpc_page_memory_tracks_writes(memory)) {
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
	(void)madvise(memory->backing + offset, size, MADV_REMOVE);
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
		memcpy(memory->saved + offset, memory->backing + offset, size);
	for (uint64_t at = offset; sparse && gpc_page_memory_written(memory, &at, end, &size);
	     at += size)
		memcpy(memory->saved + at, memory->backing + at, size);
}

void
gpc_page_memory_begin_child(struct gpc_page_memory *memory)
{
	(void)program_reserve(memory);
	(void)munmap(memory->backing, memory->size);
	gpc_page_memory_settle(memory);
}

void
gpc_page_memory_restore(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size)
{
	(void)mremap(memory->saved + offset, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		     program_get_pointer(memory, offset));
}

void
gpc_page_memory_drop_saved(struct gpc_page_memory *memory)
{
	if (memory->saved)
		(void)munmap(memory->saved, memory->size);
	memory->saved = NULL;
}
