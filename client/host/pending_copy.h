/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending copies: asynchronous device-to-host copies in flight.
 *
 * A pending copy can be found by its destination, which must not be freed before the copy is done
 * and to which later copies must be stored later, and by the stream whose last work it is, because
 * a wait for that stream then needs no other reply.
 * Ownership: reference-counted; see struct gpc_pending_copy.
 * Threads: any.
 */
#ifndef GPC_PENDING_COPY_H
#define GPC_PENDING_COPY_H

#include "client/host/coherence.h"
#include "client/session/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A pending copy; the first member of the malloc'ed struct of the copy, which is freed with the
 * last reference. References are held by the starting thread, by the expected reply, and by each
 * waiting thread.
 */
struct gpc_pending_copy {
	struct gpc_request *request;
	uint32_t stream; /* wire ID of the stream */
	uint64_t lanes;  /* for a copy over data lanes, number of the stream (stream.h); else 0 */
	uintptr_t start, end; /* destination */
	struct gpc_pending_copy *prev, *next;
	unsigned int references;
	unsigned int waiters;
	bool started;
	bool replicated; /* the destination became accessible to kernels after the copy was posted
			  */
};

/* Adds the copy, with one reference for the caller and one for the reply. request, stream, start
 * and end must be set. */
void gpc_pending_copy_add(struct gpc_pending_copy *pending);
/* Called by the thread that added the copy, after starting the request: drops its reference; if the
 * start failed, both references. */
void gpc_pending_copy_started(struct gpc_pending_copy *pending, bool success);
/* Called when the reply has arrived and, on success, the data is stored. Drops the reply's
 * reference, so the copy may be freed. Returns whether a thread waits, which then reports the
 * result. */
bool gpc_pending_copy_done(struct gpc_pending_copy *pending, CUresult result);

/* Called before an operation of the stream that writes to host memory accessible to the device:
 * orders it after the arrival of the data of earlier copies to other host memory, so that a flag
 * that it writes is not visible before its data. Posts nothing if the session has no pending
 * copies. */
CUresult gpc_pending_copy_order(const struct gpc_scope *scope, uint32_t stream);

/* Called when kernels get access to [base, base + size). The data of pending copies arrives in the
 * program's memory, and must also be published to the device: see
 * gpc_pending_copy_before_work(). */
void gpc_pending_copy_replicate(const void *base, uint64_t size);

/* Slow path of gpc_pending_copy_before_work(). */
CUresult gpc_pending_copy_publish(const struct gpc_scope *scope, uint32_t stream);

/* Called before work of the stream that may use host memory accessible to the device: sends the
 * program's changes, and orders the work after the arrival and publication of the data of earlier
 * copies to such memory. */
static inline CUresult
gpc_pending_copy_before_work(const struct gpc_scope *scope, uint32_t stream)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_pending_copy_publish(scope, stream);
}

/* Pending copies that overlap the destination of a new copy. */
enum gpc_pending_overlap {
	GPC_OVERLAP_NONE,
	GPC_OVERLAP_STREAM, /* only copies over data lanes of the same stream */
	GPC_OVERLAP_LANE_0, /* also copies over lane 0 */
	GPC_OVERLAP_OTHER,  /* also copies over data lanes of another stream */
};

/* Returns the overlap; stream: number of the new copy's stream. */
enum gpc_pending_overlap gpc_pending_copy_overlap(const void *base, uint64_t size, uint64_t stream);

/* Returns whether a copy over data lanes is pending. */
bool gpc_pending_copy_over_lanes(void);

/* Orders later work of the stream after the publication of everything that the program has written
 * by the time the stream reaches this point. */
CUresult gpc_pending_copy_publish_when_due(const struct gpc_scope *scope, uint32_t stream);

/* Returns whether a pending copy writes to [base, base + size). */
bool gpc_pending_copy_writes(const void *base, uint64_t size);

/* Waits until no pending copy writes to [base, base + size). Returns the first error of these
 * copies. */
CUresult gpc_pending_copy_settle(const void *base, uint64_t size);

/* Waits for the copy that is the stream's work with this work number (gpc_request's issued), if it
 * is pending; all earlier work of the stream is then done. Returns false if no such copy is pending
 * and it is not the last one that completed: the state is then unknown. */
bool gpc_pending_copy_await(struct gpc_session *session, uint32_t stream, uint64_t issued,
			    CUresult *result_p);

#endif /* GPC_PENDING_COPY_H */
