/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's host memory, as host_memory.c, which maps it, and host_take.c, which keeps it like
 * the client's, share it.
 *
 * The executor alone changes the list of arenas, so it reads it without a lock.  What the
 * responder looks at as well is under copies_lock.
 */
#ifndef GPD_HOST_STATE_H
#define GPD_HOST_STATE_H

#include "protocol/host_picture.h"
#include "server/common/ledger/channel.h"
#include "server/worker/memory/host_arena.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

#define GPD_HOST_ARENAS_MAX 4096

/* A picture that is taken later: when work is done, or something has changed. */
struct gpd_host_query {
	struct gpd_host_query *next;
	void *request;               /* gpd_wait_request() */
	uint64_t writes, queried_ns; /* when it was asked */
	size_t count;
	struct gp_changes_range ranges[];
};

struct gpd_host_watch;

/* It goes when it has neither a session nor arenas. */
struct gpd_host_memory {
	struct gpd_range range;

	/* Of changes of the list, of the arenas' shadows and of what follows.  Held until a picture
	 * is sent: the client stores them in the order in which they come. */
	pthread_mutex_t copies_lock;
	struct gpd_host_arena **arenas; /* by address */
	size_t count;
	atomic_uint had; /* arenas, with those that leave */
	struct gp_consistent_copy consistent_copy;
	uint64_t writes;              /* gpHostWrite that were carried out */
	bool publishes;               /* executor: the client answers GP_NOTE_PUBLISH */
	struct gpd_host_watch *watch; /* host_watch.c; NULL: nothing was ever held */

	pthread_mutex_t lock;        /* of these: */
	struct gpd_session *session; /* NULL: it has ended */
	uint32_t tenant;             /* whose it was then */
	struct gpd_host_arena *leaving;
};

/* The arena that has all of it; NULL: none has. */
struct gpd_host_arena *gpd_host_memory_arena(const struct gpd_session *session, uint64_t address,
					     uint64_t size);

/* With copies_lock: what has changed in the ranges is answered to the current call. */
CUresult gpd_host_fetch(struct gpd_session *session, struct gp_bytes ranges,
			enum gp_consistent_copy_part part);

/* Executor: of so much as may be asked to be told later.  Its owner frees it. */
CUresult gpd_host_query_create(struct gpd_session *session, struct gp_bytes ranges,
			       struct gpd_host_query **query_p);
/* With copies_lock: all that has changed by now is the answer to it. */
CUresult gpd_host_query_reply(struct gpd_session *session, struct gpd_host_query *query);
/* With copies_lock: whether a look shows a change. */
bool gpd_host_query_has_changes(struct gpd_session *session, struct gpd_host_query *query);

/* Executor: whether it lies in the session's range; the session ends if not. */
bool gpd_host_memory_inside(struct gpd_session *session, uint64_t address, uint64_t size);

#endif /* GPD_HOST_STATE_H */
