/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache and prefetch of elapsed times between events (cuEventElapsedTime).
 *
 * Programs that measure often query many pairs of consecutive events at the end. So the first query
 * also fetches the times between the events that the stream recorded next, each with its
 * predecessor, for at most 32 pairs that are known to be complete. A program that times a hundred
 * runs waits for a few replies instead of a hundred.
 *
 * Ownership: struct gpc_elapsed is a member of its event and needs no cleanup.
 * Threads: any.
 */
#ifndef GPC_EVENT_ELAPSED_H
#define GPC_EVENT_ELAPSED_H

#include <stdint.h>

struct gpc_event;

/* State of one event, initially zero. */
struct gpc_elapsed {
	/* token of the event with timing that the stream recorded next; NULL: none yet */
	_Atomic(void *) next;
	/* Record numbers (event.h) of the start event and of this event, for the cached time that
	 * ended at this event; 0: none. Guarded, like ms, by a lock of event_elapsed.c. */
	uint64_t started, ended;
	/* the cached time in milliseconds */
	float ms;
};

/* Called after the event was recorded in the stream with this wire ID: links it to the event with
 * timing that the stream recorded before. Has no effect for events without timing. */
void gpc_elapsed_note(struct gpc_event *event, uint32_t stream);

#endif /* GPC_EVENT_ELAPSED_H */
