/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a range of pages (pages.h): there twice, once at the program's addresses, where it
 * may be inaccessible, and once at the library's own, which never is.  Offsets and sizes are whole
 * pages.  Not locked: the owner does that.
 */
#ifndef GPC_PAGE_MEMORY_H
#define GPC_PAGE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_page_memory {
	uint64_t base, size;
	uint8_t *backing;
	uint8_t *saved; /* for the child of a fork; NULL: nothing */
	int fd;         /* by which the kernel tells what was written; -1 */
	bool is_userfault;
};

/* In place of addresses that were reserved, inaccessible.  watched: the kernel shall tell what has
 * been written, if a descriptor can be had for that.  -errno. */
GP_MUST_CHECK int gpc_page_memory_init(struct gpc_page_memory *memory, uint64_t base, uint64_t size,
				       bool watched);
/* The addresses are reserved again. */
void gpc_page_memory_fini(struct gpc_page_memory *memory);

/* The accesses to a part that do not fault. */
enum gpc_page_rights {
	GPC_PAGE_RIGHTS_NONE,
	GPC_PAGE_RIGHTS_READ,
	GPC_PAGE_RIGHTS_WRITE,
	GPC_PAGE_RIGHTS_FREE, /* write, and the kernel gives the memory pages */
};

/* Of the program's addresses.  from: what some of it has; all of it may have less.  Threads that
 * wait for a page there try again, unless the rights are none now.  -errno; 1: it is writable
 * instead of readable, as the program has written it meanwhile. */
GP_MUST_CHECK int gpc_page_memory_set(const struct gpc_page_memory *memory, uint64_t offset,
				      uint64_t size, enum gpc_page_rights from,
				      enum gpc_page_rights to);

/* Pages that have these rights, and may have been unmapped by the kernel.  As set(). */
GP_MUST_CHECK int gpc_page_memory_reopen(const struct gpc_page_memory *memory, uint64_t offset,
					 uint64_t size, enum gpc_page_rights rights);

/* Whether it is known what has been written. */
bool gpc_page_memory_tracks_writes(const struct gpc_page_memory *memory);
/* What has been written first in [*at, end) since the memory was made or dropped, where that is
 * known; else all of it.  false: nothing. */
bool gpc_page_memory_written(const struct gpc_page_memory *memory, uint64_t *at, uint64_t end,
			     uint64_t *size_p);
/* Nobody asks for that any more. */
void gpc_page_memory_settle(struct gpc_page_memory *memory);
/* Its bytes become zeros, if the kernel can do that without writing them. */
void gpc_page_memory_drop(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size);

/* Around a fork: zeros at memory->saved; then a copy of what is at these offsets (sparse: of what
 * was written) is made there before it.  In the child nothing is accessible and nothing shared,
 * then what was saved is its own.  false: there are no addresses for it, and nothing is saved. */
GP_MUST_CHECK bool gpc_page_memory_begin_saving(struct gpc_page_memory *memory);
void gpc_page_memory_save(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
			  bool sparse);
void gpc_page_memory_begin_child(struct gpc_page_memory *memory);
void gpc_page_memory_restore(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size);
void gpc_page_memory_drop_saved(struct gpc_page_memory *memory);

#endif /* GPC_PAGE_MEMORY_H */
