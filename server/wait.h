/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for the GPU without blocking the call stream.
 *
 * gpd_wait_add() puts a marker behind what the stream has been given so far; when the GPU gets
 * there, the session's responder thread calls done() (never with a lock held; it may send, free,
 * and call gpd_wait_add_after).  Markers that complete together are called in the order in which
 * they were added, so data goes out before the reply of a later synchronise.  When the context is
 * lost, done() is called with the sticky error; when the session ends, with
 * CUDA_ERROR_DEINITIALIZED for those whose work was dropped.
 */
#ifndef GPD_WAIT_H
#define GPD_WAIT_H

#include <cuda.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

typedef void gpd_wait_done(struct gpd_session *session, void *arg, CUresult result);

CUresult gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done,
		      void *arg);

/* Behind everything the session has given to any of its streams (of one context, if not NULL). */
struct gpd_context;
CUresult gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context,
			  gpd_wait_done *done, void *arg);

/* Executor only: blocks until the marker that was added last, or before, is done: backpressure. */
void gpd_wait_oldest(struct gpd_session *session);

#endif /* GPD_WAIT_H */
