/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU timeline of a session: records when its work ran, for a client that requests it
 * (gpTraceTake). The user then sees each kernel and copy in the timeline next to the calls that
 * caused it (docs/tracing.md).
 *
 * A driver event after each operation gives its end. Its start is the end of the stream's preceding
 * operation, or the time when the executor began to process it, whichever is later. The number of
 * operations in flight and the event rate are limited; an operation without an event is counted
 * with the next one of its stream that has one.
 *
 * Ownership: the session.
 * Threads: executor only.
 */
#ifndef GPD_GPU_TRACE_H
#define GPD_GPU_TRACE_H

#include <stdint.h>

struct gpd_session;

/* An operation that was just given to its stream. */
struct gpd_trace_work {
	uint64_t begun_ns; /* when the executor began to process it */
	uint64_t kernel;   /* gp_kernel of a launch: session->progress.kernel is its name */
	uint32_t stream;
	uint16_t call;
};

/* Returns the time if the session is traced, else 0. */
uint64_t gpd_trace_begin(const struct gpd_session *session);
/* Records the operation; to be called after it was given to its stream. begun_ns 0: not traced. */
void gpd_trace_work(struct gpd_session *session, const struct gpd_trace_work *work);

/* Frees the trace at the session's end, when it has no work left. */
void gpd_trace_destroy(struct gpd_session *session);

#endif /* GPD_GPU_TRACE_H */
