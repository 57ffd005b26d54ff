/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies by GPUDirect, without staging: the RDMA device of the lanes reads and writes device
 * memory itself (gpudirect_memory.h). Whether a copy can use GPUDirect is decided once, when it
 * starts. Without such a device it never does, and the other functions are not called.
 *
 * Ownership: the executor's reference keeps a scheduled copy until gpd_gpudirect_out_is_done().
 * Threads: executor only, unless noted.
 * Errors: a failure to start falls back to staging; a send failure is reported in the reply of the
 * copy.
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
 * Executor: schedules a copy from the device to be sent by GPUDirect when its stream has completed
 * the preceding work. Returns false if the copy must go through staging. A scheduled copy can be
 * canceled until it starts. In both cases the last, short chunk may have been enqueued on the
 * stream.
 */
bool gpd_gpudirect_out_schedule(struct gpd_session *session, struct gpd_copy_out *out);
/* Cancels the scheduled copy, so that it goes through staging, because the executor has other work
 * for the stream. Returns false if it is being sent or is done. */
bool gpd_gpudirect_out_cancel(struct gpd_copy_out *out);
/* Whether the copy is scheduled or being sent. */
bool gpd_gpudirect_out_is_active(const struct gpd_copy_out *out);
/* Whether the copy and its reply have been sent; the executor may then drop it. */
bool gpd_gpudirect_out_is_done(const struct gpd_copy_out *out);

/* State of a copy to the device by GPUDirect. */
struct gpd_gpudirect_in {
	int device;    /* that has the memory; -1: no GPUDirect */
	bool may;      /* the stream has completed the preceding work */
	bool waits;    /* not yet; event stream->before is recorded after it */
	uint64_t went; /* bytes written directly */
};

/* Executor. Decides how the copy starts. The stream must already be ordered after the work that the
 * copy must follow. */
struct gpd_gpudirect_in gpd_gpudirect_in_begin(struct gpd_session *session,
					       struct gpd_stream *stream, uint64_t dst,
					       uint64_t size);
/* To be called after a chunk was given to the stream: lets the following chunks use GPUDirect if
 * the stream's preceding work is done by now. */
void gpd_gpudirect_in_poll(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
			   struct gpd_gpudirect_in *gpudirect);
/* To be called after the last chunk: makes the written bytes visible to later work of the
 * device. */
CUresult gpd_gpudirect_in_finish(struct gpd_session *session,
				 const struct gpd_gpudirect_in *gpudirect);

/* Thread of a lane, with the lanes' lock: the destination of a chunk of the executor's current copy
 * in device memory; NULL: through staging. */
void *gpd_gpudirect_in_get_address(const struct gpd_lane *lane, const struct gp_chunk *chunk);

#endif /* GPD_GPUDIRECT_H */
