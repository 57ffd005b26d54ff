/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU part of the timeline: fetches the daemon's measurements of GPU work and writes them as a
 * process of its own, with one track (row) per stream.
 *
 * Ownership: the caller has one struct gpc_gpu_trace per session, initially zero, with pid set. It
 * must not move or be freed while a request is in flight. gpc_gpu_trace_fini() frees what it owns.
 * Threads: one thread uses a struct; only `answered` and `reply_ns` are set by the thread that
 * reads the reply.
 * Units: times are nanoseconds of gp_now_ns(), unless they are the daemon's.
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

/* State of one session's GPU timeline; all members except pid are internal. */
struct gpc_gpu_trace {
	int pid;             /* process ID of the daemon in the timeline, chosen by the caller */
	bool named, unable;  /* named: the process and its name were written; unable: the daemon
				measures nothing, or the connection is lost */
	unsigned int wanted; /* number of replies still to be received, including that of the
				request in flight */
	bool requested;      /* a request is in flight */
	struct gpc_request request;
	/* local times at which the request was sent and its reply was received */
	uint64_t request_ns, reply_ns;
	atomic_bool answered; /* the reply was received */
	/* Clock synchronization: the daemon's clock + ahead_ns (modulo 2^64) = the local clock,
	 * with a maximum error of error_ns at local time set_ns. set_ns 0: not synchronized yet. */
	uint64_t ahead_ns, error_ns, set_ns;
	/* values last written to the timeline: time, clock error, and number of operations not
	 * measured */
	uint64_t reported_ns, reported_error_ns, missed;
	struct {
		uint32_t stream;
		uint64_t end_ns; /* end of the last event written */
	} streams[GPC_GPU_TRACE_STREAMS];
	struct {
		uint64_t kernel;
		char *name;
	} names[GP_TRACE_NAME_SLOTS];
};

/* Requests that one more reply, sent after this call, is fetched; eight at the first call.
 * gpc_gpu_trace_poll() sends the requests. */
void gpc_gpu_trace_request(struct gpc_gpu_trace *gpu);
/* Writes a received reply to text and, if more replies are to be fetched, sends the next request.
 * Does not wait. Returns true if no more replies are wanted or possible; false: call it again
 * later. */
bool gpc_gpu_trace_poll(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			struct gpc_session *session);

/* Synchronizes the clock with one exchange, if its error is smaller than the present one: local
 * time of the request, time of the daemon's clock, and local time of the reply. Internal, for
 * tests. */
void gpc_gpu_trace_sync_clock(struct gpc_gpu_trace *gpu, uint64_t request_ns, uint64_t daemon_ns,
			      uint64_t reply_ns);
/* Returns the maximum error, at this local time, of converting the daemon's time to local time.
 * Internal, for tests. */
uint64_t gpc_gpu_trace_clock_error(const struct gpc_gpu_trace *gpu, uint64_t now_ns);
/* Writes encoded events of a reply to text. Returns false if they are malformed; those before the
 * malformed one are written. Internal, for tests. */
bool gpc_gpu_trace_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			 struct gp_bytes events);

/* Frees the names. No request may be in flight. */
void gpc_gpu_trace_fini(struct gpc_gpu_trace *gpu);

#endif /* GPC_GPU_TRACE_H */
