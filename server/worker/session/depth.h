/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a stream of the driver has been given that is not done.
 *
 * When a stream's queue in the driver is full (1024 operations), whoever gives it more waits inside
 * of the driver, and while a few do, others wait there for ever: for an event to be created, for
 * instance.  So the executor waits outside of it, before the queue is full.  It knows how far the
 * GPU is by a number that the stream writes behind every few operations.
 *
 * The executor waits only briefly: what the GPU waits for may come in a later record.  A stream
 * that stays full is closed: its records are kept in the backlog (backlog_gate.h) until it has room
 * again. Executor only.
 */
#ifndef GPD_DEPTH_H
#define GPD_DEPTH_H

#include "server/worker/device/wait_page.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* A stream's; all zeros: none. */
struct gpd_depth {
	uint32_t slot;   /* and 1; 0: what is in the stream is not counted */
	uint32_t given;  /* operations; wraps around */
	uint32_t marked; /* up to this one the GPU will say so */
	uint32_t stride; /* operations from mark to mark */
	uint32_t opened; /* `given` when it had room again */
	bool full;
	/* While it is full: the progress of the GPU, and when it was seen. */
	uint32_t seen;
	uint64_t seen_ns;
};

/* A session's; all zeros at first. */
struct gpd_depths {
	struct gpd_marker_page *page; /* taken with the first stream */
	bool used[GPD_MARKER_PAGE_SLOTS];
	bool filled; /* a stream is full since the gates were looked at last; backlog_gate.h */
};

/* What is done without progress of the GPU before more is given to a stream than is its share of
 * the queues: it may be waiting for something that comes later. */
extern uint64_t gpd_depth_timeout_ns;

/* The stream has been made.  Without memory, or beyond the slots, nothing is counted. */
void gpd_depth_open(struct gpd_session *session, struct gpd_stream *stream);
/* Nothing is left in it. */
void gpd_depth_close(struct gpd_session *session, struct gpd_stream *stream);
/* After all streams are closed. */
void gpd_depth_free(struct gpd_session *session);

/* The operation that makes `given` so many more than `marked` as `stride` says comes next, and the
 * stream's device is current.  There is room for it, but the stream may be full then: no other
 * records shall be carried out in it before it has room. */
void gpd_depth_mark(struct gpd_session *session, struct gpd_stream *stream);

/* Of a stream that is full: whether it is full no more. */
bool gpd_depth_poll(const struct gpd_session *session, struct gpd_stream *stream);

#endif /* GPD_DEPTH_H */
