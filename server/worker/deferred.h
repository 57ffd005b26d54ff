/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that must wait for a host function of the client (host_function.h).
 *
 * What a client runs may take for ever, and the GPU is everybody's: a stream that waits on it would
 * hold up streams of other sessions that share its hardware queue, the driver's loading of code,
 * and this session's own executor once the queue is full.  So nothing is given to the GPU that
 * depends on a client: records behind a function are kept here, and carried out when it is done.
 * A record waits for those before it that name the same stream, event or image; besides, what
 * works on the legacy stream and what the blocking ones do wait for one another, and some calls
 * (needs_of() in deferred.c) wait for all.  Everything else goes past.  Executor only.
 */
#ifndef GPD_HOLD_H
#define GPD_HOLD_H

#include "protocol/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_held;
struct gpd_session;

/* A record: a kept one, its fields and bulk valid until it is given back. */
struct gpd_hold_record {
	struct gp_header header;
	const void *fields;
	size_t size;
	const uint8_t *bulk;
	size_t bulk_size;
};

/*
 * A record has come.  0: carry it out now.  1: nothing is to be done, it was kept or answered.
 * -EPROTO: the session must end.  Of a gpHostFunction that is to be carried out the record is kept
 * as well; *held_p names it, else it is NULL.
 */
int gpd_hold_add(struct gpd_session *session, const struct gp_header *header, const void *fields,
		 size_t size, struct gpd_held **held_p);

/* The next kept record that may be carried out now; NULL: there is none. */
struct gpd_held *gpd_hold_next(struct gpd_session *session, struct gpd_hold_record *record);

/* It has been carried out, or its function is done: what waited for it may go on. */
void gpd_hold_remove(struct gpd_session *session, struct gpd_held *held);

/* Whether none is kept, and no function is under way. */
bool gpd_hold_is_empty(const struct gpd_session *session);

/* At the session's end: forgets them all. */
void gpd_hold_forget(struct gpd_session *session);

#endif /* GPD_HOLD_H */
