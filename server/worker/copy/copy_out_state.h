/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a copy from the device, for copy_out.c and straight_out.c only.  The executor has
 * it while there are parts left; besides, each part that is under way has a reference.
 */
#ifndef GPD_COPY_OUT_STATE_H
#define GPD_COPY_OUT_STATE_H

#include "server/worker/copy/copy_part.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* One copy from the device, until it is answered. */
struct gpd_copy_out {
	struct gpd_copy_out *next; /* of the session's that have parts left */
	struct gpd_stream *stream; /* as long as there are parts left */
	struct gpd_cut cut;
	struct gpd_part part; /* the next one, if size is not 0 */
	uint64_t offset;      /* of the next part in the packed rows */
	uint64_t total;
	uint32_t request;
	uint16_t call;
	bool answered; /* with its only part */
	bool lanes;    /* its bytes go out on the data lanes, as this copy of the client's */
	uint32_t copy;
	uint64_t begun_ns; /* trace.h */
	bool begun;        /* the stream is ordered behind what it must wait for */
	struct gpd_gpudirect_out {
		_Atomic int way;         /* straight_out.c */
		_Atomic uint64_t chunks; /* not yet sent */
	} gpudirect;
	/* Parts under way, and the executor while there are parts left. */
	_Atomic unsigned int users;
	_Atomic int result;
	_Atomic uint64_t sent; /* by the data lanes, or soon */
};

/* Any thread.  The first failure is what the client is told. */
void gpd_copy_out_fail(struct gpd_copy_out *out, CUresult result);
void gpd_copy_out_reply(struct gpd_session *session, const struct gpd_copy_out *out);
/* A reference less; the last one answers, if nobody has, and frees. */
void gpd_copy_out_unref(struct gpd_session *session, struct gpd_copy_out *out);
/* It could not be sent.  Nobody is there to read: what else was asked for need not be done. */
void gpd_copy_out_fail_send(struct gpd_session *session, struct gpd_copy_out *out, int r);

/* Executor.  All that came earlier has its parts by now, and nothing that came later matters. */
CUresult gpd_copy_out_begin(struct gpd_session *session, struct gpd_copy_out *out);
/* Gives the stream out->part. */
CUresult gpd_copy_out_enqueue_part(struct gpd_session *session, struct gpd_copy_out *out);

#endif /* GPD_COPY_OUT_STATE_H */
