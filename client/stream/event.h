/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA events of the application (CUevent).
 *
 * Ownership: events are not reference-counted. The memory of a destroyed event is only ever reused
 * for another event (client/base/handle.h), and contexts are never freed, so a stale pointer is
 * safe to read.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). Members are constant after creation or atomic,
 * except `watch` and `elapsed`, whose headers name their locks.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or the
 * session's error.
 * Units: a work number counts the records of a session that gave a stream work, from 1
 * (client/session/session.h). A record number counts the records of events in this process
 * (cuEventRecord, cuCtxRecordEvent), from 1.
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
	/* record number of the event's last record; 0: never recorded, which counts as complete */
	atomic_uint_fast64_t recorded;
	/* Position of the last record in its stream. Upper 32 bits: wire ID of the stream. Lower 32
	 * bits: lower half of the record's own work number. 0: unknown, because other threads
	 * posted work at the same time, other processes may record the event, or a whole context
	 * was recorded (cuCtxRecordEvent). */
	atomic_uint_fast64_t place;
	/* last work number of the session, for any stream, after the last record was posted */
	atomic_uint_fast64_t issued;
	/* record number of a record that is known to be complete; 0: none */
	atomic_uint_fast64_t done;
	/* number of the highest record for which the changes of replicated host memory
	 * (client/host/coherence.h) by all work before it have been fetched; 0: none */
	atomic_uint_fast64_t fetched;
	/* the program has queried the event (cuEventQuery), so a completion watch is started at the
	 * next record */
	atomic_bool queried;
	/* Slot of completion_watch.h, guarded by its lock; used only through its functions. NULL:
	 * no watch; not NULL after a drop. */
	struct gpc_watch *watch;
	/* cached time that ended at this event, and the event to prefetch next (event_elapsed.h) */
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
 * processes. Always sets *recorded_p to the number of the last record (0: none). */
bool gpc_event_is_done(struct gpc_event *event, uint64_t *recorded_p);

/* Called before the event's time is used. If an implicit synchronization, for which the client did
 * not wait, makes CUDA consider the event complete (sync.h), waits for the event without limit, and
 * returns the result as cuEventSynchronize() does: also the error of an earlier posted call.
 * Otherwise returns CUDA_SUCCESS at once. */
CUresult gpc_event_settle(struct gpc_event *event);

/* Orders all later work of the stream `after` after the work given to the stream `before` so far.
 * Does not wait if both streams belong to one session; otherwise blocks, without limit, until the
 * work of `before` is done (gpc_stream_fence(), stream.h). Returns CUDA_ERROR_OUT_OF_MEMORY, the
 * session's error or, after blocking, the error of an earlier posted call; later work is then not
 * ordered. */
CUresult gpc_event_order(struct gpc_stream *before, struct gpc_stream *after);

/* Callback drop_context() of struct gpc_context_part (client/context/context.h), called when the
 * context is destroyed or reset: invalidates all its events, and drops their watches. Sends
 * nothing. */
void gpc_event_drop_context(struct gpc_context *context);

#endif /* GPC_EVENT_H */
