/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's host memory, shared by host_space.c, which maps it, and by
 * coherence.c and coherence_fetch.c, which synchronize it with the client's copy.
 *
 * Threads: only the executor changes the list of arenas, so it reads the list without a lock.
 * copies_lock protects the members that the responder and the watch thread (coherence_fetch.h) also
 * use. Lock order: copies_lock and lock are not held together.
 * Errors: CUresult; GPD_LATER if the reply has been or will be sent.
 */
#ifndef GPD_HOST_SPACE_INTERNAL_H
#define GPD_HOST_SPACE_INTERNAL_H

#include "protocol/host_consistent_copy.h"
#include "server/common/ledger/channel.h"
#include "server/worker/host/host_arena.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

#define GPD_HOST_ARENAS_MAX 4096

/* A request for a consistent copy (the changed parts of some ranges) that is answered later: when
 * work is done, or when something has changed. Owned by its creator, then by the wait or the watch
 * thread that answers it; freed with free(). */
struct gpd_host_query {
	struct gpd_host_query *next; /* in the watch thread's list */
	void *request;               /* gpd_wait_request() of the call */
	/* gpd_host_memory.writes and gp_now_ns() at the time of the request. */
	uint64_t writes, queried_ns;
	size_t count; /* length of ranges */
	struct gp_changes_range ranges[];
};

struct gpd_host_watch;

/* Host memory of a session. Freed when it has neither a session nor arenas. */
struct gpd_host_memory {
	struct gpd_range range; /* reserved addresses; size 0: none */

	/* Protects changes of the list, the arenas' shadows and the members up to `lock`, unless
	 * noted. Held until a consistent copy is sent, because the client stores copies in the
	 * order in which they arrive. */
	pthread_mutex_t copies_lock;
	/* Mapped arenas, sorted by address; owned; NULL before the first one. */
	struct gpd_host_arena **arenas;
	size_t count;    /* number of mapped arenas */
	atomic_uint had; /* number of arenas, including unmapped ones that are not freed */
	struct gp_consistent_copy consistent_copy;
	uint64_t writes; /* number of gpHostWrite calls carried out */
	bool publishes;  /* the client replies to GP_NOTE_PUBLISH; executor only */
	/* Watch thread (coherence_fetch.c); NULL: no request was ever pending. */
	struct gpd_host_watch *watch;

	pthread_mutex_t lock;        /* Protects the members below. */
	struct gpd_session *session; /* NULL: the session has ended */
	uint32_t tenant;             /* tenant of the session, valid after the session has ended */
	struct gpd_host_arena *leaving; /* list of unmapped arenas that are not freed yet */
};

/* Returns the arena that contains all of [address, address + size), borrowed; NULL: there is
 * none. */
struct gpd_host_arena *gpd_host_memory_arena(const struct gpd_session *session, uint64_t address,
					     uint64_t size);

/* Replies to the current call with the changes in the ranges, an encoded array. part: which
 * changes to send, in particular whether all or none. Returns GPD_LATER (the reply was sent),
 * CUDA_ERROR_INVALID_VALUE or CUDA_ERROR_OUT_OF_MEMORY. copies_lock must be held. */
CUresult gpd_host_fetch(struct gpd_session *session, struct gp_bytes ranges,
			enum gp_consistent_copy_part part);

/* Creates a request for these ranges, an encoded array of at most GP_HOST_AFTER_RANGES. On success
 * the caller owns *query_p and frees it with free(). CUDA_ERROR_INVALID_VALUE: too many or unmapped
 * ranges; CUDA_ERROR_OUT_OF_MEMORY. Executor only. */
CUresult gpd_host_query_create(struct gpd_session *session, struct gp_bytes ranges,
			       struct gpd_host_query **query_p);
/* Replies to the request with all changes so far. Returns CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY:
 * nothing was sent, and the caller replies with the error. The caller still owns the request.
 * copies_lock must be held. */
CUresult gpd_host_query_reply(struct gpd_session *session, struct gpd_host_query *query);
/* Returns whether a scan finds a change in the request's ranges. copies_lock must be held. */
bool gpd_host_query_has_changes(struct gpd_session *session, struct gpd_host_query *query);

/* Returns whether the bytes are within the session's range; if not, reports a violation, which ends
 * the session. Executor only. */
bool gpd_host_memory_inside(struct gpd_session *session, uint64_t address, uint64_t size);

#endif /* GPD_HOST_SPACE_INTERNAL_H */
