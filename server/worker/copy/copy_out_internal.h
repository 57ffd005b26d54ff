/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a copy from the device, shared by copy_out.c and gpudirect_out.c only.
 *
 * Ownership: created by copy_out.c with users 1, and freed with the last reference. The executor
 * has a reference while parts are left, each part in flight has one, and a copy scheduled by
 * GPUDirect has one until the preceding work of its stream is done.
 * Threads: executor only, unless noted.
 * Errors: CUresult, CUDA_SUCCESS on success.
 */
#ifndef GPD_COPY_OUT_INTERNAL_H
#define GPD_COPY_OUT_INTERNAL_H

#include "server/worker/copy/copy_part.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* A copy from the device to the client, until its reply is sent. */
struct gpd_copy_out {
	struct gpd_copy_out *next; /* list gpd_copy_session.out: copies with parts left */
	struct gpd_stream *stream; /* borrowed; valid while parts are left */
	struct gpd_cut cut;        /* source, and position of the next part */
	struct gpd_part part;      /* next part, from cut; size 0: not taken from cut yet */
	uint64_t offset;           /* offset of the next part in the packed rows, in bytes */
	uint64_t total;            /* bytes of the whole copy */
	uint32_t request;          /* number of the client's request, for the reply */
	uint16_t call;             /* number of the call, for the reply */
	/* The reply has been sent, or sending it has failed. Not atomic: set by the thread that
	 * sends the reply before it drops its reference, or sets way to DONE. */
	bool answered;
	bool lanes;        /* the bytes are sent on the data lanes; else with the replies */
	uint32_t copy;     /* with lanes: the client's number of the copy */
	uint64_t begun_ns; /* start of the copy for the trace (gpu_trace.h), in nanoseconds */
	/* gpd_stream_begin() was called for it; reset by gpudirect_out.c if that failed */
	bool begun;
	struct gpd_gpudirect_out { /* gpudirect.h */
		_Atomic int way;   /* enum way in gpudirect_out.c */
		/* number of chunks that are not sent yet, plus 1 until all are queued */
		_Atomic uint64_t chunks;
	} gpudirect;
	/* Reference count. */
	_Atomic unsigned int users;
	_Atomic int result;    /* CUresult; the first failure */
	_Atomic uint64_t sent; /* number of bytes passed to the data lanes */
};

/* Any thread. Sets the result, unless an earlier failure has set it: only the first failure is
 * reported to the client. */
void gpd_copy_out_fail(struct gpd_copy_out *out, CUresult result);
/* Any thread with a reference. Sends the program's printed output and then the reply with the
 * result, without data; the caller then sets `answered`, if it does not drop the last reference. A
 * failure to send is not reported. */
void gpd_copy_out_reply(struct gpd_session *session, const struct gpd_copy_out *out);
/* Any thread. Drops a reference. With the last reference, sends the reply unless it was sent, and
 * frees the copy. */
void gpd_copy_out_unref(struct gpd_session *session, struct gpd_copy_out *out);
/* Any thread. Handles a failure r (negative errno) to send data: the client is no longer reading,
 * so the copy fails and the session ends. */
void gpd_copy_out_fail_send(struct gpd_session *session, struct gpd_copy_out *out, int r);

/* Orders the stream after the work that the copy must follow, and sets out->begun, also on failure.
 * Called only when no earlier copy that must precede this one has parts left. Does not wait for
 * later copies. May block as gpd_stream_begin() does (stream/stream.h). Returns CUDA_SUCCESS or the
 * error of gpd_stream_begin(). */
CUresult gpd_copy_out_begin(struct gpd_session *session, struct gpd_copy_out *out);
/* Enqueues out->part, which begins at out->offset, on the stream, with a reference to the copy
 * until the part is sent; the caller then advances both. Does not wait. Returns CUDA_SUCCESS;
 * CUDA_ERROR_NOT_READY if there is no staging memory now, and nothing was enqueued;
 * CUDA_ERROR_OUT_OF_MEMORY; the session's sticky error; or an error of the driver or of
 * gpd_wait_add(). After these errors a piece of the part may be enqueued, but it will not be
 * sent. */
CUresult gpd_copy_out_enqueue_part(struct gpd_session *session, struct gpd_copy_out *out);

#endif /* GPD_COPY_OUT_INTERNAL_H */
