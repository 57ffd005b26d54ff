/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a copy from the device, shared by copy_out.c and gpudirect_out.c only.
 *
 * Ownership: reference counted. The executor has a reference while parts are left, each part in
 * flight has one, and a copy scheduled by GPUDirect has one until the preceding work of its stream
 * is done.
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
	struct gpd_stream *stream; /* valid while parts are left */
	struct gpd_cut cut;        /* source, and position of the next part */
	struct gpd_part part;      /* next part; size 0: none, take it from cut */
	uint64_t offset;           /* offset of the next part in the packed rows, in bytes */
	uint64_t total;            /* bytes of the whole copy */
	uint32_t request;          /* number of the client's request, for the reply */
	uint16_t call;             /* number of the call, for the reply */
	bool answered;             /* the reply has been sent */
	bool lanes;                /* the bytes are sent on the data lanes; else with the replies */
	uint32_t copy;             /* with lanes: the client's number of the copy */
	uint64_t begun_ns; /* start of the copy for the trace (gpu_trace.h), in nanoseconds */
	bool begun;        /* gpd_stream_begin() has been called for it */
	struct gpd_gpudirect_out {       /* gpudirect.h */
		_Atomic int way;         /* enum way in gpudirect_out.c */
		_Atomic uint64_t chunks; /* number of chunks that are not sent yet */
	} gpudirect;
	/* Number of references. */
	_Atomic unsigned int users;
	_Atomic int result;    /* CUresult; the first failure */
	_Atomic uint64_t sent; /* number of bytes passed to the data lanes */
};

/* Any thread. Sets the result, unless an earlier failure has set it: only the first failure is
 * reported to the client. */
void gpd_copy_out_fail(struct gpd_copy_out *out, CUresult result);
/* Any thread with a reference. Sends the reply with the result, without data. */
void gpd_copy_out_reply(struct gpd_session *session, const struct gpd_copy_out *out);
/* Any thread. Drops a reference. With the last reference, sends the reply unless it was sent, and
 * frees the copy. */
void gpd_copy_out_unref(struct gpd_session *session, struct gpd_copy_out *out);
/* Any thread. Handles a failure r (negative errno) to send data: the client is no longer reading,
 * so the copy fails and the session ends. */
void gpd_copy_out_fail_send(struct gpd_session *session, struct gpd_copy_out *out, int r);

/* Orders the stream after the work that the copy must follow, and sets out->begun, also on failure.
 * All earlier copies are enqueued by now; later copies are not waited for. May block as
 * gpd_stream_begin() does (stream/stream.h). Returns CUDA_SUCCESS or the error of
 * gpd_stream_begin(). */
CUresult gpd_copy_out_begin(struct gpd_session *session, struct gpd_copy_out *out);
/* Enqueues out->part on the stream, with a reference to the copy until the part is sent. Does not
 * wait. Returns CUDA_SUCCESS; CUDA_ERROR_NOT_READY if there is no staging memory now, and nothing
 * was enqueued; or another error. */
CUresult gpd_copy_out_enqueue_part(struct gpd_session *session, struct gpd_copy_out *out);

#endif /* GPD_COPY_OUT_INTERNAL_H */
