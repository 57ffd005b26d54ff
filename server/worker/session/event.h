/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a session.  The handle belongs to the executor.  The driver's event behind it is
 * counted, because the responder may still be asking it after the client has destroyed or
 * recorded it again: a wait is for the work that was captured when it began.
 *
 * What an event captured last lies in its common part: an interprocess event is one for all
 * sessions that have opened it, and its common part goes with the last of them.
 */
#ifndef GPD_EVENT_H
#define GPD_EVENT_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gpd_context;
struct gpd_session;
struct gpd_stream;

struct gpd_event_ref {
	CUevent driver;
	_Atomic unsigned int count;
	int device;
};

struct gpd_event_common;

struct gpd_event {
	struct gpd_handle handle;
	struct gpd_context *context;
	unsigned int flags;
	struct gpd_event_common *common;
	unsigned int deferred_records; /* records of it that the session keeps; under the common
					  part's lock */
	bool opened;                   /* it is another session's */
};

struct gpd_event_ref *gpd_event_ref(struct gpd_event_ref *ref);
/* Any thread. */
void gpd_event_unref(struct gpd_event_ref *ref);

/* What the event captured last; the caller's, to be given back. */
struct gpd_event_ref *gpd_event_get_ref(const struct gpd_event *event);
/* It captures what the stream was given so far.  Who still waits for what it captured before keeps
 * that. */
CUresult gpd_event_capture(struct gpd_session *session, struct gpd_event *event,
			   const struct gpd_stream *stream, unsigned int flags);

/* The session keeps a record of the event, and its caller is told that the event is recorded: other
 * sessions wait for that.  false: no such event. */
bool gpd_event_defer_record(struct gpd_session *session, uint32_t id);
/* Whether another session does so. */
bool gpd_event_has_deferred_record(struct gpd_session *session, uint32_t id);

/* NULL: no such event. */
struct gpd_event *gpd_event_get(const struct gpd_session *session, uint32_t id);
void gpd_event_destroy(struct gpd_session *session, struct gpd_event *event);

#endif /* GPD_EVENT_H */
