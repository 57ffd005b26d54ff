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
	uint8_t *mirror;
	uint8_t *saved; /* for the child of a fork; NULL: nothing */
	int fd;         /* by which the kernel tells what was written; -1 */
};

/* In place of addresses that were reserved, inaccessible.  watched: the kernel shall tell what has
 * been written, if a descriptor can be had for that.  -errno. */
GP_MUST_CHECK int gpc_page_memory_init(struct gpc_page_memory *memory, uint64_t base, uint64_t size,
				       bool watched);
/* The addresses are reserved again. */
void gpc_page_memory_fini(struct gpc_page_memory *memory);

/* Of the program's addresses.  -errno. */
GP_MUST_CHECK int gpc_page_memory_protect(const struct gpc_page_memory *memory, uint64_t offset,
					  uint64_t size, int protection);

/* Whether it is known what has been written. */
bool gpc_page_memory_knows(const struct gpc_page_memory *memory);
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
void gpc_page_memory_forget_saved(struct gpc_page_memory *memory);

#endif /* GPC_PAGE_MEMORY_H */
