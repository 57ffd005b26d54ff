/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a copy from the device, shared by copy_out.c and gpudirect_out.c only.
 *
 * Ownership: reference counted. The executor has a reference while parts are left, and each part in
 * flight has one.
 * Threads: executor only, unless noted.
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

/* One copy from the device, until its reply is sent. */
struct gpd_copy_out {
	struct gpd_copy_out *next; /* list of the session's copies with parts left */
	struct gpd_stream *stream; /* valid while parts are left */
	struct gpd_cut cut;
	struct gpd_part part; /* the next part, if its size is not 0 */
	uint64_t offset;      /* of the next part in the packed rows */
	uint64_t total;
	uint32_t request;
	uint16_t call;
	bool answered; /* the reply went out with its only part */
	bool lanes;    /* sent on the data lanes, as the client's number `copy` */
	uint32_t copy;
	uint64_t begun_ns; /* gpu_trace.h */
	bool begun;        /* gpd_stream_begin() has been called for it */
	struct gpd_gpudirect_out {
		_Atomic int way;         /* enum way in gpudirect_out.c */
		_Atomic uint64_t chunks; /* not yet sent */
	} gpudirect;
	/* References: parts in flight, and the executor while parts are left. */
	_Atomic unsigned int users;
	_Atomic int result;
	_Atomic uint64_t sent; /* bytes given to the data lanes */
};

/* Any thread. Sets the result; only the first failure is reported to the client. */
void gpd_copy_out_fail(struct gpd_copy_out *out, CUresult result);
/* Sends the reply, without any data. */
void gpd_copy_out_reply(struct gpd_session *session, const struct gpd_copy_out *out);
/* Any thread. Drops a reference. The last one sends the reply, unless it was sent, and frees the
 * copy. */
void gpd_copy_out_unref(struct gpd_session *session, struct gpd_copy_out *out);
/* Any thread. Sending failed with r: the client is no longer reading, so the session ends. */
void gpd_copy_out_fail_send(struct gpd_session *session, struct gpd_copy_out *out, int r);

/* Executor: orders the stream after the work that the copy must follow. All earlier copies are
 * enqueued by now; later ones are ignored. */
CUresult gpd_copy_out_begin(struct gpd_session *session, struct gpd_copy_out *out);
/* Executor: enqueues out->part. CUDA_ERROR_NOT_READY: there is no staging memory now. */
CUresult gpd_copy_out_enqueue_part(struct gpd_session *session, struct gpd_copy_out *out);

#endif /* GPD_COPY_OUT_INTERNAL_H */
