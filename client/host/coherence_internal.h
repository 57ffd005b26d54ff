/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherence state of one session, shared by the files coherence*.c and listed_copy.c: coherence.c
 * has the list of blocks and sends changes, coherence_fetch.c fetches changes, coherence_thread.c
 * does both periodically.
 *
 * Ownership: a struct gpc_coherence is created with the session's first block and never freed, as
 * its session.
 * Threads: each member is guarded by the lock named at it. lock may be acquired while send_lock is
 * held, not the other way round.
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
 * constant except for the contents of shadow and run_bitmap. */
struct gpc_replica {
	struct gpc_replica *prev, *next;
	uint8_t *host, *shadow, *run_bitmap; /* the program's memory (borrowed); its contents when
						both ends were last equal, and the words that belong
						to long runs of changes (both owned) */
	uint64_t address;                    /* address of the replica */
	size_t size;
	uint64_t writes; /* value of gpc_coherence.writes after its initial contents were posted */
};

/* When the worker scans for changes. */
enum gpc_fetch_when {
	GPC_FETCH_NOW,
	GPC_FETCH_AFTER_WORK, /* when the work given in the request is done */
	GPC_FETCH_ON_CHANGE,  /* as soon as there is a change */
};

/* A request for the changes that kernels have made. In the caller's memory until
 * gpc_coherence_fetch_end(). Linked in gpc_coherence.fetches until the reply is processed. */
struct gpc_coherence_fetch {
	struct gpc_coherence_fetch *prev, *next;
	struct gpc_request request;
	struct gpc_coherence *coherence;
	uint64_t writes; /* number of change records that the daemon has stored before its reply */
	uint64_t begun_ns;        /* gp_now_ns() at the start */
	uint64_t requested, done; /* bytes of the requested ranges (0: nothing was requested), and
				     of the ranges that the reply covers */
	uint64_t revision;        /* revision of the list of blocks at the start */
	enum gpc_fetch_when when;
	bool failed;              /* the reply is missing or malformed, and was not stored */
	struct gpc_replica *last; /* block that was stored to last, as the next change is often in
				     it; NULL: none */
};

/* Progress of a transfer of all blocks in one direction: everything as one consistent copy (a set
 * of changes that were all in memory at one time) or, if that is too large, long runs of changed
 * bytes before the rest. A zeroed cursor is at the start. */
struct gpc_coherence_cursor {
	uint64_t at, from, end; /* byte offsets in the concatenation of all blocks: the next byte,
				   and the bounds of the part that is sent in two passes */
	uint64_t revision;      /* revision of the list of blocks for which the offsets are valid */
	enum gp_consistent_copy_part part;
	int tries; /* number of attempts to send the part as one consistent copy */
};

/* The coherence state of one session. Members without a note are constant. */
struct gpc_coherence {
	struct gpc_session *session; /* borrowed */
	struct gpc_coherence *next;  /* in the list of all sessions' states */
	struct gpc_context *primary; /* context of the requests: the primary context of a device of
					the session */
	struct gpc_session_hooks hooks;

	/* Determines the order in which changes are sent; held while they are posted. Guards the
	 * members until `opened`. */
	pthread_mutex_t send_lock;
	uint8_t *bytes; /* buffer of GP_CHANGES_MAX bytes, owned */
	uint8_t named[GP_HOST_RANGES_MAX * 16]
		__attribute__((aligned(8))); /* encoded ranges of the fetch that is being posted */
	struct gp_consistent_copy consistent_copy;
	struct gpc_pointer_scan pointers; /* addresses in a consistent copy of blocks that must be
					     mapped for kernels before the copy is sent */
	uint64_t writes;                  /* number of change records posted */
	struct gpc_listed_copies listed;
	bool opened; /* the calls that start the exchange were posted */

