/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies by GPUDirect, that is, without staging: the RDMA device of the data lanes (lane.h)
 * reads and writes device memory itself (device/gpudirect_memory.h). Whether a copy can use
 * GPUDirect is decided once, when it starts. Without such a device no copy uses it, and the other
 * functions are not called.
 *
 * A chunk is the unit in which a lane transfers a copy (struct gp_chunk). A piece of a copy that
 * goes through staging (staging.h) is copied by the GPU from or to pinned memory.
 *
 * Life cycle: copy_out.c schedules a copy to the host when it starts, may cancel it before later
 * work of the stream, and drops it when it is done. copy_lanes.c calls begin() when a copy to the
 * device starts, poll() after each staged chunk and finish() after the last one; lane_in.c calls
 * get_address() for each chunk.
 * Ownership: a scheduled copy is reference counted (copy_out_internal.h). The executor drops its
 * reference after gpd_gpudirect_out_is_done() returns true.
 * Threads: executor only, unless noted. No function waits for the GPU or the client;
 * gpd_gpudirect_out_schedule() blocks as gpd_stream_begin() does (stream/stream.h).
 * Errors: a failure to start makes the copy go through staging; a send failure is reported in the
 * reply of the copy.
 */
#ifndef GPD_GPUDIRECT_H
#define GPD_GPUDIRECT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_chunk;
struct gpd_copy_out;
struct gpd_lane;
struct gpd_session;
struct gpd_stream;

/*
 * Schedules a copy from the device to be sent by GPUDirect when its stream has completed the
 * preceding work. No earlier copy that must precede it may have parts left, and no part of it may
 * be enqueued. Returns true if it is scheduled; it can be canceled until it starts. Returns false
 * if the copy must go through staging. In both cases the copy's last, short chunk may have been
 * enqueued on the stream already; `out` then no longer includes it.
 */
bool gpd_gpudirect_out_schedule(struct gpd_session *session, struct gpd_copy_out *out);
/* Cancels the copy if it is scheduled, so that it goes through staging, because the executor has
 * other work for the stream. Returns true if it goes through staging now; false if it is being sent
 * or is done. */
bool gpd_gpudirect_out_cancel(struct gpd_copy_out *out);
/* Returns whether the copy is scheduled or being sent. */
bool gpd_gpudirect_out_is_active(const struct gpd_copy_out *out);
/* Returns whether the copy and its reply have been sent; the executor then drops its reference. */
bool gpd_gpudirect_out_is_done(const struct gpd_copy_out *out);

/* State of a copy to the device that may use GPUDirect. A plain value on the executor's stack. */
struct gpd_gpudirect_in {
	int device; /* ordinal of the device that has the memory; -1: no GPUDirect */
	/* The stream has completed the preceding work, so chunks may be written directly. Set by
	 * begin(), and then passed to gpd_lanes_expect() by the caller; or later by poll(). */
	bool may;
	/* The stream has not completed the preceding work. Event stream->before was recorded after
	 * that work. */
	bool waits;
	uint64_t went; /* number of bytes written directly so far; counted by the caller */
};

/* Decides how the copy of size bytes to address dst starts, and returns its state. The stream must
 * already be ordered after the work that the copy must follow, and the session must have access to
 * the memory. May make the stream's device current. */
struct gpd_gpudirect_in gpd_gpudirect_in_begin(struct gpd_session *session,
					       struct gpd_stream *stream, uint64_t dst,
					       uint64_t size);
/* Called after a chunk was enqueued on the stream: lets the following chunks be written directly to
 * dst if the stream's preceding work is done by now. Does nothing unless gpudirect->waits. May make
 * the stream's device current. Acquires the lanes' lock. */
void gpd_gpudirect_in_poll(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
			   struct gpd_gpudirect_in *gpudirect);
/* Called after the last chunk: counts the directly written bytes in session->copies->gpudirect_in
 * and makes them visible to later work of the device (gpd_gpudirect_memory_flush()). Returns
 * CUDA_SUCCESS, also if there are none, or the driver's error. */
CUresult gpd_gpudirect_in_finish(struct gpd_session *session,
				 const struct gpd_gpudirect_in *gpudirect);

/* Returns the destination in device memory of a chunk of the executor's current copy; NULL: the
 * chunk goes through staging. The chunk may be unchecked; its bytes may be received only after the
 * caller has checked it. Called by the thread of the lane, with the lanes' lock held. */
void *gpd_gpudirect_in_get_address(const struct gpd_lane *lane, const struct gp_chunk *chunk);

#endif /* GPD_GPUDIRECT_H */
