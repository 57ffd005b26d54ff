/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue depth of a stream: the number of operations that were given to the driver's stream and are
 * not done.
 *
 * When a stream's queue in the driver is full (1024 operations), a thread that adds more waits
 * inside the driver. While a few threads do so, other calls, such as the creation of an event, can
 * wait there forever. The executor therefore waits outside the driver before the queue is full. The
 * GPU reports its progress by a number that the stream writes after every few operations.
 *
 * The executor waits only briefly, because the GPU may be waiting for a later record. A stream that
 * stays full is closed: its records go to the deferred queue (deferred_gate.h) until it has room
 * again.
 *
 * Ownership: part of a stream and of its session.
 * Threads: executor only.
 */
#ifndef GPD_STREAM_DEPTH_H
#define GPD_STREAM_DEPTH_H

#include "server/worker/device/marker_page.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* Depth of one stream. Zeros: not counted. */
struct gpd_depth {
	uint32_t slot;   /* slot number plus 1; 0: operations are not counted */
	uint32_t given;  /* number of operations; wraps around */
	uint32_t marked; /* value of given at the last marker */
	uint32_t stride; /* operations from marker to marker */
	uint32_t opened; /* value of given when it had room again */
	bool full;
	/* While it is full: the GPU's progress, and when it last changed. */
	uint32_t seen;
	uint64_t seen_ns;
};

/* Per session. Initialized to zeros. */
struct gpd_depths {
	struct gpd_marker_page *page; /* acquired with the first stream */
	bool used[GPD_MARKER_PAGE_SLOTS];
	bool filled; /* a stream has become full since the last poll of the gates; deferred_gate.h
		      */
};

/* Nanoseconds without progress of the GPU after which a stream may exceed its share of the queues,
 * because it may be waiting for a later record. */
extern uint64_t gpd_depth_timeout_ns;

/* To be called for a new stream. If memory or slots are exhausted, its operations are not
 * counted. */
void gpd_depth_open(struct gpd_session *session, struct gpd_stream *stream);
/* To be called when the stream has no work left. */
void gpd_depth_close(struct gpd_session *session, struct gpd_stream *stream);
/* To be called after all streams are closed. */
void gpd_depth_free(struct gpd_session *session);

/* To be called before the next operation when given exceeds marked by stride, with the stream's
 * device current: enqueues a marker. The operation has room, but the stream may be full afterwards:
 * its later records must then be deferred. */
void gpd_depth_mark(struct gpd_session *session, struct gpd_stream *stream);

/* For a full stream: returns whether it has room again. */
bool gpd_depth_poll(const struct gpd_session *session, struct gpd_stream *stream);

#endif /* GPD_STREAM_DEPTH_H */
