/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's host memory, shared by host_space.c, which maps it, and by
 * coherence.c and coherence_fetch.c, which synchronize it with the client's copy.
 *
 * Words: a consistent copy consists of the changed parts of some ranges, in an order in which an
 * observer that sees a flag also finds the data written before the flag. A run is a range of
 * changed words (for both see protocol/host_consistent_copy.h). A shadow is the content of an arena
 * on which both ends have agreed (host_arena.h). A request is a call of the client for a consistent
 * copy.
 * Threads: only the executor changes the list of arenas, so it reads the list without a lock.
 * copies_lock protects the members that the responder and the watch thread (coherence_fetch.h) also
 * use. Lock order: copies_lock and lock are not held together.
 * Errors: CUresult; GPD_LATER (session/session.h) if the reply has been or will be sent.
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

/* Maximum number of arenas of a session, including unmapped ones that are not freed yet. */
#define GPD_HOST_ARENAS_MAX 4096

/* A request for a consistent copy that is answered later: when work is done, or when something has
 * changed. Owned by its creator, then by the wait (stream/responder.h) or the watch thread that
 * answers it; freed with free(). */
struct gpd_host_request {
	struct gpd_host_request *next; /* in the watch thread's list */
	/* token of the call's reply, from gpd_wait_request() (stream/responder.h) */
	void *reply_token;
	/* gpd_host_memory.writes, and gp_now_ns() in nanoseconds, at the time of the request. Set
	 * and used by coherence_fetch.c; else 0. */
	uint64_t writes, requested_ns;
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
	size_t count; /* number of mapped arenas; changed as the list */
	/* Number of mapped arenas and of unmapped arenas that are not freed yet. */
	atomic_uint arenas_alive;
	/* Buffers in which consistent copies are built. Its member `merges` is set by
	 * gpHostMerge. */
	struct gp_consistent_copy consistent_copy;
	uint64_t writes; /* number of gpHostWrite calls carried out */
	/* The client supports GP_NOTE_PUBLISH, by which the worker requests its changes
	 * (gpHostPublish). Executor only. */
	bool publishes;
	/* Watch thread and its requests (coherence_fetch.c), owned; NULL: no request was ever
	 * pending, or the thread was stopped. */
	struct gpd_host_watch *watch;

	pthread_mutex_t lock;        /* protects the members below */
	struct gpd_session *session; /* NULL: the session has ended */
	uint32_t tenant;             /* tenant of the session, valid after the session has ended */
	struct gpd_host_arena *leaving; /* list of unmapped arenas that are not freed yet */
};

/* Returns the mapped arena that contains all of [address, address + size), borrowed until the
 * client unmaps it; NULL: there is none. The executor, or another thread that holds copies_lock. */
struct gpd_host_arena *gpd_host_memory_arena(const struct gpd_session *session, uint64_t address,
					     uint64_t size);

/* Replies to the current call with the changes in the ranges. session->host_memory must exist.
 * bytes: the ranges as an encoded array from the client, unchecked. part: GP_CONSISTENT_COPY_ALL,
 * all changes, or none if they are too large for one reply; GP_CONSISTENT_COPY_LONG, long runs
 * only; GP_CONSISTENT_COPY_ANY, runs of any length, up to the limit. copies_lock must be held.
 * Executor only.
 * GPD_LATER: the reply was sent; it contains CUDA_ERROR_OUT_OF_MEMORY if it could not be encoded.
 * CUDA_ERROR_INVALID_VALUE: nothing was sent; a range is not mapped or has no memory for its
 * shadow, there are more than GP_HOST_RANGES_MAX ranges (protocol/host_changes.h), or they are
 * larger in total than the mapped memory.
 * CUDA_ERROR_OUT_OF_MEMORY: nothing was sent. */
CUresult gpd_host_fetch(struct gpd_session *session, struct gp_bytes bytes,
			enum gp_consistent_copy_part part);

/* Creates a request for these ranges, an encoded array from the client, unchecked. Returns
 * CUDA_SUCCESS and sets *request_p, which the caller owns; CUDA_ERROR_INVALID_VALUE if the session
 * has no host memory, a range is not mapped or has no memory for its shadow, or the ranges exceed
 * GP_HOST_AFTER_RANGES in number or GP_HOST_AFTER_MAX (protocol/host_changes.h) in total size; or
 * CUDA_ERROR_OUT_OF_MEMORY. Acquires copies_lock. Executor only. */
CUresult gpd_host_request_create(struct gpd_session *session, struct gp_bytes ranges,
				 struct gpd_host_request **request_p);
/* Replies to the request with all changes so far. Drops ranges from the request that are no longer
 * mapped. Returns CUDA_SUCCESS; or CUDA_ERROR_OUT_OF_MEMORY if nothing was sent, and the caller
 * replies with the error. The caller still owns the request. copies_lock must be held. */
CUresult gpd_host_request_reply(struct gpd_session *session, struct gpd_host_request *request);
/* Returns whether a scan of the memory finds a change in the request's ranges. Drops ranges from
 * the request that are no longer mapped. copies_lock must be held. */
bool gpd_host_request_has_changes(struct gpd_session *session, struct gpd_host_request *request);

/* Returns whether the bytes, whose address and size come from the client unchecked, are within the
 * session's range; if not, reports a violation, which ends the session. Executor only. */
bool gpd_host_memory_inside(struct gpd_session *session, uint64_t address, uint64_t size);

#endif /* GPD_HOST_SPACE_INTERNAL_H */
