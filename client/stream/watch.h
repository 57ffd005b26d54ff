/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Being told when work is done that was not done when somebody asked, or about which somebody will
 * ask: the daemon is given a wait that nobody here waits for, and until its answer comes questions
 * are answered here.
 *
 * A place (of an event or a stream) has one at a time, about the work up to a mark.  A watch is
 * counted, by its place and by its request; any thread may call.  Who asks while another thread
 * drops the place gets an answer about what was there, and leaves nothing behind: a watch is of one
 * name, and a dropped place takes none.
 */
#ifndef GPC_WATCH_H
#define GPC_WATCH_H

#include "client/context/context.h"

#include <stdbool.h>
#include <stdint.h>

/* More are not begun: the daemon keeps each. */
#define GPC_WATCHES_MAX 64

struct gpc_watch;

/* An event, or a stream. */
struct gpc_watched {
	struct gpc_context *context;
	uint32_t id;
	bool is_event;
};

/* Whether its work up to the mark is done, as cuEventQuery and cuStreamQuery answer.  Where it is
 * not, it is watched from then on. */
CUresult gpc_watch_query(struct gpc_watch **place, uint64_t mark,
			 const struct gpc_watched *watched);

/* Watches the work up to the mark, which has been posted: who asks later need not wait.  Not if too
 * many are watched, or where the wait would have to be kept behind host functions. */
void gpc_watch_start(struct gpc_watch **place, uint64_t mark, const struct gpc_watched *watched);

/* The place goes: nothing is watched there until its memory is zeros again. */
void gpc_watch_drop(struct gpc_watch **place);

#endif /* GPC_WATCH_H */
