/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache and prefetch of elapsed times between events. cuEventElapsedTime() itself is implemented in
 * event_elapsed.c.
 *
 * Programs that measure often query many pairs of consecutive events at the end. So a query whose
 * time is not cached also fetches the times between the events that the stream recorded next, each
 * with its predecessor, for at most 32 pairs that are known to be complete. A program that times a
 * hundred runs waits for a few replies instead of a hundred.
 *
 * Ownership: struct gpc_elapsed is a member of its event and needs no cleanup.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 */
#ifndef GPC_EVENT_ELAPSED_H
#define GPC_EVENT_ELAPSED_H

#include <stdint.h>

struct gpc_event;

/* State of one event, initially zero. */
struct gpc_elapsed {
	/* handle (CUevent) of the event with timing that the stream recorded after this one; NULL:
	 * none yet. The event may have been destroyed. */
	_Atomic(void *) next;
	/* The cached time is valid if these are the present record numbers (gpc_event.recorded,
	 * event.h): `started` that of the start event, `ended` that of this event. 0: no cached
	 * time. Guarded, like ms, by the lock of event_elapsed.c. */
	uint64_t started, ended;
	/* the cached time from the start event to this event, in milliseconds */
	float ms;
};

/* Called after the event was recorded in the stream with this wire ID: links it to the event with
 * timing that the stream recorded before. Has no effect for events without timing
 * (CU_EVENT_DISABLE_TIMING) or if the stream was destroyed. */
void gpc_elapsed_note(struct gpc_event *event, uint32_t stream_id);

#endif /* GPC_EVENT_ELAPSED_H */
