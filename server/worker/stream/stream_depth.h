/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue depth of a stream: the number of operations that were enqueued on the driver's stream and
 * are not done.
 *
 * When a stream's queue in the driver is full (1024 operations), a thread that adds more waits
 * inside the driver. While a few threads do so, other calls, such as the creation of an event, can
 * wait there forever. The executor therefore waits outside the driver before the queue is full. The
 * GPU reports its progress by a marker: a number that the stream writes to memory after every few
 * operations, each stream to a slot of its own (marker_page.h).
 *
 * The executor waits only briefly, because the GPU may be waiting for a later record (an encoded
 * call of the client). A stream whose queue stays full is closed: its records are deferred
 * (deferred_gate.h) until gpd_depth_poll() reports capacity again.
 *
 * Ownership: embedded in struct gpd_stream and in struct gpd_stream_session.
 * Threads: executor only.
 */
#ifndef GPD_STREAM_DEPTH_H
#define GPD_STREAM_DEPTH_H

#include "server/worker/device/marker_page.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* Queue depth of one stream. Initialized to zeros: not counted. gpd_depth_open() sets it. */
struct gpd_depth {
	uint32_t slot; /* slot number plus 1; 0: operations are not counted */
	/* Number of operations so far, markers and events included; incremented by the module that
	 * enqueues one; wraps around. */
	uint32_t given;
	/* Value of `given` at the last marker, or when the stream was last known to be idle. */
	uint32_t marked;
	uint32_t idle;   /* value of `given` when the stream was last known to be idle */
	uint32_t stride; /* number of operations between two markers */
	/* Value of `given` when the queue last stopped being full; 0: it never was full. */
	uint32_t opened;
	bool full; /* its later records must be deferred; set by gpd_depth_mark() */
	/* Progress of the GPU, and the time (gp_now_ns()) when it last changed. Valid while the
	 * queue is full. */
	uint32_t seen;
	uint64_t seen_ns;
};

/* State of all streams of a session. Initialized to zeros. */
struct gpd_depths {
	/* Acquired with the first stream; NULL before, or out of memory. */
	struct gpd_marker_page *page;
	bool used[GPD_MARKER_PAGE_SLOTS]; /* slots in use */
	bool filled; /* a stream has become full since deferred_gate.h last added gates */
};

/* Time in nanoseconds without progress of the GPU after which a stream may exceed its share of the
 * queues, because it may be waiting for a later record. Changed only by tests. */
extern uint64_t gpd_depth_timeout_ns;

/* Starts counting the operations of a new stream. A context must be current: the first call
 * acquires the page (gpd_marker_page_acquire(), which may block). If memory or slots are exhausted,
 * the operations are not counted. */
void gpd_depth_open(struct gpd_session *session, struct gpd_stream *stream);
/* Stops counting and frees the stream's slot. The stream must have no work left. Does nothing if it
 * has no slot. */
void gpd_depth_close(struct gpd_session *session, struct gpd_stream *stream);
/* Frees the session's marker page, after gpd_depth_close() of all streams. */
void gpd_depth_free(struct gpd_session *session);

/* To be called when the stream is known to be idle, before an operation is counted: none of the
 * operations so far needs a marker. */
void gpd_depth_set_idle(struct gpd_depth *depth);

/* Enqueues a marker, and blocks for at most about 20 ms if the queue is full. To be called before
 * an operation when `given`, already incremented for it, exceeds `marked` by at least `stride`; the
 * stream's device must be current. The queue always has capacity for this operation, but depth.full
 * may be set on return: later records of the stream must then be deferred. */
void gpd_depth_mark(struct gpd_session *session, struct gpd_stream *stream);

/* Returns whether a full queue has capacity again, or the session is closing or the GPU is lost,
 * and clears depth.full in this case. Does not wait. depth.full must be set. */
bool gpd_depth_poll(const struct gpd_session *session, struct gpd_stream *stream);

#endif /* GPD_STREAM_DEPTH_H */
