/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA events of a session.
 *
 * Recording an event, also called a capture, stores the work that its stream has at that time. The
 * driver's event is reference counted, because the responder may still query it after the client
 * has destroyed or re-recorded the event: a wait is for the work that was captured when the wait
 * began. A wait therefore has a reference, and recording an event to which a wait refers creates a
 * new driver's event. The latest capture is in the event's common part, which all sessions that
 * have opened an interprocess event share.
 *
 * Ownership: the session's handle table refers to the events, which the hooks in event.c create;
 * gpd_event_destroy() frees one. The common part is freed with the last event that uses it.
 * Threads: executor only, unless noted. The common part has a lock of its own.
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

/* A driver's event with a reference count. */
struct gpd_event_ref {
	CUevent driver;
	_Atomic unsigned int count; /* number of references */
	int device;                 /* device of the driver's event */
};

/* Latest capture of an event, shared by all sessions that use it; event.c. */
struct gpd_event_common;

struct gpd_event {
	struct gpd_handle handle;
	struct gpd_context *context;     /* context in which it was created; borrowed */
	unsigned int flags;              /* flags of cuEventCreate() */
	struct gpd_event_common *common; /* shared with other sessions; never NULL */
	/* Number of records of this event in this session's deferred queue; protected by the common
	 * part's lock. */
	unsigned int deferred_records;
	bool opened; /* opened by an IPC handle of another session */
};

/* Adds a reference and returns its argument. The caller has a reference or the common part's lock.
 * Any thread. */
struct gpd_event_ref *gpd_event_ref(struct gpd_event_ref *ref);
/* Drops a reference; dropping the last reference destroys the driver's event. Any thread. */
void gpd_event_unref(struct gpd_event_ref *ref);

/* Returns the latest capture with a new reference, which the caller drops with gpd_event_unref().
 * Never NULL. Any thread while the event exists. */
struct gpd_event_ref *gpd_event_get_ref(const struct gpd_event *event);
/* Captures the work that the stream has now, after ending the session's batches of launches
 * (schedule/schedule.h). Waits for an earlier capture are not affected. The caller has called
 * gpd_stream_begin() (stream.h) for it, and queued launches have been passed to the driver
 * (gpd_issue_settle(), issue.h); the stream's device must be current. flags: as for
 * cuEventRecordWithFlags(). Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_HANDLE if the stream is on
 * another device than the event; CUDA_ERROR_OUT_OF_MEMORY; or another error of the driver. On
 * failure the earlier capture remains, unless a wait referred to it and the driver then failed to
 * record the new driver's event. */
CUresult gpd_event_capture(struct gpd_session *session, struct gpd_event *event,
			   const struct gpd_stream *stream, unsigned int flags);

/* Counts a record of the event that is in the session's deferred queue (deferred_queue.h), because
 * the client may already consider the event recorded. Operations of other sessions on the event
 * then wait for this record. Undone when a record of the event is carried out, or the event is
 * destroyed. Returns true; or false if there is no event with this ID. */
bool gpd_event_defer_record(struct gpd_session *session, uint32_t id);
/* Returns whether another session has deferred a record of this event. False if the event is not an
 * interprocess event or does not exist. */
bool gpd_event_has_deferred_record(struct gpd_session *session, uint32_t id);

/* Returns the event with this ID, borrowed; NULL: there is none. */
struct gpd_event *gpd_event_get(const struct gpd_session *session, uint32_t id);
/* Removes the event's ID from the handle table and frees it. The event that another session has
 * opened can still be used there, but not be opened again. Pending waits keep their references. */
void gpd_event_destroy(struct gpd_session *session, struct gpd_event *event);

#endif /* GPD_EVENT_H */
