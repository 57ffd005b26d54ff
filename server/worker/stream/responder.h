/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait queue and responder thread of a session: waits for the GPU without blocking the executor.
 *
 * gpd_wait_add() enqueues a marker (a write of a value to memory) after the stream's present work.
 * When the GPU reaches it, the session's responder thread calls done(), without a lock held. done()
 * may send messages, free memory and call the driver, but must not enqueue work on streams. The
 * done() functions of waits that complete together are called in the order in which the waits were
 * added, so data is sent before the reply of a later synchronization. The result is CUDA_SUCCESS if
 * the work was done; the sticky error if the GPU contexts are lost; CUDA_ERROR_DEINITIALIZED if the
 * session ended and the work was dropped; or the driver's error. done() is called exactly once if
 * the wait was added, and never if adding failed.
 *
 * All functions are called between gpd_wait_start() and gpd_wait_stop(). gpd_wait_add() and
 * gpd_wait_add_all() also end the session's batches of launches (schedule/schedule.h), and launches
 * that were handed over must have been passed to the driver (gpd_issue_settle(), issue/issue.h).
 *
 * Ownership: the caller owns arg, which must stay valid until done() is called; done() may free it.
 * If adding fails, the caller frees it.
 * Threads: executor only, unless noted. Functions that add a wait block only if all entries are in
 * use and no page can be added (at most 64 pages of GPD_MARKER_PAGE_SLOTS, marker_page.h, or no
 * memory): until an entry is free.
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

/* Called once when a wait completes, by the responder, with the result that the head of this file
 * describes. arg: from the function that added the wait. */
typedef void gpd_wait_done(struct gpd_session *session, void *arg, CUresult result);

/* Adds a wait for the stream's present work. done NULL: nothing is called; only the stream's
 * progress is updated. The stream must stay valid while gpd_stream_has_waits() (stream.h). Makes
 * the stream's device current. Returns CUDA_SUCCESS, or the driver's error, and nothing was
 * added. */
CUresult gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done,
		      void *arg);

/* Adds a wait for all present work of the session's streams; complete at once if there is none.
 * context: only streams of this context and its green contexts; NULL: of all contexts. May change
 * the current device. Returns CUDA_SUCCESS, or the driver's error: done() is then not called, but
 * markers may have been enqueued on some streams. */
CUresult gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context,
			  gpd_wait_done *done, void *arg);

/* Adds a wait for the capture that event refers to (gpd_event_get_ref(), event.h), with a reference
 * of its own: the caller may drop its reference on return. Cannot fail. */
void gpd_wait_add_event(struct gpd_session *session, struct gpd_event_ref *event,
			gpd_wait_done *done, void *arg);

/* Blocks until a pending wait, any one, has completed, and for at most 1 ms, so that the caller can
 * check its condition again. Returns at once if no wait is pending. Executor only. */
void gpd_wait_any(struct gpd_session *session);

/* Returns whether no wait is pending and no done() is running. A reply can then be sent at once
 * without overtaking an earlier one. */
bool gpd_wait_is_empty(struct gpd_session *session);

/* A done() that sends printed output and then replies to a call, without fields, with the result of
 * the wait. arg is from gpd_wait_request(). */
gpd_wait_done gpd_wait_reply;
/* Returns the arg of gpd_wait_reply() for the current call. It is a number, not memory: nothing has
 * to be freed. */
void *gpd_wait_request(const struct gpd_session *session);
/* Replies to the current call, without fields, when its hook has found the GPU done. Returns
 * CUDA_SUCCESS if the hook can return that at once, or GPD_LATER if the reply was queued after
 * completed waits whose done() is pending. */
CUresult gpd_wait_reply_done(struct gpd_session *session);

/* Creates session->waits and the responder thread. The responder also completes all pending waits
 * when gpd_session_wake() is called after the GPU contexts were lost. Called by the executor before
 * it serves calls. Returns 0 or a negative errno; on failure session->waits is NULL. */
int gpd_wait_start(struct gpd_session *session);
/* Completes the remaining waits, with CUDA_ERROR_DEINITIALIZED if their work is not done, blocks
 * until the responder has ended, and frees session->waits. Called at the session's end, when the
 * driver has no work of its streams left, markers included, because another session may get the
 * marker pages. Does
 * nothing if session->waits is NULL. */
void gpd_wait_stop(struct gpd_session *session);

#endif /* GPD_RESPONDER_H */
