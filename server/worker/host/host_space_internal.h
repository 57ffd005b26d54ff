/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's host memory, shared by host_space.c, which maps it, and
 * coherence.c and coherence_fetch.c, which synchronize it with the client's copy.
 *
 * Threads: only the executor changes the list of arenas, so it reads the list without a lock.
 * copies_lock protects what the responder and the watch thread also use.
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

/* A request for a consistent copy that is answered later: when work is done, or when something has
 * changed. */
struct gpd_host_query {
	struct gpd_host_query *next;
	void *request;               /* gpd_wait_request() */
	uint64_t writes, queried_ns; /* values at the time of the request */
	size_t count;
	struct gp_changes_range ranges[];
};

struct gpd_host_watch;

/* Freed when it has neither a session nor arenas. */
struct gpd_host_memory {
	struct gpd_range range;

	/* Protects changes of the list, the arenas' shadows and the members below. Held until a
	 * consistent copy is sent, because the client stores copies in the order in which they
	 * arrive. */
	pthread_mutex_t copies_lock;
	struct gpd_host_arena **arenas; /* sorted by address */
	size_t count;
	atomic_uint had; /* number of arenas, including unmapped ones */
	struct gp_consistent_copy consistent_copy;
	uint64_t writes;              /* number of gpHostWrite carried out */
	bool publishes;               /* executor: the client replies to GP_NOTE_PUBLISH */
	struct gpd_host_watch *watch; /* coherence_fetch.c; NULL: no request was ever deferred */

	pthread_mutex_t lock;        /* protects the members below */
	struct gpd_session *session; /* NULL: it has ended */
	uint32_t tenant;             /* tenant of the ended session */
	struct gpd_host_arena *leaving;
};

/* Returns the arena that contains the whole range, or NULL. */
struct gpd_host_arena *gpd_host_memory_arena(const struct gpd_session *session, uint64_t address,
					     uint64_t size);

/* With copies_lock held: replies to the current call with the changes in the ranges. */
CUresult gpd_host_fetch(struct gpd_session *session, struct gp_bytes ranges,
			enum gp_consistent_copy_part part);

/* Executor: creates a deferred request for these ranges, which are limited in size. The caller owns
 * it. */
CUresult gpd_host_query_create(struct gpd_session *session, struct gp_bytes ranges,
			       struct gpd_host_query **query_p);
/* With copies_lock held: replies to the request with all changes so far. */
CUresult gpd_host_query_reply(struct gpd_session *session, struct gpd_host_query *query);
/* With copies_lock held: whether a scan finds a change. */
bool gpd_host_query_has_changes(struct gpd_session *session, struct gpd_host_query *query);

/* Executor: whether the bytes are within the session's range; if not, the session ends. */
bool gpd_host_memory_inside(struct gpd_session *session, uint64_t address, uint64_t size);

#endif /* GPD_HOST_SPACE_INTERNAL_H */
