/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of a session.  Every one is a private non-blocking stream of the shared context; what the
 * legacy default stream means is kept inside the session: work on it waits for the session's
 * blocking streams, and they wait for it (by events, recorded only when they are needed).
 */
#ifndef GPD_STREAM_H
#define GPD_STREAM_H

#include "server/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_context;
struct gpd_session;

struct gpd_stream {
	struct gpd_handle handle;
	struct gpd_stream *next;
	struct gpd_context *context;
	CUstream driver;
	bool legacy;
	bool blocking;        /* created without CU_STREAM_NON_BLOCKING */
	uint64_t work;        /* session->work of its last operation */
	uint64_t seen_legacy; /* work of the legacy stream it is already ordered behind */
	uint64_t seen_barrier;
	CUevent order; /* made on first need */
};

/*
 * Before an operation: the stream named id, ordered behind what it must wait for, its device
 * current, counted as work.  CUDA_ERROR_INVALID_HANDLE.
 */
CUresult gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p);

/* The stream without ordering or counting (queries). NULL: no such stream. */
struct gpd_stream *gpd_stream_get(struct gpd_session *session, uint32_t id);

/* After a copy with GP_COPY_BARRIER: all later operations of the session wait for this one. */
CUresult gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream);

#endif /* GPD_STREAM_H */
