/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demand-paged local cache of remote memory, mapped at the same address as on the remote side (the
 * GPU); docs/managed.md describes its guarantees. Accesses to blocks that are not accessible here
 * fault; the faults are reported by userfaultfd or SIGSEGV, and served by threads of the library
 * (page_faults.h).
 *
 * A range is divided into blocks. A block is remote (inaccessible here), identical on both sides
 * (readable here), or local only (writable here). This module does not depend on CUDA: the owner of
 * the memory provides functions that transfer data.
 *
 * Remote work is posted between gpc_pages_begin() and gpc_pages_end(), after a flush, which sends
 * local changes of the memory that the work uses. In between, no fault of an ordinary thread is
 * served, so that flushed blocks stay flushed until the work is posted. Faults of direct threads
 * (gpc_page_faults_set_direct(), page_faults.h), which other threads may wait for, are served at
 * any time.
 *
 * Ownership: the module owns a range's local memory from gpc_pages_create() to gpc_pages_destroy().
 * The owner passed there must outlive the range.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 * Units: addresses and sizes are bytes.
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
/* Maximum size of one fetch. */
#define GPC_PAGES_RUN_MAX ((uint64_t)16 << 20)

/* Functions of the memory's owner, a static struct. They return true, or false on a permanent
 * failure. address and size are whole pages of one range. fetch() and push() access the local side
 * only through `to` and `from`. They are called, with a lock of pages.c, by serving threads
 * (page_faults.h) and by the threads that flush or fork. None of the functions may call a function
 * of this file. */
struct gpc_pages_ops {
	/* Waits for the remote work that was posted last; may take long. Called on the serving
	 * thread of ordinary threads, while no thread is in a critical section (gpc_pages_begin()).
	 * No other lock of pages.c is held, so faults of direct threads are served meanwhile. */
	bool (*await)(void *owner);
	/* Copies data from the remote side, in its present state. Returns when `to` contains it. */
	bool (*fetch)(void *owner, uint64_t address, uint64_t size, void *to);
	/* Sends data, ordered before all work that is posted later. Returns when `from` may be
	 * changed. */
	bool (*push)(void *owner, uint64_t address, uint64_t size, const void *from);
};

/*
 * Creates a range at addresses that the caller has reserved. base must be a multiple of the block
 * size or, if is_known is true, of the page size; size must be a multiple of the page size. All
 * blocks are remote. is_known: their contents are defined; otherwise they are undefined (see
 * gpc_pages_set_unused()). Starts the fault mechanism with the first range of the process. calls,
 * owner: functions that transfer data, and their first argument. group: identifies the work that
 * may use the memory, for gpc_pages_flush().
 * Errors: returns 0 on success; -ENOMEM; or another -errno if threads, mappings or the fault
 * mechanism are not available. The addresses are then reserved as before. Returns GP_E_INVALID if
 * the range overlaps another one, which is then unusable; the caller must rule this out.
 */
GP_MUST_CHECK int gpc_pages_create(uint64_t base, uint64_t size, bool is_known,
				   const struct gpc_pages_ops *calls, void *owner,
				   const void *group);
/* Destroys the range that contains the address base. Local changes are lost unless flushed before;
 * the addresses stay reserved. Has no effect if there is no such range. */
void gpc_pages_destroy(uint64_t base);

/* Declares the contents of [base, base + size), which is inside one range, undefined, so that they
 * can be written here without fetching them. Called for memory that was newly allocated, before the
 * program knows its address. Local changes there are lost. Blocks that are only partly in it are
 * not affected. */
void gpc_pages_set_unused(uint64_t base, uint64_t size);

/* Announces sequential accesses from this address on, so that more is fetched at once. Has no
 * effect if the address is in no range. */
void gpc_pages_expect(uint64_t address);

/* Number of ranges; use gpc_pages_any(). */
extern atomic_uint gpc_pages_count;

/* Returns whether any range exists. Takes no lock. */
static inline bool
gpc_pages_any(void)
{
	return __builtin_expect(atomic_load_explicit(&gpc_pages_count, memory_order_relaxed) != 0,
				0);
}

/* Returns whether any part of [base, base + size) is in a range. */
bool gpc_pages_have(uint64_t base, uint64_t size);

/* Starts a critical section in which remote work is posted. Blocks, without limit, while another
 * thread is in a section, or while a fault of an ordinary thread is being served, which may wait
 * for remote work. With SIGSEGV, reinstalls the library's handler if the program has replaced it.
 * Until gpc_pages_end(), called by the same thread, the thread must not access memory of a range,
 * nor start another section. */
void gpc_pages_begin(void);
/* Ends the critical section of the calling thread. */
void gpc_pages_end(void);

/* Sends local changes of all memory of the group, between gpc_pages_begin() and gpc_pages_end().
 * The memory becomes remote, except blocks fetched by direct threads. Returns true, or false if any
 * transfer fails; the local changes that it should have sent are then lost. */
bool gpc_pages_flush(const void *group);
/* Sends local changes of a range of addresses, including blocks fetched by direct threads. Usually
 * called between gpc_pages_begin() and gpc_pages_end(). is_written: the work writes to the range,
 * which becomes remote; otherwise it stays readable here. Returns true, or false if any transfer
 * fails; the local changes that it should have sent are then lost. */
bool gpc_pages_flush_range(uint64_t base, uint64_t size, bool is_written);

/* Called by a direct thread before other work may use its changes: sends the blocks that direct
 * threads have fetched and changed, which become remote. A failure is written to the log. */
void gpc_pages_flush_direct(void);

/* Implements gpc_page_faults_serve (page_faults.h): makes the block at the address accessible, and
 * more blocks if the accesses are sequential. Unless `direct` is set, first waits for the end of a
 * critical section and, if the block is remote with defined contents, for remote work (await()).
 * Returns false if the address is in no range or a transfer fails. */
bool gpc_pages_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Called before fork(): saves, for the child, a copy of local blocks, and of remote blocks as they
 * are at that moment, without waiting for remote work. Holds the module's lock until
 * gpc_pages_after_fork(). If the fork is called by a signal handler that has interrupted a call of
 * the library, saves nothing and does not acquire the lock. */
void gpc_pages_before_fork(void);
/* Called after fork() in parent (is_child false) and child (is_child true). In the child, the
 * memory becomes ordinary memory with the saved contents (parts that were not saved are
 * inaccessible), and no range exists. */
void gpc_pages_after_fork(bool is_child);

/* States of a block. */
enum gpc_page_state {
	GPC_PAGE_REMOTE, /* remote, with defined contents */
	GPC_PAGE_UNUSED, /* remote, with undefined contents */
	GPC_PAGE_CLEAN,  /* readable here; identical on both sides */
	/* writable here; Linux tracks which of its pages were written */
	GPC_PAGE_WRITE_TRACKED,
	GPC_PAGE_DIRTY, /* writable here; considered written */
};
/* For tests and messages: returns the state of the block at the address; GPC_PAGE_REMOTE if it is
 * in no range. */
enum gpc_page_state gpc_pages_state(uint64_t address);

#endif /* GPC_PAGES_H */
