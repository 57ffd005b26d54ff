/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is here and on another side: at one address, in this process a cache of pages that
 * come when they are touched.  docs/managed.md says what that promises.  Knows no CUDA: whose the
 * memory is gives the functions that carry bytes.
 *
 * A range is cut into blocks.  A block is the other side's (inaccessible here), here and there
 * alike (readable), or here alone (writable).  Any thread may call.
 *
 * Work of the other side is given between gpc_pages_begin() and gpc_pages_end(), with what it uses
 * given before.  No thread has a fault served in between, so that what is given stays given until
 * the work is on its way; one of gpc_page_faults_direct is: others may wait for it.
 */
#ifndef GPC_PAGES_H
#define GPC_PAGES_H

#include "base/status.h"
#include "client/pages/page_faults.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The smallest thing that is fetched, but for the last one of a range. */
#define GPC_PAGES_BLOCK ((uint64_t)64 << 10)
/* And the largest. */
#define GPC_PAGES_RUN_MAX ((uint64_t)16 << 20)

/*
 * false: it cannot be done, and never will.  Addresses are whole pages of one range.  Those that
 * carry bytes return when `from` may change, `to` has the bytes; they take no lock of pages.c's.
 */
struct gpc_pages_ops {
	/* Waits for the work of the other side that was given last.  May take long. */
	bool (*await)(void *owner);
	bool (*fetch)(void *owner, uint64_t address, uint64_t size, void *to);
	/* Before all work that is given later. */
	bool (*push)(void *owner, uint64_t address, uint64_t size, const void *from);
};

/*
 * Addresses that the caller has reserved become such memory, or (destroy) are reserved again.  base
 * is a multiple of the block size (is_known: of the page size), size of the page size.  All of it
 * is the other side's, and nothing is known to be in it (gpc_pages_set_unused) but if is_known.
 * group: whose work may use it. -ENOMEM; -errno: there are no threads or no signals to be had.
 */
GP_MUST_CHECK int gpc_pages_create(uint64_t base, uint64_t size, bool is_known,
				   const struct gpc_pages_ops *calls, void *owner,
				   const void *group);
void gpc_pages_destroy(uint64_t base);

/* Nothing of what is in [base, base + size) is needed any more: it can be written here without
 * having been fetched.  Of blocks that have more than that nothing is done. */
void gpc_pages_set_unused(uint64_t base, uint64_t size);

/* From this address on it will be touched here soon: much is fetched at once. */
void gpc_pages_expect(uint64_t address);

extern atomic_uint gpc_pages_count;

/* Whether there are any. */
static inline bool
gpc_pages_any(void)
{
	return __builtin_expect(atomic_load_explicit(&gpc_pages_count, memory_order_relaxed) != 0,
				0);
}

/* Whether there are any in [base, base + size). */
bool gpc_pages_have(uint64_t base, uint64_t size);

void gpc_pages_begin(void);
void gpc_pages_end(void);

/* In between: all of the group's that is here goes to the other side; or a part of it, which stays
 * readable here unless the work writes it, with what threads with gpc_page_faults_direct have of
 * it. false: it cannot. */
bool gpc_pages_flush(const void *group);
bool gpc_pages_flush_range(uint64_t base, uint64_t size, bool is_written);

/* Of a thread with gpc_page_faults_direct: what it fetched and changed goes to the other side. */
void gpc_pages_flush_direct(void);

/* gpc_page_faults_serve. */
bool gpc_pages_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Around fork().  The child has its own copy of what was here, and of what was on the other side at
 * that moment: no work is awaited. */
void gpc_pages_before_fork(void);
void gpc_pages_after_fork(bool is_child);

/* For tests and messages. */
enum gpc_page_state {
	GPC_PAGE_REMOTE, /* on the other side */
	GPC_PAGE_UNUSED, /* there, and nothing is in it */
	GPC_PAGE_CLEAN,  /* readable */
	GPC_PAGE_FRESH,  /* writable; what was written says the kernel */
	GPC_PAGE_DIRTY,  /* writable */
};
enum gpc_page_state gpc_pages_state(uint64_t address);

#endif /* GPC_PAGES_H */
