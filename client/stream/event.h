/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA events of the application (CUevent).
 *
 * Ownership: events are not reference-counted. The memory of a destroyed event is only ever reused
 * for another event (client/base/handle.h), and contexts are never freed, so a stale pointer is
 * safe to read.
 * Threads: any thread except the thread that reads the daemon's replies. Members are atomic, or
 * constant after creation, unless noted otherwise.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or the
 * session's error.
 */
#ifndef GPC_EVENT_H
#define GPC_EVENT_H

#include "client/base/handle.h"
#include "client/context/context.h"
#include "client/stream/event_elapsed.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* An event. */
struct gpc_event {
	struct gpc_handle handle;
	struct gpc_context *context;
	unsigned int flags; /* flags of cuEventCreate() */
	/* Record number: identifies the last record of the event (cuEventRecord), unique among all
	 * events; 0: never recorded, which counts as complete. */
	atomic_uint_fast64_t recorded;
	/* Upper 32 bits: wire ID of the stream of the last record. Lower 32 bits: lower half of the
	 * stream's last work number at the record (gpc_session_issued_to(),
	 * client/session/session.h). 0: unknown. */
	atomic_uint_fast64_t place;
	/* Last work number of the session, for any stream, at the last record. */
	atomic_uint_fast64_t issued;
	/* record number of a record that is known to be complete; 0: none */
	atomic_uint_fast64_t done;
	/* record number; the changes of replicated host memory (client/host/coherence.h) by all
	 * work before this record have been fetched; 0: none */
	atomic_uint_fast64_t fetched;
	/* the program has queried the event (cuEventQuery), so a completion watch is started at the
	 * next record */
	atomic_bool queried;
	struct gpc_watch *watch; /* slot of completion_watch.h; NULL: no watch */
	/* cached time; event_elapsed.h names its lock */
	struct gpc_elapsed elapsed;
};

/* Looks up the event of a handle, borrowed. Returns CUDA_ERROR_INVALID_HANDLE, with *event_p NULL,
 * if hEvent is not an event. */
CUresult gpc_event_lookup(CUevent hEvent, struct gpc_event **event_p);
/* Looks up the wire ID of an event. Returns CUDA_ERROR_INVALID_HANDLE, with *id_p unchanged, if
 * hEvent is not an event. */
CUresult gpc_event_id(CUevent hEvent, uint32_t *id_p);

/* Returns whether the last record of the event is known to be complete, without querying the
 * daemon. Returns false for an event that was never recorded or that is shared with other
 * processes. In either case *recorded_p is set to the number of that record, or 0. */
bool gpc_event_is_done(struct gpc_event *event, uint64_t *recorded_p);

/* Waits, without limit, for the event if CUDA considers it complete because of an implicit
 * synchronization (sync.h) for which the client did not wait; returns the result of the wait.
 * Otherwise returns CUDA_SUCCESS at once. */
CUresult gpc_event_settle(struct gpc_event *event);

/* Orders all later work of the stream `after` after the work given to the stream `before` so far.
 * Does not wait if the streams belong to one daemon; otherwise blocks until `before` is idle.
 * Returns CUDA_ERROR_OUT_OF_MEMORY, the session's error or, after blocking, the error of an earlier
 * posted call; later work is then not ordered. */
CUresult gpc_event_order(struct gpc_stream *before, struct gpc_stream *after);

/* Invalidates all events of a context that is being destroyed, and drops their watches. Does not
 * wait. */
void gpc_event_drop_context(struct gpc_context *context);

#endif /* GPC_EVENT_H */
