/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of one session of which the daemon has a copy, as the files mirror*.c share them:
 * mirror.c has the list and sends, mirror_fetch.c fetches, mirror_thread.c does both again and
 * again.
 *
 * A mirror is kept like its session.  Its locks say who may do what.
 */
#ifndef GPC_MIRROR_STATE_H
#define GPC_MIRROR_STATE_H

#include "base/lock.h"
#include "client/host/host_names.h"
#include "client/host/listed_copy.h"
#include "client/wire/call.h"
#include "client/wire/session.h"
#include "protocol/host_picture.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_inflight_writes;

struct gpc_replica {
	struct gpc_replica *prev, *next;
	uint8_t *host, *shadow, *run_bitmap;
	uint64_t address;
	size_t size;
	uint64_t writes; /* the record with the last of what it was at first */
};

/* When the daemon looks. */
enum gpc_fetch_when {
	GPC_FETCH_NOW,
	GPC_FETCH_AFTER_WORK, /* work */
	GPC_FETCH_ON_CHANGE,  /* when something is there */
};

struct gpc_coherence_fetch {
	struct gpc_coherence_fetch *prev, *next;
	struct gpc_request request;
	struct gpc_coherence *coherence;
	uint64_t writes; /* records with changes that the daemon has stored before its answer */
	uint64_t begun_ns;
	uint64_t requested, done; /* bytes of its ranges, and of those that the answer holds for */
	uint64_t revision;        /* of the list of blocks */
	enum gpc_fetch_when when;
	bool failed;
	struct gpc_replica *last; /* that something was stored in */
};

/* How far what goes one way has got: all at once, or long runs before the rest. */
struct gpc_coherence_cursor {
	uint64_t at, from, end; /* bytes of all blocks, one after the other */
	uint64_t revision;
	enum gp_consistent_copy_part part;
	int tries;
};

/* The blocks of one session; kept like the session itself. */
struct gpc_coherence {
	struct gpc_session *session;
	struct gpc_coherence *next;
	struct gpc_context *primary; /* in whose name it asks; it always exists */
	struct gpc_session_hooks hooks;

	/* The order in which changes go out; held while they are posted. */
	pthread_mutex_t send_lock;
	uint8_t *bytes; /* GP_CHANGES_MAX; under send_lock, like these: */
	uint8_t named[GP_HOST_RANGES_MAX * 16] __attribute__((aligned(8)));
	struct gp_consistent_copy consistent_copy;
	struct gpc_pointer_scan pointers; /* that a picture has, which is not sent before */
	uint64_t writes;                  /* records with changes that were posted */
	struct gpc_listed_copies listed;
	bool opened; /* gpHostMerge was posted, if the daemon has it */

	/* Of what follows.  Never held while something is posted: the reader of the connection
	 * takes it. */
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* for the thread */
	struct gpc_replica *blocks;
	size_t count;
	uint64_t size;     /* of them all */
	uint64_t revision; /* of the list */
	struct gp_changes_range *ranges;
	size_t room; /* of them */
	struct gpc_coherence_fetch *fetches;
	struct gpc_inflight_writes *sent;
	uint64_t least_ns;       /* that an answer has taken; 0: none has come */
	uint32_t publish_number; /* the number that the daemon wants; 0: none */
	bool started;
	bool over;

	atomic_bool sleeps;
	/* All work up to this record is done, and what it has changed is here. */
	atomic_uint_fast64_t clean;
};

/* NULL: it has none. */
struct gpc_coherence *gpc_coherence_find(const struct gpc_session *session);

/* The ranges behind so many bytes of all blocks are in mirror->ranges; how many. */
size_t gpc_coherence_get_ranges(struct gpc_coherence *coherence, uint64_t skip)
	GP_LOCKED(coherence->lock);
/* Blocks of which the program has unmapped the memory. */
void gpc_coherence_drop_unmapped(struct gpc_coherence *coherence) GP_LOCKED(coherence->lock);
/* From the start, if the blocks are other ones than before. */
void gpc_coherence_refresh_cursor(struct gpc_coherence *coherence,
				  struct gpc_coherence_cursor *cursor) GP_LOCKED(coherence->lock);
/* So much was asked for from way->at on, and so much of it is done. */
void gpc_coherence_cursor_advance(struct gpc_coherence_cursor *cursor, uint64_t requested,
				  uint64_t done);

/* The fetch is zeros but for `when`, NOW or CHANGED, and stays until gpc_coherence_fetch_end().
 * Where there is no block behind the way, or too much to be told later, nothing is asked, and
 * nothing is to be ended. */
CUresult gpc_coherence_fetch_start(struct gpc_coherence *coherence,
				   struct gpc_coherence_fetch *fetch,
				   struct gpc_coherence_cursor *cursor);
CUresult gpc_coherence_fetch_end(struct gpc_coherence_fetch *fetch,
				 enum gp_consistent_copy_part part);
/* Waits until all that kernels had changed is here. */
CUresult gpc_coherence_fetch_all(struct gpc_coherence *coherence);

/* The thread gpupool-mirror; arg: the mirror. */
void *gpc_coherence_run(void *arg);

#endif /* GPC_MIRROR_STATE_H */
