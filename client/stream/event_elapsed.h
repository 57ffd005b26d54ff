/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache and prefetch of elapsed times between events (cuEventElapsedTime).
 *
 * Programs that measure often query many pairs of consecutive events at the end. The first query
 * therefore also fetches the times between the events that were recorded next in the stream, each
 * with its predecessor: a program that times a hundred runs waits for a few replies instead of a
 * hundred.
 * Ownership: struct gpc_elapsed is a part of its event and needs no cleanup.
 * Threads: any.
 */
#ifndef GPC_EVENT_ELAPSED_H
#define GPC_EVENT_ELAPSED_H

#include <stdint.h>

struct gpc_event;

/* Per-event state. */
struct gpc_elapsed {
	_Atomic(void *) next; /* token of the event that the stream recorded next; NULL: none */
	/* Last known time that ended at this event: record numbers (event.h) of the start event and
	 * of this event; 0: none. Guarded, like ms, by a lock of event_elapsed.c. */
	uint64_t started, ended;
	float ms; /* that time, in milliseconds */
};

/* Called after the event was recorded in the stream with this wire ID: links it to the stream's
 * previous event with timing. Has no effect for events without timing. */
void gpc_elapsed_note(struct gpc_event *event, uint32_t stream);

#endif /* GPC_EVENT_ELAPSED_H */
