/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the client and the device, split into parts (copy_part.h).
 *
 * A copy to the host may not fit into the session's staging memory at once. The executor then goes
 * on with other calls and enqueues the remaining parts as staging becomes free. Records that must
 * follow such a copy wait in the deferred queue (deferred_gate.h) until all its parts are enqueued.
 *
 * Threads: executor only.
 * Errors: a CUresult; a malformed record is a protocol violation that ends the session.
 */
#ifndef GPD_COPY_H
#define GPD_COPY_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_args_gpCopyDevice;
struct gp_args_gpCopyInLanes;
struct gpd_copy_out;
struct gpd_cut;
struct gpd_lanes;
struct gpd_session;
struct gpd_staging;
struct gpd_stream;

/*
 * The part of a session that its copies have.
 * Threads: the executor, but for staging and lanes, which have locks of their own.
 */
struct gpd_copy_session {
	struct gpd_staging *staging; /* staging.h: pinned memory */
	struct gpd_lanes *lanes;     /* lane.h: data lanes */
	struct gpd_copy_out *out;    /* copies to the client that have parts left; utlist */
	bool added;                  /* to it, since deferred_gate.h looked */
	_Atomic uint64_t gpudirect_in, gpudirect_out; /* bytes of copies without staging */
};

/* -ENOMEM. */
int gpd_copy_session_create(struct gpd_session *session);
void gpd_copy_session_destroy(struct gpd_session *session);

/* Checks the current record: its bulk must have exactly the size of a box of these dimensions, and
 * the flags must be valid. Otherwise the session ends. Charges the bytes to the account. */
bool gpd_copy_in_is_sound(struct gpd_session *session, uint64_t width, uint64_t height,
			  uint64_t depth, uint32_t flags);
/* The same check for a copy whose bytes arrive on the data lanes, except that it charges
 * nothing. */
bool gpd_copy_lanes_is_sound(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args);
/* Receives the current record's bulk and enqueues its copy to the place that the cut describes. */
CUresult gpd_copy_in(struct gpd_session *session, uint32_t stream, struct gpd_cut *cut,
		     uint32_t flags);
/* To be called after gpd_copy_in(), or instead of it if there is no destination: on failure,
 * discards the rest of the bulk. Returns result. */
CUresult gpd_copy_in_finish(struct gpd_session *session, CUresult result);
/* Replies to the current call with the bytes that the cut describes, `total` of them; returns
 * GPD_LATER. */
CUresult gpd_copy_out(struct gpd_session *session, uint32_t stream, const struct gpd_cut *cut,
		      uint64_t total);

/* Maximum time that the executor waits for the client before it calls gpd_copy_continue() again. */
#define GPD_COPY_CONTINUE_MS 1

/* Enqueues as many remaining parts as staging memory allows. Returns whether some copy has parts
 * left. */
bool gpd_copy_continue(struct gpd_session *session);

/* To be called before a call is carried out: waits for the copies that must be enqueued before it.
 * Calls that begin with gpd_stream_begin() do that themselves and do not wait here. */
void gpd_copy_wait_before_call(struct gpd_session *session, uint16_t call, const void *fields,
			       size_t size);

/* Calls use() with the stream of each copy that has parts left, until it returns nonzero; returns
 * that result. Copies by GPUDirect (gpudirect.h) are left out, as they are not split into parts. */
int gpd_copy_for_each_unfinished(struct gpd_session *session,
				 int (*use)(struct gpd_session *session,
					    struct gpd_stream *stream));
/* Whether a copy of the stream has parts left. */
bool gpd_copy_is_unfinished(const struct gpd_session *session, const struct gpd_stream *stream);

/* Waits until all copies that must precede new work of the stream are enqueued completely; stream
 * NULL: all copies. */
void gpd_copy_await(struct gpd_session *session, const struct gpd_stream *stream);

/* Fills in the parameters of a device copy, to be run now or as a graph node.
 * CUDA_ERROR_INVALID_VALUE: the box is invalid, or the memory does not belong to the session. */
CUresult gpd_copy_device_box(struct gpd_session *session, const struct gp_args_gpCopyDevice *args,
			     CUDA_MEMCPY3D *params);

/* Enqueues such a copy on the stream. If its device cannot access the memory, the copy is made
 * between devices. */
CUresult gpd_copy_enqueue(struct gpd_session *session, const struct gpd_stream *stream,
			  const CUDA_MEMCPY3D *copy);

/* Frees the unfinished copies at the session's end, after its wait queue is gone. */
void gpd_copy_destroy_all(struct gpd_session *session);

#endif /* GPD_COPY_H */
