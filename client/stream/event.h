/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA events of the application (CUevent).
 *
 * Ownership: events are not reference-counted. The memory of a destroyed event is only ever reused
 * for another event (client/base/handle.h), and contexts are never freed, so a stale pointer is
 * safe to read.
 * Threads: any.
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
	unsigned int flags;
	/* Number of the last record, unique among all events; 0: never recorded, which counts as
	 * complete. */
	atomic_uint_fast64_t recorded;
	/* Stream of that record (upper 32 bits: wire ID) and the lower 32 bits of its last work
	 * number before the record (gpc_session_issued(), session.h); 0: unknown. */
	atomic_uint_fast64_t place;
	/* Last work number of the session at the record, for any stream. */
	atomic_uint_fast64_t issued;
	atomic_uint_fast64_t done;    /* value of `recorded` that is known to be complete */
	atomic_uint_fast64_t fetched; /* value of `recorded` whose changes of replicated host memory
					 were fetched */
	atomic_bool queried; /* the program has queried the event, and will probably query it after
				the next record */
	struct gpc_watch *watch;
	struct gpc_elapsed elapsed;
};

/* Looks up the event, or its wire ID. Returns CUDA_ERROR_INVALID_HANDLE if hEvent is not an
 * event. */
CUresult gpc_event_lookup(CUevent hEvent, struct gpc_event **event_p);
CUresult gpc_event_id(CUevent hEvent, uint32_t *id_p);

/* Returns whether the event is known to be complete, without querying the daemon. Sets *recorded_p
 * to the number of its last record. */
bool gpc_event_is_done(struct gpc_event *event, uint64_t *recorded_p);

/* Waits for the event if CUDA considers it complete because of an implicit synchronization (sync.h)
 * that was not yet waited for. Returns the result of the wait, otherwise CUDA_SUCCESS. */
CUresult gpc_event_settle(struct gpc_event *event);

/* Orders all later work of `after` after the work given to `before` so far. Blocks until `before`
 * is idle if the streams belong to different daemons. */
CUresult gpc_event_order(struct gpc_stream *before, struct gpc_stream *after);

/* Invalidates all events of a context that is being destroyed. */
void gpc_event_drop_context(struct gpc_context *context);

#endif /* GPC_EVENT_H */
