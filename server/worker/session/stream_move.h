/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that move to other multiprocessors: what stream.c and stream_move.c need of each other.
 * Executor only.
 */
#ifndef GPD_STREAM_MOVE_H
#define GPD_STREAM_MOVE_H

#include "server/worker/session/stream.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gpd_partition;
struct gpd_session;

/* stream.c */
CUresult gpd_stream_record(struct gpd_stream *stream, CUevent *event);
/* Whether what the stream was given is done: CUDA_ERROR_NOT_READY. */
CUresult gpd_stream_query_work(const struct gpd_stream *stream);
void gpd_stream_destroy_driver(CUstream driver, struct gpd_partition *partition);

static inline bool
gpd_stream_has_waits(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->waits, memory_order_acquire) != 0;
}

/* Moves the streams of those devices of which the session's share has changed. */
void gpd_stream_follow_shares(struct gpd_session *session);
/* At the session's end, on the software device: drops the work of the driver's streams that were
 * left. */
void gpd_stream_cancel_left(struct gpd_session *session);

#endif /* GPD_STREAM_MOVE_H */
