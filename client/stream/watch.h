/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Being told when work is done that was not done when somebody asked: the daemon is given a wait
 * that nobody here waits for, and until its answer comes the next questions are answered here.
 *
 * A place (of an event or a stream) has one at a time, about the work up to a mark.  A watch is
 * counted, by its place and by its request; any thread may call.
 */
#ifndef GPC_WATCH_H
#define GPC_WATCH_H

#include "client/context/context.h"

#include <stdint.h>

/* More are not begun: the daemon keeps each. */
#define GPC_WATCHES_MAX 64

struct gpc_watch;

enum gpc_watched {
	GPC_WATCHED_NOT, /* nobody watches the work up to this mark: ask */
	GPC_WATCHED_PENDING,
	GPC_WATCHED_DONE,
};

/* Reads what has arrived, without blocking. */
enum gpc_watched gpc_watch_look(struct gpc_watch **place, uint64_t mark);

/* Begins to watch an event's work, or a stream's; not if too many are, or where the wait would have
 * to be kept behind host functions. */
void gpc_watch_event(struct gpc_watch **place, uint64_t mark, struct gpc_context *context,
		     uint32_t event);
void gpc_watch_stream(struct gpc_watch **place, uint64_t mark, struct gpc_context *context,
		      uint32_t stream);

/* The place goes. */
void gpc_watch_drop(struct gpc_watch **place);

#endif /* GPC_WATCH_H */
