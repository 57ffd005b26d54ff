/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU timeline of a session: records when its work ran, for a client that requests it
 * (gpTraceTake). The user then sees each kernel and copy in the timeline next to the calls that
 * caused it (docs/tracing.md).
 *
 * The end of an operation is the time of a driver event recorded after it. Its start is the end of
 * the stream's preceding operation, or the time when the executor began to process it, whichever is
 * later. At most 4096 operations per device are in flight, and the executor records about 30,000
 * events per second; the memory is charged to the session's host memory. An operation for which no
 * event can be recorded is included in the next operation of its stream that has an event, which
 * reports how many it includes.
 *
 * Ownership: session->trace, created by the first gpTraceTake (hook gpd_gpTraceTake(), gpd_calls.h)
 * and freed by gpd_trace_destroy().
 * Threads: executor only.
 * Units: times are nanoseconds of gp_now_ns().
 */
#ifndef GPD_GPU_TRACE_H
#define GPD_GPU_TRACE_H

#include <stdint.h>

struct gpd_session;

/* An operation that was just enqueued on its stream. */
struct gpd_trace_operation {
	uint64_t begun_ns; /* from gpd_trace_begin(); 0: not traced */
	/* Client's handle (gp_kernel, from the call's fields) of the kernel of a launch, whose name
	 * is in session->progress.kernel; 0: not a launch. */
	uint64_t kernel;
	uint32_t stream; /* client's ID of the stream */
	uint16_t call;   /* number of the call */
};

/* Returns the present time for gpd_trace_operation.begun_ns if the session is traced, otherwise 0.
 * Called before the operation is enqueued. */
uint64_t gpd_trace_begin(const struct gpd_session *session);
/* Records an operation that was enqueued without an error, by an event on its stream. Called before
 * the stream's next operation is enqueued. A launch must have been passed to the driver: a traced
 * session does not use launch threads (issue/issue.h). Makes the device of the stream current. Does
 * nothing if begun_ns is 0 or the stream does not exist. If the event cannot be recorded, the
 * operation is only counted, for the next one of its stream. *work may be freed on return. */
void gpd_trace_record(struct gpd_session *session, const struct gpd_trace_operation *work);

/* Frees session->trace at the session's end, when it has no work left. Accepts a session without a
 * trace. */
void gpd_trace_destroy(struct gpd_session *session);

#endif /* GPD_GPU_TRACE_H */
