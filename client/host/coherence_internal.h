/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherence state of one session (coherence.h), shared by the files coherence*.c and listed_copy.c:
 * coherence.c has the list of blocks and sends changes, coherence_fetch.c fetches changes,
 * coherence_thread.c does both periodically.
 *
 * Ownership: a struct gpc_coherence is created with the session's first block and never freed, as
 * its session.
 * Threads: each member is guarded by the lock named at it. `lock` may be acquired while send_lock
 * is held, not the other way round. Functions without GP_LOCKED are called without both locks.
 */
#ifndef GPC_COHERENCE_INTERNAL_H
#define GPC_COHERENCE_INTERNAL_H

#include "base/lock.h"
#include "client/host/listed_copy.h"
#include "client/host/pointer_scan.h"
#include "client/session/call.h"
#include "client/session/session.h"
#include "protocol/host_consistent_copy.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_inflight_writes;

/* A block of host memory with a replica in the worker. Guarded by `lock` of the coherence state;
 * only the contents of shadow and run_bitmap change. */
struct gpc_replica {
	struct gpc_replica *prev, *next;
	/* host: the program's memory, borrowed. shadow: its contents when both ends were last
	 * equal, owned. run_bitmap: the words that belong to long runs of changes
	 * (protocol/host_run_bitmap.h), owned. */
	uint8_t *host, *shadow, *run_bitmap;
	/* address of the replica, in the worker */
	uint64_t address;
	size_t size;
	/* value of gpc_coherence.writes after the initial contents were posted; a fetch with a
	 * lower number does not cover the block */
	uint64_t writes;
};

/* When the worker scans for changes. */
enum gpc_fetch_when {
	GPC_FETCH_NOW,
	GPC_FETCH_AFTER_WORK, /* when a stream's, event's or context's work is done; used only in
				 coherence_fetch.c */
	GPC_FETCH_ON_CHANGE,  /* as soon as there is a change */
};

/* A request for the changes that kernels have made. The caller's, who frees it after
 * gpc_coherence_fetch_end(). Linked in gpc_coherence.fetches until the reply is processed. */
struct gpc_coherence_fetch {
	struct gpc_coherence_fetch *prev, *next;
	struct gpc_request request;
	struct gpc_coherence *coherence;
	/* number of change records (as gpc_coherence.writes) that the worker had stored before it
	 * scanned for the reply */
	uint64_t writes;
	/* gp_now_ns() at the start */
	uint64_t begun_ns;
	/* requested: bytes of the requested ranges; 0: nothing was requested. done: bytes of these
	 * ranges, in sequence, that the reply covers. */
	uint64_t requested, done;
	uint64_t revision; /* revision of the list of blocks at the start */
	enum gpc_fetch_when when;
	/* the reply is missing or malformed, and nothing of it was stored */
	bool failed;
	struct gpc_replica *last; /* block that was stored to last, as the next change is often in
				     it; NULL: none */
};

/* Progress of a transfer of all blocks in one direction. Everything is transferred as one
 * consistent copy (protocol/host_consistent_copy.h) or, if that is too large, in two passes: first
 * long runs of changed bytes, then the rest. A zeroed cursor is at the start. */
struct gpc_coherence_cursor {
	/* Byte offsets in the concatenation of all blocks. at: next byte. from, end: bounds of the
	 * part that is transferred in two passes. */
	uint64_t at, from, end;
	uint64_t revision; /* revision of the list of blocks for which the offsets are valid */
	enum gp_consistent_copy_part part;
	/* number of attempts to transfer the part at `at` as one consistent copy */
	int tries;
};

/* The coherence state of one session. Members are constant, unless they are in a group with a lock
 * or atomic. */
struct gpc_coherence {
	struct gpc_session *session; /* borrowed */
	struct gpc_coherence *next;  /* in the list of all sessions' states */
	/* primary context of a device of the session, in which requests are made */
	struct gpc_context *primary;
	/* passed to gpc_session_set_callbacks(), which does not copy them */
	struct gpc_session_callbacks callbacks;

	/* Group of send_lock, up to `opened`. The lock determines the order in which changes are
	 * sent, and is held while they are posted. */
	pthread_mutex_t send_lock;
	/* encoded changes that are being sent: a buffer of GP_CHANGES_MAX bytes, owned */
	uint8_t *bytes;
	/* buffer for the encoded ranges of the fetch that is being posted */
	uint8_t named[GP_HOST_RANGES_MAX * 16] __attribute__((aligned(8)));
	struct gp_consistent_copy consistent_copy; /* the changes that are being sent */
	/* pointers to copy-only blocks (host_block.h) that were found in the changes to be sent;
	 * these blocks are mapped for kernels before the changes are sent */
	struct gpc_pointer_scan pointers;
	/* number of change records (gpHostWrite) posted, which is also the number of the last
	 * one */
	uint64_t writes;
	struct gpc_listed_copies listed;
	/* gpHostMerge and gpHostPublish were posted before the first change, as far as the daemon
	 * has them and the session needs them */
	bool opened;

