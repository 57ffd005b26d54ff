/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times between events.  Who measures often asks for many of them at the end, one behind the other:
 * so with the first question go those about the events that were recorded next in the stream, each
 * with the one before it.  A program that times a hundred runs waits for a few answers, not for a
 * hundred.  Any thread may call.
 */
#ifndef GPC_ELAPSED_H
#define GPC_ELAPSED_H

#include <stdint.h>

struct gpc_event;

/* Of an event: what it is between. */
struct gpc_elapsed {
	_Atomic(void *) next; /* token of the event that its stream recorded next; NULL: none yet */
	/* The last time that was told up to this event, under a lock of elapsed.c: between records
	 * with these numbers (event.h); 0: none. */
	uint64_t started, ended;
	float ms;
};

/* The event has been recorded in the stream of this name. */
void gpc_elapsed_note(struct gpc_event *event, uint32_t stream);

#endif /* GPC_ELAPSED_H */
