/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a range of pages (pages.h), mapped twice: at the program's addresses, where it may be
 * inaccessible, and at an address of the library's own (the backing), where it is always
 * accessible.
 *
 * The program has rights to each part of a range (enum gpc_page_rights), which the caller sets and
 * records.
 *
 * Ownership: the caller owns the struct; it owns both mappings and the descriptor until
 * gpc_page_memory_fini().
 * Threads: no locking inside; the caller serializes all calls for one struct.
 * Errors: functions that return an int return 0 or -errno, unless stated otherwise.
 * Units: offsets and sizes are bytes and multiples of the page size; offsets are relative to base.
 */
#ifndef GPC_PAGE_MEMORY_H
#define GPC_PAGE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Memory of the range [base, base + size). */
struct gpc_page_memory {
	uint64_t base, size;
	/* the backing */
	uint8_t *backing;
	/* content for the child of a fork, in a mapping of its own, of `size` bytes; NULL: none */
	uint8_t *saved;
	/* descriptor by which the kernel reports written parts; -1: they are not reported */
	int fd;
	/* faults are reported by userfaultfd, not by SIGSEGV */
	bool is_userfault;
};

/* Creates zeroed memory in place of addresses that the caller has reserved, inaccessible to the
 * program. watched: written parts are to be reported (gpc_page_memory_written()); this fails
 * silently if 64 ranges of the process have a descriptor or none can be opened.
 * gpc_page_faults_start() must have succeeded. After an error the addresses are reserved as before,
 * and nothing needs to be freed. */
GP_MUST_CHECK int gpc_page_memory_init(struct gpc_page_memory *memory, uint64_t base, uint64_t size,
				       bool watched);
/* Frees the memory. The addresses are reserved again, inaccessible. */
void gpc_page_memory_fini(struct gpc_page_memory *memory);

/* Accesses of the program that do not fault. */
enum gpc_page_rights {
	GPC_PAGE_RIGHTS_NONE,
	GPC_PAGE_RIGHTS_READ,
	GPC_PAGE_RIGHTS_WRITE,
	GPC_PAGE_RIGHTS_FREE, /* reads and writes; with userfaultfd, the kernel also allocates
				 missing pages without a fault, whereas with GPC_PAGE_RIGHTS_WRITE
				 an access to a missing page faults */
};

/* Sets the rights of a part at the program's addresses. from: the highest present rights in the
 * part, in the order of the enum. With userfaultfd, threads that wait for a page there retry their
 * access, unless `to` is GPC_PAGE_RIGHTS_NONE. Returns 0; -errno, after which the rights in the
 * range are undefined; or 1 (only with userfaultfd) if the part became writable instead of
 * readable, because the program wrote to it during the call. */
GP_MUST_CHECK int gpc_page_memory_set(const struct gpc_page_memory *memory, uint64_t offset,
				      uint64_t size, enum gpc_page_rights from,
				      enum gpc_page_rights to);

/* Maps the pages of a part that has these rights again. Called when the program faults on a page
 * although its rights allow the access: with userfaultfd the kernel may unmap pages, for example to
 * reclaim memory. Has no effect without userfaultfd or with GPC_PAGE_RIGHTS_FREE. Returns the same
 * values as gpc_page_memory_set(). */
GP_MUST_CHECK int gpc_page_memory_reopen(const struct gpc_page_memory *memory, uint64_t offset,
					 uint64_t size, enum gpc_page_rights rights);

/* Returns whether the kernel reports which parts were written, that is, whether the descriptor is
 * open. The program may have closed it. */
bool gpc_page_memory_tracks_writes(const struct gpc_page_memory *memory);
/* Finds the first part of [*at, end) that was written since the memory was created or zeroed. If
 * written parts are not reported, that is all of the range. Returns true and sets *at and *size_p
 * to offset and size of the part. Returns false if there is none. */
bool gpc_page_memory_written(const struct gpc_page_memory *memory, uint64_t *at, uint64_t end,
			     uint64_t *size_p);
/* Closes the descriptor, which is not needed any more; gpc_page_memory_written() then reports the
 * whole range as written. Has no effect if there is no descriptor. */
void gpc_page_memory_settle(struct gpc_page_memory *memory);
/* Zeroes the range by freeing its pages, if the kernel supports that; otherwise the content is
 * unchanged. Failures are not reported, so callers must not rely on the content. Parts that were
 * zeroed are no longer reported as written. */
void gpc_page_memory_drop(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size);

/* Allocates zeroed memory at memory->saved, for the content that the child of a fork gets. Called
 * before the fork. Returns false, with memory->saved NULL, if no memory can be mapped; nothing is
 * then saved. */
GP_MUST_CHECK bool gpc_page_memory_begin_saving(struct gpc_page_memory *memory);
/* Copies a range from the backing to memory->saved, which must not be NULL, before the fork.
 * sparse: copies only the parts that were written. */
void gpc_page_memory_save(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size,
			  bool sparse);
/* Called in the child of a fork: unmaps the backing, reserves the program's addresses again,
 * inaccessible, and closes the descriptor. memory->saved stays mapped. */
void gpc_page_memory_begin_child(struct gpc_page_memory *memory);
/* Called in the child, after gpc_page_memory_begin_child(): moves a saved range to the program's
 * addresses, where it is readable and writable. The range is no longer in memory->saved. If the
 * kernel fails to move it, the addresses stay inaccessible. */
void gpc_page_memory_restore(const struct gpc_page_memory *memory, uint64_t offset, uint64_t size);
/* Frees what is left of the saved copy and sets memory->saved to NULL. Has no effect if it is NULL.
 * Called in the parent and in the child. */
void gpc_page_memory_drop_saved(struct gpc_page_memory *memory);

#endif /* GPC_PAGE_MEMORY_H */
