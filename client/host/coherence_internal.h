/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherence state of one session, shared by the files mirror*.c: coherence.c has the list of blocks
 * and sends changes, coherence_fetch.c fetches changes, coherence_thread.c does both periodically.
 *
 * Ownership: a struct gpc_coherence exists as long as its session.
 * Threads: each member is guarded by the lock named at it.
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

/* A block of host memory with a replica at the daemon. */
struct gpc_replica {
	struct gpc_replica *prev, *next;
	uint8_t *host, *shadow, *run_bitmap;
	uint64_t address;
	size_t size;
	uint64_t writes; /* number of the record with the last of its initial contents */
};

/* When the daemon scans for changes. */
enum gpc_fetch_when {
	GPC_FETCH_NOW,
	GPC_FETCH_AFTER_WORK, /* when the named work is done */
	GPC_FETCH_ON_CHANGE,  /* as soon as there is a change */
};

/* A request for the changes that kernels have made. */
struct gpc_coherence_fetch {
	struct gpc_coherence_fetch *prev, *next;
	struct gpc_request request;
	struct gpc_coherence *coherence;
	uint64_t writes; /* number of change records that the daemon has stored before its reply */
	uint64_t begun_ns;
	uint64_t requested,
		done;      /* bytes of the requested ranges, and of those that the reply covers */
	uint64_t revision; /* revision of the list of blocks */
	enum gpc_fetch_when when;
	bool failed;
	struct gpc_replica *last; /* block that was stored to last */
};

/* Progress of a transfer in one direction: everything as one consistent copy, or long runs before
 * the rest. */
struct gpc_coherence_cursor {
	uint64_t at, from, end; /* byte offsets in the concatenation of all blocks */
	uint64_t revision;
	enum gp_consistent_copy_part part;
	int tries;
};

/* The coherence state of one session. */
struct gpc_coherence {
	struct gpc_session *session;
	struct gpc_coherence *next;
	struct gpc_context *primary; /* context of the requests; always exists */
	struct gpc_session_hooks hooks;

	/* Determines the order in which changes are sent; held while they are posted. */
	pthread_mutex_t send_lock;
	uint8_t *bytes; /* buffer of GP_CHANGES_MAX bytes; guarded by send_lock, as are: */
	uint8_t named[GP_HOST_RANGES_MAX * 16] __attribute__((aligned(8)));
	struct gp_consistent_copy consistent_copy;
	struct gpc_pointer_scan
		pointers; /* addresses in a consistent copy; mapped before the copy is sent */
	uint64_t writes;  /* number of change records posted */
	struct gpc_listed_copies listed;
	bool opened; /* gpHostMerge was posted, if the daemon supports it */

	/* Guards the following. Never held while something is posted, because the reader of the
	 * connection acquires it. */
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* signaled for the thread */
	struct gpc_replica *blocks;
	size_t count;
	uint64_t size;     /* total size of the blocks */
	uint64_t revision; /* incremented when the list changes */
	struct gp_changes_range *ranges;
	size_t room; /* capacity of ranges */
	struct gpc_coherence_fetch *fetches;
	struct gpc_inflight_writes *sent;
	uint64_t least_ns;       /* shortest round trip of a fetch; 0: none yet */
	uint32_t publish_number; /* number of the publication that the daemon has requested; 0: none
				  */
	bool started;
	bool over;

	atomic_bool sleeps;
	/* All work up to this work number is done, and its changes have been stored. */
	atomic_uint_fast64_t clean;
};

/* Returns NULL if the session has none. */
struct gpc_coherence *gpc_coherence_find(const struct gpc_session *session);

/* Fills coherence->ranges with the blocks from the byte offset `skip` on. Returns their number. */
size_t gpc_coherence_get_ranges(struct gpc_coherence *coherence, uint64_t skip)
	GP_LOCKED(coherence->lock);
/* Removes blocks whose memory the program has unmapped. */
void gpc_coherence_drop_unmapped(struct gpc_coherence *coherence) GP_LOCKED(coherence->lock);
/* Restarts the cursor if the list of blocks has changed. */
void gpc_coherence_refresh_cursor(struct gpc_coherence *coherence,
				  struct gpc_coherence_cursor *cursor) GP_LOCKED(coherence->lock);
/* Advances the cursor: `requested` bytes were requested from cursor->at on, of which `done` were
 * processed. */
void gpc_coherence_cursor_advance(struct gpc_coherence_cursor *cursor, uint64_t requested,
				  uint64_t done);

/* Starts a fetch from the cursor on. *fetch must be zeroed except `when` (GPC_FETCH_NOW or
 * GPC_FETCH_ON_CHANGE) and stay valid until gpc_coherence_fetch_end(). If there is no block after
 * the cursor, or too much to be parked, nothing is requested (fetch->requested is 0), and
 * gpc_coherence_fetch_end() must not be called. */
CUresult gpc_coherence_fetch_start(struct gpc_coherence *coherence,
				   struct gpc_coherence_fetch *fetch,
				   struct gpc_coherence_cursor *cursor);
/* Waits for a fetch and frees its reply. Ends the session if the reply is malformed or makes no
 * progress. */
CUresult gpc_coherence_fetch_end(struct gpc_coherence_fetch *fetch,
				 enum gp_consistent_copy_part part);
/* Waits until all changes that kernels have made so far are stored. */
CUresult gpc_coherence_fetch_all(struct gpc_coherence *coherence);

/* Main function of the exchange thread; arg: the struct gpc_coherence. */
void *gpc_coherence_run(void *arg);

#endif /* GPC_COHERENCE_INTERNAL_H */
