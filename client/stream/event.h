/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the application.  Any thread may call.  An event is not counted: its memory stays that
 * of an event (client/base/handle.h), and its context is never freed.
 */
#ifndef GPC_EVENT_H
#define GPC_EVENT_H

#include "client/base/handle.h"
#include "client/context/context.h"
#include "client/stream/elapsed.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_stream;

struct gpc_event {
	struct gpc_handle handle;
	struct gpc_context *context;
	unsigned int flags;
	/* The number of the last record, of all events'; 0: none, and it counts as complete. */
	atomic_uint_fast64_t recorded;
	/* The stream of that record, and which of the records it is that gave this one work
	 * (session.h): the name, and 32 bits of the number; 0: not known. */
	atomic_uint_fast64_t place;
	/* The last of the session's records that gave any stream work, behind that record. */
	atomic_uint_fast64_t issued;
	atomic_uint_fast64_t done;    /* that number, when it was complete */
	atomic_uint_fast64_t fetched; /* and when what that changed of mirrored memory was here */
	atomic_bool queried; /* whether it is done, and so the next time it is recorded, probably */
	struct gpc_watch *watch;
	struct gpc_elapsed elapsed;
};

/* The event behind hEvent, or its name on the wire; CUDA_ERROR_INVALID_HANDLE. */
CUresult gpc_event_lookup(CUevent hEvent, struct gpc_event **event_p);
CUresult gpc_event_id(CUevent hEvent, uint32_t *id_p);

/* Whether it is known to be complete without asking, as it was recorded with this number. */
bool gpc_event_is_done(struct gpc_event *event, uint64_t *recorded_p);

/* If CUDA has it complete because of a call that synchronized implicitly (sync.h), it is from now
 * on: waits for it. */
CUresult gpc_event_settle(struct gpc_event *event);

/* What `behind` is given from now on runs behind what `before` was given so far.  Of another daemon
 * that is waited for. */
CUresult gpc_event_order(struct gpc_stream *before, struct gpc_stream *after);

/* Forgets all events of a context that is being destroyed. */
void gpc_event_drop_context(struct gpc_context *context);

#endif /* GPC_EVENT_H */
