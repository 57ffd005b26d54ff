/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demand-paged local cache of remote memory, mapped at the same address as on the remote side (the
 * GPU); docs/managed.md describes its guarantees.
 *
 * A range is divided into blocks. A block is remote (inaccessible here), identical on both sides
 * (readable), or local only (writable). This module does not depend on CUDA: the owner of the
 * memory provides functions that transfer data.
 * Remote work is posted between gpc_pages_begin() and gpc_pages_end(), after a flush of the memory
 * that it uses. No other thread's fault is served in between, so that flushed blocks stay flushed
 * until the work is posted; except those of threads of gpc_page_faults_set_direct(), which other
 * threads may wait for.
 * Threads: any.
 */
#ifndef GPC_PAGES_H
#define GPC_PAGES_H

#include "base/status.h"
#include "client/pages/page_faults.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Block size: the smallest unit of fetching, except for the last block of a range. */
#define GPC_PAGES_BLOCK ((uint64_t)64 << 10)
/* The largest unit of fetching. */
#define GPC_PAGES_RUN_MAX ((uint64_t)16 << 20)

/*
 * Functions of the owner. They return false on a permanent failure. Ranges consist of whole pages
 * of one memory range. fetch() and push() return when `to` contains the data, or when `from` may
 * change. None may acquire a lock of pages.c.
 */
struct gpc_pages_ops {
	/* Waits for the remote work that was posted last; may take long. */
	bool (*await)(void *owner);
	bool (*fetch)(void *owner, uint64_t address, uint64_t size, void *to);
	/* Sends data, ordered before all work that is posted later. */
	bool (*push)(void *owner, uint64_t address, uint64_t size, const void *from);
};

/*
 * Creates such memory at addresses that the caller has reserved; gpc_pages_destroy() leaves them
 * reserved. base must be a multiple of the block size (if is_known, of the page size), size a
 * multiple of the page size. All blocks are remote; unless is_known, their contents are undefined
 * (see gpc_pages_set_unused()). group: identifies the work that may use the memory. Returns
 * -ENOMEM, or another -errno if threads or the fault mechanism are not available.
 */
GP_MUST_CHECK int gpc_pages_create(uint64_t base, uint64_t size, bool is_known,
				   const struct gpc_pages_ops *calls, void *owner,
				   const void *group);
void gpc_pages_destroy(uint64_t base);

/* Declares the contents of [base, base + size) undefined, so that they can be written here without
 * fetching them. Blocks that are only partly in the range are not affected. */
void gpc_pages_set_unused(uint64_t base, uint64_t size);

/* Announces accesses from this address on, so that more is fetched at once. */
void gpc_pages_expect(uint64_t address);

/* Number of such memory ranges; use gpc_pages_any(). */
extern atomic_uint gpc_pages_count;

/* Returns whether such memory exists. */
static inline bool
gpc_pages_any(void)
{
	return __builtin_expect(atomic_load_explicit(&gpc_pages_count, memory_order_relaxed) != 0,
				0);
}

/* Returns whether any of [base, base + size) is such memory. */
bool gpc_pages_have(uint64_t base, uint64_t size);

/* Start and end of a critical section in which remote work is posted. The calling thread must not
 * touch such memory in between. */
void gpc_pages_begin(void);
void gpc_pages_end(void);

/* Send local changes between gpc_pages_begin() and gpc_pages_end(): all memory of the group, which
 * becomes remote; or a range, which stays readable here unless the work writes to it, including
 * blocks fetched by threads of gpc_page_faults_set_direct(). Return false on failure. */
bool gpc_pages_flush(const void *group);
bool gpc_pages_flush_range(uint64_t base, uint64_t size, bool is_written);

/* For a thread of gpc_page_faults_set_direct(): sends the blocks that it has fetched and
 * changed. */
void gpc_pages_flush_direct(void);

/* Implements gpc_page_faults_serve. */
bool gpc_pages_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Called around fork(). The child gets its own copy of local blocks, and of remote blocks as they
 * are at that moment, without waiting for work. */
void gpc_pages_before_fork(void);
void gpc_pages_after_fork(bool is_child);

/* Block states, for tests and messages. */
enum gpc_page_state {
	GPC_PAGE_REMOTE, /* remote */
	GPC_PAGE_UNUSED, /* remote, with undefined contents */
	GPC_PAGE_CLEAN,  /* readable here, identical */
	GPC_PAGE_FRESH,  /* writable here; the kernel reports written parts */
	GPC_PAGE_DIRTY,  /* writable here; considered written */
};
enum gpc_page_state gpc_pages_state(uint64_t address);

#endif /* GPC_PAGES_H */
