/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for the GPU without blocking the call stream.
 *
 * gpd_wait_add() puts a marker behind what the stream has been given so far; when the GPU gets
 * there, the session's responder thread calls done() (never with a lock held; it may send and
 * free, and may call the driver, but gives no work to streams).  Those that complete together
 * are called in the order in which they were added, so data goes out before the reply of a later
 * synchronise.  When the context is lost, done() is called with the sticky error; when the session
 * ends, with CUDA_ERROR_DEINITIALIZED for those whose work was dropped.  Each done() is called
 * exactly once if adding succeeded, never if it failed.  Adding is for the executor; it blocks
 * while too many are pending.
 */
#ifndef GPD_WAIT_H
#define GPD_WAIT_H

#include <cuda.h>
#include <stdbool.h>

struct gpd_context;
struct gpd_event_ref;
struct gpd_session;
struct gpd_stream;

typedef void gpd_wait_done(struct gpd_session *session, void *arg, CUresult result);

/* done NULL: the stream alone is told. */
CUresult gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done,
		      void *arg);

/* Behind everything the session has given to any of its streams (of one context, if not NULL). */
CUresult gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context,
			  gpd_wait_done *done, void *arg);

/* Behind what the event captured last; this cannot fail. */
void gpd_wait_add_event(struct gpd_session *session, struct gpd_event_ref *event,
			gpd_wait_done *done, void *arg);

/* Executor only: blocks until one more of the pending ones is done, if any is, or for a
 * millisecond: who waits for something looks whether it has come. */
void gpd_wait_oldest(struct gpd_session *session);

/* Whether nothing is pending and no done() is running: what is known now may be told at once. */
bool gpd_wait_is_empty(struct gpd_session *session);

/* Replies to the current call with the result of the wait, without fields. */
gpd_wait_done gpd_wait_reply;
/* The arg of gpd_wait_reply() for the current call. */
void *gpd_wait_request(const struct gpd_session *session);
/* The current call has found the GPU done: CUDA_SUCCESS, or GPD_LATER, behind all that was added
 * and is complete by now. */
CUresult gpd_wait_reply_done(struct gpd_session *session);

/* The session's queue and its responder thread, which calls all pending ones when it is woken and
 * the context is lost.  0 or a negative errno. */
int gpd_wait_start(struct gpd_session *session);
/* Calls what is left with CUDA_ERROR_DEINITIALIZED and ends the responder. */
void gpd_wait_stop(struct gpd_session *session);

#endif /* GPD_WAIT_H */
