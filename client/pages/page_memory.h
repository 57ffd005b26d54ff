/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a range of pages (pages.h), mapped twice: at the program's addresses, where it may be
 * inaccessible, and at an address of the library's own (backing), where it is always accessible.
 *
 * Units: offsets and sizes are in bytes and multiples of the page size.
 * Threads: no locking; serialized by the caller.
 * Errors: -errno.
 */
#ifndef GPC_PAGE_MEMORY_H
#define GPC_PAGE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Memory of a range. */
struct gpc_page_memory {
	uint64_t base, size;
	uint8_t *backing;
	uint8_t *saved; /* copy for the child of a fork; NULL: none */
	int fd;         /* descriptor by which the kernel reports written parts; or -1 */
	bool is_userfault;
};

/* Creates the memory, in place of reserved addresses, inaccessible to the program. watched: written
 * parts are to be reported by the kernel, if a descriptor is available. Returns 0 or -errno. */
GP_MUST_CHECK int gpc_page_memory_init(struct gpc_page_memory *memory, uint64_t base, uint64_t size,
				       bool watched);
/* Frees the memory; the addresses are reserved again. */
void gpc_page_memory_fini(struct gpc_page_memory *memory);

/* Accesses of the program that do not fault. */
enum gpc_page_rights {
	GPC_PAGE_RIGHTS_NONE,
	GPC_PAGE_RIGHTS_READ,
	GPC_PAGE_RIGHTS_WRITE,
	GPC_PAGE_RIGHTS_FREE, /* write, with pages allocated by the kernel */
};

/* Sets the rights at the program's addresses. from: the maximum present rights in the range; parts
 * may have less. Threads that wait for a page there retry, unless the new rights are
 * GPC_PAGE_RIGHTS_NONE. Returns 0 or -errno; 1 if the range is writable instead of readable,
 * because the program has written to it in the meantime. */
GP_MUST_CHECK int gpc_page_memory_set(const struct gpc_page_memory *memory, uint64_t offset,
				      uint64_t size, enum gpc_page_rights from,
				      enum gpc_page_rights to);

/* Restores pages that have these rights but may have been unmapped by the kernel. Results as for
 * gpc_page_memory_set(). */
GP_MUST_CHECK int gpc_page_memory_reopen(const struct gpc_page_memory *memory, uint64_t offset,
					 uint64_t size, enum gpc_page_rights rights);

/* Returns whether written parts are known. */
bool gpc_page_memory_tracks_writes(const struct gpc_page_memory *memory);
/* Finds the first part of [*at, end) that was written since the memory was created or dropped, if
 * that is known; otherwise all of it. Returns false if there is none. */
bool gpc_page_memory_written(const struct gpc_page_memory *memory, uint64_t *at, uint64_t end,
			     uint64_t *size_p);
/* Closes the descriptor when written parts are no longer needed. */
void gpc_page_memory_settle(struct gpc_page_memory *memory);
/* Zeroes the range, if the kernel can do that without writing to it. */
void gpc_page_memory_drop(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size);

/* Functions around a fork. gpc_page_memory_begin_saving() allocates zeroed memory at memory->saved,
 * or returns false if there are no addresses, and nothing is saved. gpc_page_memory_save() copies a
 * range there before the fork (sparse: only what was written). In the child,
 * gpc_page_memory_begin_child() unmaps all of the parent's memory, and gpc_page_memory_restore()
 * moves saved ranges to the program's addresses. gpc_page_memory_drop_saved() frees the copy in
 * both processes. */
GP_MUST_CHECK bool gpc_page_memory_begin_saving(struct gpc_page_memory *memory);
void gpc_page_memory_save(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
			  bool sparse);
void gpc_page_memory_begin_child(struct gpc_page_memory *memory);
void gpc_page_memory_restore(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size);
void gpc_page_memory_drop_saved(struct gpc_page_memory *memory);

#endif /* GPC_PAGE_MEMORY_H */
