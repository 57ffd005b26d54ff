/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a session's work ran on the GPU, for a client that asks (gpTraceTake): its user sees each
 * kernel and copy in the timeline beside the calls that made it (docs/tracing.md).
 *
 * An event of the driver behind each piece of work tells when it ended.  It began when its stream
 * was through with the piece before, or when the executor took it up, whichever came later.  So
 * many pieces are under way at most, and so many a second: what goes without an event is part of
 * the next one of its stream that has one.  Executor only; the session owns what is here.
 */
#ifndef GPD_TRACE_H
#define GPD_TRACE_H

#include <stdint.h>

struct gpd_session;

/* A piece of work, which its stream has just been given. */
struct gpd_trace_work {
	uint64_t begun_ns; /* when the executor took it up */
	uint64_t kernel;   /* gp_kernel of a launch: session->progress.kernel is its name */
	uint32_t stream;
	uint16_t call;
};

/* The time, if the session is traced, else 0. */
uint64_t gpd_trace_begin(const struct gpd_session *session);
/* Behind it.  begun_ns 0: the session is not traced. */
void gpd_trace_work(struct gpd_session *session, const struct gpd_trace_work *work);

/* At the session's end, when nothing of it runs any more. */
void gpd_trace_destroy(struct gpd_session *session);

#endif /* GPD_TRACE_H */
