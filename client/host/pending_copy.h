/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending copies: asynchronous device-to-host copies in flight, in one list of the process.
 *
 * A pending copy is found by its destination or by its stream. By its destination, because the
 * memory must not be freed before the copy is done, and later copies to it must be stored later. By
 * its stream, because a wait for a stream whose last work is a pending copy needs no reply but that
 * of the copy.
 *
 * Order of calls for a copy: gpc_pending_copy_add(); the start of its request;
 * gpc_pending_copy_started(); and, when the reply has arrived, which may be before the last one,
 * gpc_pending_copy_done().
 * Ownership: reference-counted; see struct gpc_pending_copy.
 * Threads: any thread; the list has a lock of its own. gpc_pending_copy_settle(),
 * gpc_pending_copy_await() and the functions with a scope must not be called in a function that the
 * receiver runs (done() of struct gpc_request, client/session/call.h, or the handler of a note),
 * because they wait for replies or for locks of threads that post calls.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or the
 * session's error.
 */
#ifndef GPC_PENDING_COPY_H
#define GPC_PENDING_COPY_H

#include "client/host/coherence.h"
#include "client/session/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A pending copy; the first member of the malloc'ed struct of the copy, which is freed with free()
 * when the last reference is dropped. References are owned by the starting thread, by the expected
 * reply, and by each waiting thread.
 */
struct gpc_pending_copy {
	/* request of the copy, in the same allocation; its done() must call
	 * gpc_pending_copy_done(). Its members session and issued identify the copy. */
	struct gpc_request *request;
	uint32_t stream; /* wire ID of the stream */
	/* number of the stream (gpc_stream.number, client/stream/stream.h) for a copy over data
	 * lanes (client/session/lane.h); 0: a copy over lane 0 */
	uint64_t lanes;
	uintptr_t start, end; /* destination: addresses of the first byte and after the last byte */
	struct gpc_pending_copy *prev, *next;
	/* number of references; guarded by the list's lock, as the following members are */
	unsigned int references;
	unsigned int waiters; /* number of threads that wait for the copy */
	bool started;         /* gpc_pending_copy_started() was called with success */
	bool replicated;      /* the destination became accessible to kernels after the post */
};

/* Adds the copy to the list, before its request is started, with one reference for the caller and
 * one for the reply. request, stream, lanes, start and end must be set, and the rest must be zero.
 * gpc_pending_copy_started() must follow; until then the copy is not found. */
void gpc_pending_copy_add(struct gpc_pending_copy *pending);
/* Called by the thread that added the copy, after starting the request. success: the request was
 * started; drops the caller's reference. Otherwise removes the copy and drops both references,
 * which frees it. */
void gpc_pending_copy_started(struct gpc_pending_copy *pending, bool success);
/* Called by the request's done(), when the reply has been processed and, on success, the data is
 * stored: removes the copy from the list and drops the reply's reference. The copy may be freed.
 * result: result of the request. Returns true if a thread waits for the copy; it then reports the
 * result. Returns false if the caller must report it. */
bool gpc_pending_copy_done(struct gpc_pending_copy *pending, CUresult result);

/* Called before an operation of the stream with this wire ID that writes to host memory accessible
 * to the device, such as a flag. Orders the operation after the arrival of the data of the
 * session's earlier copies to other host memory, so that the flag is not visible before their data.
 * Posts nothing if the session has no pending copies. Does not wait for them. Returns an error of
 * gpc_host_queue_post() (client/session/host_queue.h). */
CUresult gpc_pending_copy_order(const struct gpc_scope *scope, uint32_t stream);

/* Called when kernels get access to [base, base + size). The data of pending copies to that memory
 * will arrive in the program's memory only, so it must then be published to the device:
 * gpc_pending_copy_before_work() does so. */
void gpc_pending_copy_replicate(const void *base, uint64_t size);

/* Slow path of gpc_pending_copy_before_work(); see there. */
CUresult gpc_pending_copy_publish(const struct gpc_scope *scope, uint32_t stream);

/* Called before work of the stream with this wire ID is posted that may use host memory accessible
 * to the device. Sends the program's changes, and orders the work after the arrival and publication
 * of the data of earlier copies to such memory. Does not wait for the copies. Returns an error of
 * gpc_coherence_before_work() or gpc_host_queue_post(); the work must then not be posted. */
static inline CUresult
gpc_pending_copy_before_work(const struct gpc_scope *scope, uint32_t stream)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_pending_copy_publish(scope, stream);
}

/* How pending copies overlap the destination of a new copy: the greatest value that applies to one
 * of them. */
enum gpc_pending_overlap {
	GPC_OVERLAP_NONE,
	/* copies over data lanes, of the same stream */
	GPC_OVERLAP_STREAM,
	/* copies over lane 0 */
	GPC_OVERLAP_LANE_0,
	/* copies over data lanes, of another stream */
	GPC_OVERLAP_OTHER,
};

/* Returns how pending copies overlap [base, base + size). stream: number of the new copy's stream
 * (gpc_stream.number, client/stream/stream.h). */
enum gpc_pending_overlap gpc_pending_copy_overlap(const void *base, uint64_t size, uint64_t stream);

/* Returns whether a copy over data lanes is pending. */
bool gpc_pending_copy_over_lanes(void);

/* Posts, to the stream with this wire ID, the publication of everything that the program has
 * written by the time the stream reaches this point; later work of the stream comes after it. Does
 * not wait. Returns an error of gpc_host_queue_post(). */
CUresult gpc_pending_copy_publish_when_due(const struct gpc_scope *scope, uint32_t stream);

/* Returns whether a pending copy writes to [base, base + size). Returns false if size is 0. */
bool gpc_pending_copy_writes(const void *base, uint64_t size);

/* Blocks, without limit, until no pending copy writes to [base, base + size). Returns CUDA_SUCCESS
 * or the first error of these copies, or of an earlier posted call (gpc_request_wait(),
 * client/session/call.h). */
CUresult gpc_pending_copy_settle(const void *base, uint64_t size);

/* Waits, without limit, for the copy with this work number (gpc_request.issued) on the stream with
 * this wire ID, if it is pending or is the last copy of the process that completed successfully.
 * Returns true, with the result in *result_p, that of gpc_request_wait() (client/session/call.h) or
 * of gpc_session_result() (client/session/session.h); CUDA_SUCCESS means that all earlier work of
 * the stream is done, too. Returns false, without waiting and with *result_p unchanged, if there is
 * no such copy; whether the work is done is then not known. */
bool gpc_pending_copy_await(struct gpc_session *session, uint32_t stream, uint64_t issued,
			    CUresult *result_p);

#endif /* GPC_PENDING_COPY_H */
