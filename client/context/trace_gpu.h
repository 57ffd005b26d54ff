/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon tells of the GPU's work, put into the timeline: a process of its own with a track
 * for each stream.  For one thread, which keeps one of these for each session: zero at first, and
 * where it is while it is asked.
 */
#ifndef GPC_TRACE_GPU_H
#define GPC_TRACE_GPU_H

#include "client/base/trace_text.h"
#include "client/wire/call.h"
#include "protocol/trace_event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_session;

#define GPC_GPU_TRACE_STREAMS 4096

struct gpc_gpu_trace {
	int pid;             /* in the file */
	bool named, unable;  /* unable: the daemon measures nothing, or is gone */
	unsigned int wanted; /* answers, the one that is under way among them */
	bool requested;      /* it is under way */
	struct gpc_request request;
	uint64_t request_ns, reply_ns;
	atomic_bool answered; /* by whoever has read it */
	/* The daemon's clock and this many nanoseconds (modulo 2^64) are ours, give or take the
	 * error, as an exchange found it. */
	uint64_t ahead_ns, error_ns, set_ns;
	uint64_t reported_ns, reported_error_ns, missed;
	struct {
		uint32_t stream;
		uint64_t end_ns; /* of what was written */
	} streams[GPC_GPU_TRACE_STREAMS];
	struct {
		uint64_t kernel;
		char *name;
	} names[GP_TRACE_NAME_SLOTS];
};

/* One more answer than is under way, at least. */
void gpc_gpu_trace_request(struct gpc_gpu_trace *gpu);
/* Writes what has been answered, and asks if an answer is wanted, without waiting for it.  Whether
 * none is wanted any more. */
bool gpc_gpu_trace_poll(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			struct gpc_session *session);

/* The parts of it.  An exchange: asked, what the daemon's clock said, answered. */
void gpc_gpu_trace_sync_clock(struct gpc_gpu_trace *gpu, uint64_t request_ns, uint64_t daemon_ns,
			      uint64_t reply_ns);
/* By how much our time of the daemon's may be wrong now. */
uint64_t gpc_gpu_trace_clock_error(const struct gpc_gpu_trace *gpu, uint64_t now_ns);
/* false: malformed. */
bool gpc_gpu_trace_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			 struct gp_bytes events);

void gpc_gpu_trace_fini(struct gpc_gpu_trace *gpu);

#endif /* GPC_TRACE_GPU_H */