	/* Guards the members until `over`. Never held while something is posted, because the thread
	 * that reads the daemon's replies acquires it. */
	pthread_mutex_t lock;
	pthread_cond_t wanted;      /* signaled for the exchange thread */
	struct gpc_replica *blocks; /* list of `count` blocks, owned; NULL: none */
	size_t count;
	uint64_t size;                       /* total size of the blocks */
	uint64_t revision;                   /* incremented when the list changes */
	struct gp_changes_range *ranges;     /* buffer for gpc_coherence_get_ranges(), owned */
	size_t room;                         /* capacity of ranges */
	struct gpc_coherence_fetch *fetches; /* fetches without a reply, oldest first */
	struct gpc_inflight_writes
		*sent;           /* changes that these fetches do not include, owned; NULL: none */
	uint64_t least_ns;       /* shortest round trip of a fetch in nanoseconds; 0: none yet */
	uint32_t publish_number; /* number of the publication that the daemon has requested; 0: none
				  */
	bool started;            /* the exchange thread was started */
	bool over;               /* the session is over */

	/* Set while the exchange thread waits for `wanted`. */
	atomic_bool sleeps;
	/* All work up to this work number (session.h) is done, and its changes have been stored. */
	atomic_uint_fast64_t clean;
};

/* Returns the coherence state of the session, borrowed. Returns NULL if the session never had a
 * block. */
struct gpc_coherence *gpc_coherence_find(const struct gpc_session *session);

/* Fills coherence->ranges with the blocks from the byte offset `skip` of their concatenation on.
 * Returns the number of ranges, 0 if no block is left. The ranges are valid while the lock is
 * held. */
size_t gpc_coherence_get_ranges(struct gpc_coherence *coherence, uint64_t skip)
	GP_LOCKED(coherence->lock);
/* Removes blocks whose memory the program has unmapped without unregistering it. Makes a system
 * call for each registered block. */
void gpc_coherence_drop_unmapped(struct gpc_coherence *coherence) GP_LOCKED(coherence->lock);
/* Sets the cursor to the start if the list of blocks has changed since it was used last. */
void gpc_coherence_refresh_cursor(struct gpc_coherence *coherence,
				  struct gpc_coherence_cursor *cursor) GP_LOCKED(coherence->lock);
/* Advances the cursor: `requested` bytes were requested from cursor->at on, of which `done` were
 * processed. If a consistent copy of everything was too large, the cursor stays, and selects the
 * part to send next. */
void gpc_coherence_cursor_advance(struct gpc_coherence_cursor *cursor, uint64_t requested,
				  uint64_t done);

/* Starts a fetch of the blocks from the cursor on; does not wait. *fetch must be zeroed except
 * `when` (GPC_FETCH_NOW or GPC_FETCH_ON_CHANGE) and stay valid until gpc_coherence_fetch_end(),
 * which must follow CUDA_SUCCESS. If there is no block after the cursor, or too much memory to wait
 * for a change, returns CUDA_SUCCESS with fetch->requested 0, and gpc_coherence_fetch_end() must
 * not be called. Returns the session's error on failure; *fetch is then unused. */
CUresult gpc_coherence_fetch_start(struct gpc_coherence *coherence,
				   struct gpc_coherence_fetch *fetch,
				   struct gpc_coherence_cursor *cursor);
/* Blocks until the reply has been processed, and frees the reply, but not *fetch. part: the
 * cursor's part when the fetch was started. Returns CUDA_SUCCESS or the error of the request. Ends
 * the session and returns GPC_ERROR_LOST if the reply is malformed or makes no progress. */
CUresult gpc_coherence_fetch_end(struct gpc_coherence_fetch *fetch,
				 enum gp_consistent_copy_part part);
/* Blocks until all changes that kernels have made so far are stored. Returns CUDA_SUCCESS or an
 * error of the two functions above. */
CUresult gpc_coherence_fetch_all(struct gpc_coherence *coherence);

/* Main function of the exchange thread; arg: the struct gpc_coherence. Returns NULL when the
 * session is over. */
void *gpc_coherence_run(void *arg);

#endif /* GPC_COHERENCE_INTERNAL_H */
