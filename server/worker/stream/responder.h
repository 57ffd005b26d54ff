/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the GPU without blocking the call stream.
 *
 * gpd_wait_add() enqueues a marker after the stream's present work. When the GPU reaches it, the
 * session's responder thread calls done(), never with a lock held. done() may send, free memory and
 * call the driver, but must not give work to streams. Waits that complete together are called in
 * the order in which they were added, so data is sent before the reply of a later synchronization.
 * If the context is lost, done() gets the sticky error; at the session's end, waits whose work was
 * dropped get CUDA_ERROR_DEINITIALIZED. done() is called exactly once if the wait was added, and
 * never if adding failed.
 *
 * Ownership: the caller owns arg; done() may free it.
 * Threads: waits are added by the executor only, which blocks while too many are pending.
 * Errors: CUresult, unless noted.
 */
#ifndef GPD_RESPONDER_H
#define GPD_RESPONDER_H

#include <cuda.h>
#include <stdbool.h>

struct gpd_context;
struct gpd_event_ref;
struct gpd_session;
struct gpd_stream;

typedef void gpd_wait_done(struct gpd_session *session, void *arg, CUresult result);

/* Waits for the stream's present work. done NULL: only the stream's progress is updated. */
CUresult gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done,
		      void *arg);

/* Waits for all present work of the session's streams (of one context, if not NULL). */
CUresult gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context,
			  gpd_wait_done *done, void *arg);

/* Waits for what the event captured last. Cannot fail. */
void gpd_wait_add_event(struct gpd_session *session, struct gpd_event_ref *event,
			gpd_wait_done *done, void *arg);

/* Executor only: waits until another pending wait has completed, if there is one, at most for a
 * millisecond, so that the caller can check its condition again. */
void gpd_wait_oldest(struct gpd_session *session);

/* Whether no wait is pending and no done() is running, so that a reply can be sent at once. */
bool gpd_wait_is_empty(struct gpd_session *session);

/* A done() that replies to a call with the result of the wait, without fields. */
gpd_wait_done gpd_wait_reply;
/* Returns the arg of gpd_wait_reply() for the current call. */
void *gpd_wait_request(const struct gpd_session *session);
/* To be called when the current call has found the GPU done: returns CUDA_SUCCESS, or GPD_LATER if
 * the reply is queued after completed waits that are still being processed. */
CUresult gpd_wait_reply_done(struct gpd_session *session);

/* Creates the session's queue and its responder thread. The responder also completes all pending
 * waits when it is woken after the context was lost. Returns 0 or a negative errno. */
int gpd_wait_start(struct gpd_session *session);
/* Completes the remaining waits with CUDA_ERROR_DEINITIALIZED and ends the responder. */
void gpd_wait_stop(struct gpd_session *session);

#endif /* GPD_RESPONDER_H */
