/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA events of a session.
 *
 * The driver's event is reference counted, because the responder may still query it after the
 * client has destroyed or re-recorded the event: a wait is for the work that was captured when the
 * wait began. The last capture is in the event's common part, because an interprocess event is the
 * same event for all sessions that have opened it.
 *
 * Ownership: the session, through its handle table; the common part is freed with the last event
 * that uses it.
 * Threads: executor only, unless noted. The common part has a lock.
 * Errors: CUresult, unless noted.
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

/* A driver's event with its reference count. */
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
	unsigned int deferred_records; /* in the deferred queue; common part's lock */
	bool opened;                   /* opened from another session */
};

/* Any thread. Adds a reference and returns it. */
struct gpd_event_ref *gpd_event_ref(struct gpd_event_ref *ref);
/* Any thread. Drops a reference. */
void gpd_event_unref(struct gpd_event_ref *ref);

/* Returns what the event captured last, with a new reference. */
struct gpd_event_ref *gpd_event_get_ref(const struct gpd_event *event);
/* Captures the work that the stream has now. Waits for an earlier capture are not affected. */
CUresult gpd_event_capture(struct gpd_session *session, struct gpd_event *event,
			   const struct gpd_stream *stream, unsigned int flags);

/* Notes that a record of the event is in the session's deferred queue, although its caller may take
 * the event as recorded; other sessions wait for it. false: no such event. */
bool gpd_event_defer_record(struct gpd_session *session, uint32_t id);
/* Whether another session has deferred a record of this interprocess event. */
bool gpd_event_has_deferred_record(struct gpd_session *session, uint32_t id);

/* Returns NULL if there is no such event. */
struct gpd_event *gpd_event_get(const struct gpd_session *session, uint32_t id);
/* Removes the event's name and frees it. */
void gpd_event_destroy(struct gpd_session *session, struct gpd_event *event);

#endif /* GPD_EVENT_H */
