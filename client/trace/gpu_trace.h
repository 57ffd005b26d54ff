/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU part of the timeline: fetches the daemon's measurements of GPU work and writes them as a
 * process of its own, with one track per stream.
 *
 * Ownership: the caller has one struct gpc_gpu_trace per session, initially zero. It must not move
 * while a request is in flight.
 * Threads: one thread.
 * Units: times are nanoseconds.
 */
#ifndef GPC_GPU_TRACE_H
#define GPC_GPU_TRACE_H

#include "client/base/trace_text.h"
#include "client/session/call.h"
#include "protocol/trace_event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPC_GPU_TRACE_STREAMS 4096

struct gpc_gpu_trace {
	int pid;             /* of its process in the timeline */
	bool named, unable;  /* unable: the daemon measures nothing, or the connection is lost */
	unsigned int wanted; /* number of replies wanted, including the one in flight */
	bool requested;      /* a request is in flight */
	struct gpc_request request;
	uint64_t request_ns, reply_ns;
	atomic_bool answered; /* set by the thread that reads the reply */
	/* Clock synchronization: daemon's clock + ahead_ns (modulo 2^64) = local clock, with a
	 * maximum error of error_ns at set_ns. */
	uint64_t ahead_ns, error_ns, set_ns;
	uint64_t reported_ns, reported_error_ns, missed;
	struct {
		uint32_t stream;
		uint64_t end_ns; /* of the last event written */
	} streams[GPC_GPU_TRACE_STREAMS];
	struct {
		uint64_t kernel;
		char *name;
	} names[GP_TRACE_NAME_SLOTS];
};

/* Requests at least one more reply than is in flight. */
void gpc_gpu_trace_request(struct gpc_gpu_trace *gpu);
/* Writes a received reply and sends the next request if more replies are wanted, without waiting.
 * Returns whether no more replies are wanted or possible. */
bool gpc_gpu_trace_poll(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			struct gpc_session *session);

/* Internal functions, for tests. sync_clock() processes one exchange: the times of the request, of
 * the daemon's clock, and of the reply. */
void gpc_gpu_trace_sync_clock(struct gpc_gpu_trace *gpu, uint64_t request_ns, uint64_t daemon_ns,
			      uint64_t reply_ns);
/* Returns the current maximum error of converting the daemon's time to local time. */
uint64_t gpc_gpu_trace_clock_error(const struct gpc_gpu_trace *gpu, uint64_t now_ns);
/* Writes encoded events. Returns false if they are malformed. */
bool gpc_gpu_trace_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			 struct gp_bytes events);

void gpc_gpu_trace_fini(struct gpc_gpu_trace *gpu);

#endif /* GPC_GPU_TRACE_H */
