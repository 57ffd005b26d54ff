/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion watches: report when a stream or an event completes, so that later queries need no
 * round trip.
 *
 * The daemon is sent a wait that no thread here waits for; until its reply arrives, queries return
 * CUDA_ERROR_NOT_READY without a query to the daemon. A slot (a pointer in an event or a stream,
 * initially NULL) has at most one watch at a time, for the work up to a mark.
 * Ownership: a watch is reference-counted by its slot and by its request. A watch belongs to one
 * wire ID, and none is created in a dropped slot, so that a query that races with the drop leaves
 * nothing behind.
 * Threads: any thread except the thread that reads the daemon's replies; one lock guards all slots.
 */
#ifndef GPC_COMPLETION_WATCH_H
#define GPC_COMPLETION_WATCH_H

#include "client/context/context.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of watches, as the daemon stores each. */
#define GPC_WATCHES_MAX 64

struct gpc_watch;

/* The event or stream to watch. Copied by the functions below. */
struct gpc_watched {
	struct gpc_context *context;
	uint32_t id; /* wire ID */
	bool is_event;
};

/* Returns the result of cuEventQuery or cuStreamQuery for the work up to the mark: CUDA_SUCCESS,
 * CUDA_ERROR_NOT_READY, the error of an earlier posted call, or the session's error. Waits for the
 * daemon unless there is a watch for the mark, and then starts a watch if the work is not done.
 * mark: any number that identifies the work of the slot. */
CUresult gpc_watch_query(struct gpc_watch **place, uint64_t mark,
			 const struct gpc_watched *watched);

/* Starts a watch for posted work up to the mark, so that a later query need not wait. Replaces the
 * watch of the slot. Does not wait. Has no effect if GPC_WATCHES_MAX watches exist, if memory is
 * exhausted, or if the daemon would have to defer the wait because of host functions. */
void gpc_watch_start(struct gpc_watch **place, uint64_t mark, const struct gpc_watched *watched);

/* Drops the watch of a slot whose event or stream is being destroyed. No watch is created in the
 * slot until its memory is zeroed again. */
void gpc_watch_drop(struct gpc_watch **place);

#endif /* GPC_COMPLETION_WATCH_H */
