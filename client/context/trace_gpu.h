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

#define GPC_TRACE_STREAMS 4096

struct gpc_trace_gpu {
	int pid;             /* in the file */
	bool named, unable;  /* unable: the daemon measures nothing, or is gone */
	unsigned int wanted; /* answers, the one that is under way among them */
	bool asked;          /* it is under way */
	struct gpc_request request;
	uint64_t asked_ns, answered_ns;
	atomic_bool answered; /* by whoever has read it */
	/* The daemon's clock and this many nanoseconds (modulo 2^64) are ours, give or take the
	 * error, as an exchange found it. */
	uint64_t ahead_ns, error_ns, set_ns;
	uint64_t said_ns, said_error_ns, missed;
	struct {
		uint32_t stream;
		uint64_t end_ns; /* of what was written */
	} streams[GPC_TRACE_STREAMS];
	struct {
		uint64_t kernel;
		char *name;
	} names[GP_TRACE_PLACES];
};

/* One more answer than is under way, at least. */
void gpc_trace_gpu_want(struct gpc_trace_gpu *gpu);
/* Writes what has been answered, and asks if an answer is wanted, without waiting for it.  Whether
 * none is wanted any more. */
bool gpc_trace_gpu_step(struct gpc_trace_text *text, struct gpc_trace_gpu *gpu,
			struct gpc_session *session);

/* The parts of it.  An exchange: asked, what the daemon's clock said, answered. */
void gpc_trace_gpu_exchange(struct gpc_trace_gpu *gpu, uint64_t asked_ns, uint64_t daemon_ns,
			    uint64_t answered_ns);
/* By how much our time of the daemon's may be wrong now. */
uint64_t gpc_trace_gpu_error(const struct gpc_trace_gpu *gpu, uint64_t now_ns);
/* false: malformed. */
bool gpc_trace_gpu_write(struct gpc_trace_text *text, struct gpc_trace_gpu *gpu,
			 struct gp_bytes events);

void gpc_trace_gpu_fini(struct gpc_trace_gpu *gpu);

#endif /* GPC_TRACE_GPU_H */