	/* Group of `lock`, up to `over`. The lock is never held while something is posted, because
	 * the thread that reads the daemon's replies acquires it. */
	pthread_mutex_t lock;
	pthread_cond_t wanted;      /* signaled for the exchange thread */
	struct gpc_replica *blocks; /* list of `count` blocks, owned; NULL: none */
	size_t count;
	uint64_t size;                       /* total size of the blocks */
	uint64_t revision;                   /* incremented when the list changes */
	struct gp_changes_range *ranges;     /* buffer for gpc_coherence_get_ranges(), owned */
	size_t capacity;                     /* capacity of ranges */
	struct gpc_coherence_fetch *fetches; /* fetches without a reply, oldest first */
	/* change records that the replies to these fetches may not include (inflight_writes.h),
	 * owned; NULL: none */
	struct gpc_inflight_writes *sent;
	uint64_t least_ns; /* shortest round trip of a fetch in nanoseconds; 0: none yet */
	/* argument of the gpHostPublish that the daemon has requested; the exchange thread sends it
	 * after all changes; 0: none */
	uint32_t publish_number;
	bool started; /* the exchange thread was started */
	bool over;    /* the session is over */

	/* The exchange thread waits for `wanted`, or is about to. Threads that have posted work
	 * read it without a lock to decide whether to signal. */
	atomic_bool sleeps;
	/* All work up to this work number (client/session/session.h) is done, and its changes have
	 * been stored. */
	atomic_uint_fast64_t clean;
};

/* Returns the coherence state of the session, borrowed. Returns NULL if the session never had a
 * block. Acquires no lock. */
struct gpc_coherence *gpc_coherence_find(const struct gpc_session *session);

/* Fills coherence->ranges with the blocks from the byte offset `skip` of their concatenation on.
 * Returns the number of ranges; 0: no block is left. The ranges are valid while the lock is
 * held. */
size_t gpc_coherence_get_ranges(struct gpc_coherence *coherence, uint64_t skip)
	GP_LOCKED(coherence->lock);
/* Removes registered blocks whose memory the program has unmapped without unregistering it. Makes a
 * system call for each registered block. */
void gpc_coherence_drop_unmapped(struct gpc_coherence *coherence) GP_LOCKED(coherence->lock);
/* Calls gpc_coherence_drop_unmapped(). Sets the cursor to the start if the list of blocks has
 * changed since the cursor was last used. */
void gpc_coherence_refresh_cursor(struct gpc_coherence *coherence,
				  struct gpc_coherence_cursor *cursor) GP_LOCKED(coherence->lock);
/* Advances the cursor: `requested` bytes were requested from cursor->at on, of which `done` were
 * processed. If a consistent copy of everything was too large, the cursor does not move, but
 * selects the part to transfer next. */
void gpc_coherence_cursor_advance(struct gpc_coherence_cursor *cursor, uint64_t requested,
				  uint64_t done);

/* Starts a fetch of the blocks from the cursor on; does not wait. *fetch must be zeroed except
 * `when` (GPC_FETCH_NOW or GPC_FETCH_ON_CHANGE). After CUDA_SUCCESS with fetch->requested not 0,
 * gpc_coherence_fetch_end() must follow, and *fetch must stay valid until then. fetch->requested is
 * 0, and nothing is to be ended, if there is no block after the cursor, or too much memory for
 * GPC_FETCH_ON_CHANGE. Returns the session's error or CUDA_ERROR_OUT_OF_MEMORY on failure; *fetch
 * is then unused. */
CUresult gpc_coherence_fetch_start(struct gpc_coherence *coherence,
				   struct gpc_coherence_fetch *fetch,
				   struct gpc_coherence_cursor *cursor);
/* Blocks until the reply has been processed, and frees the reply, but not *fetch. part: the
 * cursor's part when the fetch was started. Returns CUDA_SUCCESS or the error of the request. If
 * the reply is malformed or makes no progress, ends the session and returns GPC_ERROR_LOST
 * (client/base/error.h). */
CUresult gpc_coherence_fetch_end(struct gpc_coherence_fetch *fetch,
				 enum gp_consistent_copy_part part);
/* Blocks until all changes that kernels have made so far are stored. Returns CUDA_SUCCESS, or an
 * error of gpc_coherence_fetch_start() or gpc_coherence_fetch_end(). */
CUresult gpc_coherence_fetch_all(struct gpc_coherence *coherence);

/* Main function of the exchange thread; arg: the struct gpc_coherence. Returns NULL when the
 * session is over. */
void *gpc_coherence_run(void *arg);

#endif /* GPC_COHERENCE_INTERNAL_H */
