/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the client and the device, by parts (copy_part.h).
 *
 * Those to the host may not fit into the session's staging memory at once.  The executor then goes
 * on with other calls and gives their streams the remaining parts as staging comes free; what has
 * to come behind such a copy is kept (backlog_gate.h) until it has all its parts.  Executor only.
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
	bool added;                  /* to it, since backlog_gate.h looked */
	_Atomic uint64_t gpudirect_in, gpudirect_out; /* bytes of copies without staging */
};

/* -ENOMEM. */
int gpd_copy_session_create(struct gpd_session *session);
void gpd_copy_session_destroy(struct gpd_session *session);

/* The current call is to take its bulk to a box of this size, or the session ends. */
bool gpd_copy_in_is_sound(struct gpd_session *session, uint64_t width, uint64_t height,
			  uint64_t depth, uint32_t flags);
/* The same of a copy whose bytes come on the data lanes. */
bool gpd_copy_lanes_is_sound(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args);
/* Takes the current call's bulk to where the cut says. */
CUresult gpd_copy_in(struct gpd_session *session, uint32_t stream, struct gpd_cut *cut,
		     uint32_t flags);
/* Behind it, and where there is nowhere to take it to: what is left of the bulk is discarded. */
CUresult gpd_copy_in_finish(struct gpd_session *session, CUresult result);
/* Answers the current call with what the cut names, so many bytes: GPD_LATER. */
CUresult gpd_copy_out(struct gpd_session *session, uint32_t stream, const struct gpd_cut *cut,
		      uint64_t total);

/* How long the executor may wait for the client before it calls gpd_copy_continue() again. */
#define GPD_COPY_CONTINUE_MS 1

/* Gives out what parts can be; whether some copy has parts left. */
bool gpd_copy_continue(struct gpd_session *session);

/* Before a call is carried out: waits for the copies that it must come behind, unless it is one
 * that begins with gpd_stream_begin(). */
void gpd_copy_wait_before_call(struct gpd_session *session, uint16_t call, const void *fields,
			       size_t size);

/* Calls use() for the stream of each copy that has parts left; those that may go straight have not
 * been cut into parts.  The first result that is not 0. */
int gpd_copy_for_each_unfinished(struct gpd_session *session,
				 int (*use)(struct gpd_session *session,
					    struct gpd_stream *stream));
/* Whether any copy to the client has parts left. */
bool gpd_copy_is_pending(const struct gpd_session *session);
/* Whether a copy of the stream has parts left. */
bool gpd_copy_is_unfinished(const struct gpd_session *session, const struct gpd_stream *stream);

/* Waits until what the stream must come behind has all its parts; NULL: every copy. */
void gpd_copy_await(struct gpd_session *session, const struct gpd_stream *stream);

/* What the driver is to copy, now or as a node of a graph.  CUDA_ERROR_INVALID_VALUE: no such box,
 * or memory that is not the session's. */
CUresult gpd_copy_device_box(struct gpd_session *session, const struct gp_args_gpCopyDevice *args,
			     CUDA_MEMCPY3D *params);

/* Gives the stream such a copy on the device: of memory that its device does not reach as one
 * between devices. */
CUresult gpd_copy_enqueue(struct gpd_session *session, const struct gpd_stream *stream,
			  const CUDA_MEMCPY3D *copy);

/* At the session's end, when its wait queue is gone. */
void gpd_copy_destroy_all(struct gpd_session *session);

#endif /* GPD_COPY_H */
