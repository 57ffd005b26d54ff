/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion watches: report when a stream or an event completes, so that later queries need no
 * round trip.
 *
 * A watch is a wait that was sent to the daemon, but for whose reply no thread waits. Until the
 * reply arrives, queries return CUDA_ERROR_NOT_READY without asking the daemon. A slot is a pointer
 * in an event or a stream, initially NULL, which only the functions below access. It has at most
 * one watch at a time, for the work up to a mark: any number that identifies this work among the
 * work of the slot. Events use record numbers (event.h), streams use work numbers
 * (client/session/session.h).
 *
 * Ownership: a watch is reference-counted by its slot and by its request. It belongs to one wire
 * ID. gpc_watch_drop() stores a marker in the slot, so that a query that races with the drop does
 * not leak a watch.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); one lock guards all slots.
 */
#ifndef GPC_COMPLETION_WATCH_H
#define GPC_COMPLETION_WATCH_H

#include "client/context/context.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of watches in the process, as the daemon stores each. */
#define GPC_WATCHES_MAX 64

struct gpc_watch;

/* The event or stream to watch; needed only during the call. */
struct gpc_watched {
	struct gpc_context *context;
	uint32_t id; /* wire ID */
	bool is_event;
};

/* Returns the result of cuEventQuery() or cuStreamQuery() for the work up to the mark:
 * CUDA_SUCCESS, CUDA_ERROR_NOT_READY, the error of an earlier posted call, or the session's error.
 * Does not wait if the slot has a watch for the mark that has not failed. Otherwise waits for the
 * daemon's reply, and starts a watch (gpc_watch_start()) if the work is not done. */
CUresult gpc_watch_query(struct gpc_watch **slot, uint64_t mark, const struct gpc_watched *watched);

/* Starts a watch for posted work up to the mark, so that a later query need not wait. Replaces the
 * watch of the slot. Does not wait for the reply. Has no effect if GPC_WATCHES_MAX watches exist,
 * if memory is exhausted, if the slot was dropped, if the request cannot be sent, or if the daemon
 * would have to defer the wait because of host functions or waits for values. */
void gpc_watch_start(struct gpc_watch **slot, uint64_t mark, const struct gpc_watched *watched);

/* Drops the watch of a slot whose event or stream is being destroyed. No watch is stored in the
 * slot until the slot is set to NULL, which gpc_handle_new() (client/base/handle.h) does when it
 * reuses the memory. */
void gpc_watch_drop(struct gpc_watch **slot);

#endif /* GPC_COMPLETION_WATCH_H */
