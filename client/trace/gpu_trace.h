/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU part of the timeline (tracer.h): fetches the daemon's measurements of GPU work and writes
 * them as a process of its own, with one track (row) per stream.
 *
 * Ownership: the caller has one struct gpc_gpu_trace per session, initially zero, with pid set. It
 * must not move or be freed while a request is in flight. gpc_gpu_trace_fini() frees what it owns.
 * Threads: one thread uses a struct. The thread that reads the reply sets only `answered`,
 * `reply_ns` and the result of `request`.
 * Units: times are nanoseconds of gp_now_ns() (base/clock.h), which is the local clock, unless they
 * are the daemon's.
 */
#ifndef GPC_GPU_TRACE_H
#define GPC_GPU_TRACE_H

#include "client/base/trace_text.h"
#include "client/session/call.h"
#include "protocol/trace_event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Number of slots for streams; streams whose IDs share a slot replace each other. */
#define GPC_GPU_TRACE_STREAMS 4096

/* State of one session's GPU timeline; all members except pid are internal. */
struct gpc_gpu_trace {
	int pid; /* process ID of the daemon in the timeline, chosen by the caller */
	/* named: the name of the process was written; unable: no more is fetched, because the
	 * daemon measures nothing, a reply was malformed, or the connection is lost */
	bool named, unable;
	/* number of replies still to be received, including that of the request in flight */
	unsigned int wanted;
	bool requested; /* a request is in flight */
	struct gpc_request request;
	/* local times at which the request was sent and its reply was received */
	uint64_t request_ns, reply_ns;
	atomic_bool answered; /* the reply was received */
	/* Clock synchronization: daemon's clock + ahead_ns (modulo 2^64) = local clock, with a
	 * maximum error of error_ns at the local time set_ns. set_ns 0: not synchronized yet. */
	uint64_t ahead_ns, error_ns, set_ns;
	/* values that were last written to the timeline: time of the clock error, clock error, and
	 * number of operations that the daemon could not measure */
	uint64_t reported_ns, reported_error_ns, missed;
	/* by stream ID modulo GPC_GPU_TRACE_STREAMS */
	struct {
		uint32_t stream; /* wire ID; 0: none */
		/* end of the last event written, local time */
		uint64_t end_ns;
	} streams[GPC_GPU_TRACE_STREAMS];
	/* cache of kernel names, by gp_trace_get_name_slot() (protocol/trace_event.h) */
	struct {
		uint64_t kernel; /* number of the kernel in events; 0: none */
		char *name;      /* owned; NULL: none */
	} names[GP_TRACE_NAME_SLOTS];
};

/* Notes that one more reply, to a request sent after this call, is wanted; at the first call eight,
 * to synchronize the clocks. gpc_gpu_trace_poll() sends the requests. */
void gpc_gpu_trace_request(struct gpc_gpu_trace *gpu);
/* Appends a received reply to *text and, if more replies are wanted, sends the next request. Does
 * not wait. Returns true if no more replies are wanted or possible; false: call it again later. */
bool gpc_gpu_trace_poll(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			struct gpc_session *session);

/* Internal, for tests. Synchronizes the clock with one exchange, if its error is smaller than the
 * present one. request_ns, reply_ns: local times of request and reply; daemon_ns: time of the
 * daemon's clock in between. */
void gpc_gpu_trace_sync_clock(struct gpc_gpu_trace *gpu, uint64_t request_ns, uint64_t daemon_ns,
			      uint64_t reply_ns);
/* Internal, for tests. Returns the maximum error, in nanoseconds, of converting the daemon's time
 * to local time at the local time now_ns. */
uint64_t gpc_gpu_trace_clock_error(const struct gpc_gpu_trace *gpu, uint64_t now_ns);
/* Internal, for tests. Appends the encoded events of a reply to *text. Returns false if they are
 * malformed; the events before the malformed one are written. */
bool gpc_gpu_trace_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
			 struct gp_bytes events);

/* Frees the names. No request may be in flight. */
void gpc_gpu_trace_fini(struct gpc_gpu_trace *gpu);

#endif /* GPC_GPU_TRACE_H */
