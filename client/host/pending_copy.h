/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to host memory that are under way though nobody waits for them.  They are found by the
 * memory that they write to, for it must not go before they are done and later copies to it must be
 * stored later, and by the stream whose last work they are, for who waits for that needs no other
 * answer.  Any thread may call.
 */
#ifndef GPC_PENDING_COPY_H
#define GPC_PENDING_COPY_H

#include "client/host/mirror.h"
#include "client/wire/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The first member of what was malloc'ed for the copy, which is freed with the last reference: of
 * who starts it, of its answer, and of those who wait.
 */
struct gpc_pending_copy {
	struct gpc_request *request;
	uint32_t stream; /* its name on the wire */
	uint64_t lanes;  /* number of the stream (stream.h), of a copy over data lanes; else 0 */
	uintptr_t start, end; /* of the memory */
	struct gpc_pending_copy *prev, *next;
	unsigned int references;
	unsigned int waiters;
	bool started;
	bool replicated; /* kernels reach the memory since the copy was posted */
};

/* request, stream, start and end are set; with a reference of the caller's and one for the answer.
 */
void gpc_pending_copy_add(struct gpc_pending_copy *pending);
/* By the caller of add: the request has been started, or it could not be. */
void gpc_pending_copy_started(struct gpc_pending_copy *pending, bool success);
/* The answer has come and its bytes are there, if it says so: whether somebody waits, who tells its
 * result.  It may be freed. */
bool gpc_pending_copy_done(struct gpc_pending_copy *pending, CUresult result);

/* Before an operation of the stream that writes to host memory that the device reaches: it starts
 * after the bytes of earlier copies to other host memory have arrived, so a flag that it writes is
 * not seen before its data.  Posts nothing if no copy of the session is pending. */
CUresult gpc_pending_copy_order(const struct gpc_scope *scope, uint32_t stream);

/* Kernels reach [base, base + size) from now on.  The bytes of pending copies arrive in the
 * program's memory, and the device needs them: gpc_pending_copy_before_work(). */
void gpc_pending_copy_replicate(const void *base, uint64_t size);

CUresult gpc_pending_copy_publish(const struct gpc_scope *scope, uint32_t stream);

/* Before work of the stream that may use host memory that the device reaches: what the program has
 * changed is on its way, and the work starts after the bytes of earlier copies to such memory have
 * arrived here and have been published. */
static inline CUresult
gpc_pending_copy_before_work(const struct gpc_scope *scope, uint32_t stream)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_pending_copy_publish(scope, stream);
}

/* The pending copies that write to the memory of a copy that is about to be posted. */
enum gpc_pending_overlap {
	GPC_OVERLAP_NONE,
	GPC_OVERLAP_STREAM, /* copies over data lanes, all of the new copy's stream */
	GPC_OVERLAP_LANE_0, /* also copies over lane 0 */
	GPC_OVERLAP_OTHER,  /* also copies over data lanes of another stream */
};

/* stream: the number of the new copy's. */
enum gpc_pending_overlap gpc_pending_copy_overlap(const void *base, uint64_t size, uint64_t stream);

/* Whether a copy over data lanes is pending. */
bool gpc_pending_copy_over_lanes(void);

/* The stream's later work starts after all that the program had written when the stream got here
 * has been published. */
CUresult gpc_pending_copy_publish_when_due(const struct gpc_scope *scope, uint32_t stream);

/* Whether a pending copy writes to [base, base + size). */
bool gpc_pending_copy_writes(const void *base, uint64_t size);

/* Waits until no pending copy writes to [base, base + size) any more; the first one's error. */
CUresult gpc_pending_copy_settle(const void *base, uint64_t size);

/* Waits for the copy that the stream was given as this record (call.h, given), if it is not done
 * yet; all earlier work of the stream is done then.  False: it is none that is under way, or the
 * last one that was; nothing is known. */
bool gpc_pending_copy_await(struct gpc_session *session, uint32_t stream, uint64_t issued,
			    CUresult *result_p);

#endif /* GPC_PENDING_COPY_H */
